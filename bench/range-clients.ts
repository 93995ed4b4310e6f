import { connect, type Socket } from 'node:net';

/*
 * `range-clients JSON`: clients of one connection each ask for ranges anywhere in a file, and again some time after they
 * have one. Bytes are read into one buffer and thrown away, so that the clients take as little as they can of the
 * processors that they share with the server. Prints `Taken` as JSON.
 */

export type RangeClients = {
  readonly port: number;
  /** Path and query. */
  readonly path: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes of a range. */
  readonly range: number;
  readonly clients: number;
  readonly seconds: number;
  /** Milliseconds of a client between two ranges. */
  readonly pause: number;
  /** A connection for each range. */
  readonly isEachNew?: boolean;
};

export type Taken = {
  /** Milliseconds to the first byte of each answer. */
  readonly times: readonly number[];
  readonly bytes: number;
};

const asked = JSON.parse(process.argv[2] ?? '') as RangeClients;
const { port, path, size, range, pause, isEachNew = false } = asked;
const buffer = Buffer.allocUnsafe(1 << 20);
const times: number[] = [];
let bytes = 0;
let random = 12345;
let isOver = false;

function draw(): number {
  random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
  return random / 2 ** 31;
}

type Client = { socket: Socket; take: (piece: Buffer) => void };

function open(): Client {
  const client: Client = {
    take: () => undefined,
    socket: connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback(length, read) {
          client.take(read.subarray(0, length) as Buffer);
          return true;
        },
      },
    }),
  };
  return client;
}

async function ask(client: Client): Promise<void> {
  const offset = Math.floor(draw() * (size - range));
  const began = performance.now();
  let left: number | undefined;
  await new Promise<void>((resolve, reject) => {
    client.socket.once('error', reject);
    client.socket.once('close', () => {
      reject(new Error('the server closed the connection'));
    });
    client.take = (piece) => {
      if (left === undefined) {
        times.push(performance.now() - began);
        const head = piece.indexOf('\r\n\r\n');
        if (piece.toString('latin1', 0, 12) !== 'HTTP/1.1 206') {
          reject(new Error(piece.toString('latin1', 0, head)));
          return;
        }
        left = range + head + 4;
      }
      left -= piece.length;
      bytes += piece.length;
      if (left <= 0 || isOver) resolve();
    };
    const line = `bytes=${offset}-${offset + range - 1}`;
    client.socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: ${line}\r\n\r\n`);
  });
  client.socket.removeAllListeners('error').removeAllListeners('close');
}

async function run(): Promise<void> {
  if (pause > 0) await wait(draw() * 1000);
  let client = open();
  while (!isOver) {
    await ask(client);
    if (isEachNew) {
      client.socket.destroy();
      client = open();
    }
    if (pause > 0) await wait(pause);
  }
  client.socket.destroy();
}

const wait = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

setTimeout(() => (isOver = true), asked.seconds * 1000);
await Promise.all(Array.from({ length: asked.clients }, run));
const rounded = times.map((time) => Math.round(time * 100) / 100);
console.log(JSON.stringify({ times: rounded, bytes } satisfies Taken));
