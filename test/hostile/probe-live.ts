import { get } from 'node:http';

/*
 * `probe-live.ts PORT ADDRESS`: asks for /live from an address, with a connection each, until its standard input ends. Prints
 * milliseconds and statuses as JSON; a connection that breaks has status 0. A process of its own: what else the test does
 * must not count.
 */

const [port = '', localAddress] = process.argv.slice(2);
const taken: { times: number[]; statuses: number[] } = { times: [], statuses: [] };
const ending = new AbortController();
process.stdin
  .on('end', () => {
    ending.abort();
  })
  .resume();

const ask = (): Promise<number> =>
  new Promise((resolve) => {
    const options = { port, host: '127.0.0.1', path: '/live', localAddress, agent: false };
    get(options, (answer) => {
      answer.resume().on('end', () => {
        resolve(answer.statusCode ?? 0);
      });
    }).on('error', () => {
      resolve(0);
    });
  });

while (!ending.signal.aborted) {
  const began = performance.now();
  taken.statuses.push(await ask());
  taken.times.push(performance.now() - began);
  await new Promise((resolve) => setTimeout(resolve, 20));
}
console.log(JSON.stringify(taken));
