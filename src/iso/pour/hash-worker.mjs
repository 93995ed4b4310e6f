// @ts-check
// A thread that hashes ranges of the shared buffers. Plain JavaScript: a worker is loaded by file,
// and Node 20 cannot load TypeScript. Messages are handled in the order they were posted.
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/** @typedef {import('node:crypto').Hash} Hash */
/** @typedef {{ op: 'open' | 'close' | 'snapshot' | 'restore', stream: number }
 *   | { op: 'update', stream: number, start: number, size: number, ticket: number, prefix: boolean }
 *   | { op: 'digest', stream: number, ticket: number }} Order */

const memory = new Uint8Array(/** @type {SharedArrayBuffer} */ (workerData));
/** @type {Map<number, { hash: Hash, snapshot?: Hash }>} */
const streams = new Map();

/** @param {number} id */
function streamOf(id) {
  const stream = streams.get(id);
  if (!stream) throw new Error(`hash stream ${id} is not open`);
  return stream;
}

/** @param {Order} order */
function obey(order) {
  switch (order.op) {
    case 'open':
      streams.set(order.stream, { hash: createHash('sha256') });
      return;
    case 'close':
      streams.delete(order.stream);
      return;
    case 'snapshot': {
      const stream = streamOf(order.stream);
      stream.snapshot = stream.hash.copy();
      return;
    }
    case 'restore': {
      const stream = streamOf(order.stream);
      if (!stream.snapshot) throw new Error(`hash stream ${order.stream} has no snapshot`);
      stream.hash = stream.snapshot.copy();
      return;
    }
    case 'update': {
      const { hash } = streamOf(order.stream);
      hash.update(memory.subarray(order.start, order.start + order.size));
      const digest = order.prefix ? hash.copy().digest('hex') : undefined;
      parentPort?.postMessage({ ticket: order.ticket, digest });
      return;
    }
    case 'digest': {
      const { hash } = streamOf(order.stream);
      streams.delete(order.stream);
      parentPort?.postMessage({ ticket: order.ticket, digest: hash.digest('hex') });
    }
  }
}

parentPort?.on('message', obey);
