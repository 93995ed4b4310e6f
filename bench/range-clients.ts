import { connect, type Socket } from 'node:net';

/*
 * `range-clients PORT PATH SIZE CLIENTS SECONDS PAUSE`: clients of one connection each ask for 64 KiB anywhere in a
 * file, and again PAUSE milliseconds after they have them. Prints the times to the first byte, in milliseconds, as JSON.
 */

const [port = '', path = '', size = '', clients = '', seconds = '', pause = ''] =
  process.argv.slice(2);
const RANGE = 64 << 10;
const times: number[] = [];
let random = 12345;
let isOver = false;

function draw(): number {
  random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
  return random / 2 ** 31;
}

async function ask(socket: Socket): Promise<void> {
  const offset = Math.floor(draw() * (Number(size) - RANGE));
  const range = `bytes=${offset}-${offset + RANGE - 1}`;
  const began = performance.now();
  let left: number | undefined;
  await new Promise<void>((resolve, reject) => {
    const take = (piece: Buffer): void => {
      if (left === undefined) {
        times.push(performance.now() - began);
        const head = piece.indexOf('\r\n\r\n');
        if (!piece.toString('latin1', 0, head).startsWith('HTTP/1.1 206')) {
          reject(new Error(piece.toString('latin1', 0, head)));
          return;
        }
        left = RANGE + head + 4;
      }
      left -= piece.length;
      if (left > 0) return;
      socket.off('data', take);
      resolve();
    };
    socket.on('data', take);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: ${range}\r\n\r\n`);
  });
}

async function run(): Promise<void> {
  await wait(draw() * 1000);
  const socket = connect(Number(port), '127.0.0.1');
  while (!isOver) {
    await ask(socket);
    await wait(Number(pause));
  }
  socket.destroy();
}

const wait = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

setTimeout(() => (isOver = true), Number(seconds) * 1000);
await Promise.all(Array.from({ length: Number(clients) }, run));
console.log(JSON.stringify(times.map((time) => Math.round(time * 100) / 100)));
