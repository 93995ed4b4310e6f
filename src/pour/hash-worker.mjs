// @ts-check
// A thread that hashes ranges of the shared buffers. Plain JavaScript: a worker is loaded by file,
// and Node 20 cannot load TypeScript. Messages are handled in the order they were posted.
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/** @typedef {import('node:crypto').Hash} Hash */
/** @typedef {{ op: 'open' | 'close' | 'snapshot' | 'restore', stream: number }
 *   | { op: 'update', stream: number, start: number, size: number, ticket: number, prefix: boolean }
 *   | { op: 'digest', stream: number, ticket: number }} Order */

const memory = new Uint8Array(readMemory(workerData));
/** @type {Map<number, { hash: Hash, snapshot?: Hash }>} */
const streams = new Map();

/** @param {unknown} data @returns {SharedArrayBuffer} */
function readMemory(data) {
  if (data instanceof SharedArrayBuffer) return data;
  throw new TypeError('a hashing thread is started with its shared memory');
}

/** @param {number} id */
function streamOf(id) {
  const stream = streams.get(id);
  if (!stream) throw new Error(`hash stream ${id} is not open`);
  return stream;
}

/** @typedef {{ ticket: number, digest?: string }} Reply */

/** @param {Order} order @param {Reply[]} replies */
function obey(order, replies) {
  switch (order.op) {
    case 'open':
      streams.set(order.stream, { hash: createHash('sha256') });
      break;
    case 'close':
      streams.delete(order.stream);
      break;
    case 'snapshot':
    case 'restore':
      moveState(order.op, streamOf(order.stream));
      break;
    case 'update': {
      const { hash } = streamOf(order.stream);
      hash.update(memory.subarray(order.start, order.start + order.size));
      replies.push(replyOf(order.ticket, order.prefix ? hash.copy() : undefined));
      break;
    }
    case 'digest':
      replies.push(replyOf(order.ticket, streamOf(order.stream).hash));
      streams.delete(order.stream);
  }
}

/** @param {'snapshot' | 'restore'} op @param {{ hash: Hash, snapshot?: Hash }} stream */
function moveState(op, stream) {
  if (op === 'snapshot') stream.snapshot = stream.hash.copy();
  else if (stream.snapshot) stream.hash = stream.snapshot.copy();
}

/** @param {number} ticket @param {Hash | undefined} hash @returns {Reply} */
const replyOf = (ticket, hash) => (hash ? { ticket, digest: hash.digest('hex') } : { ticket });

parentPort?.on('message', (/** @type {readonly Order[]} */ orders) => {
  /** @type {Reply[]} */
  const replies = [];
  for (const order of orders) obey(order, replies);
  parentPort?.postMessage(replies);
});
