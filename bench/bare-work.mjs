// @ts-check
/*
 * What no builder can do without, bare, in a process of its own: `hash` runs two threads at once, one
 * for the digests of the blobs and one for that of the ISO, over the same pieces; `write` writes them
 * past the page cache. Arguments: what, bytes, path. Prints CPU seconds.
 */
import { createHash } from 'node:crypto';
import { constants, closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { once } from 'node:events';
import { URL } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

const PIECE = 1024 * 1024;
const PIECES = 64;

/** @param {SharedArrayBuffer} memory @param {number} size */
function hash(memory, size) {
  const sha = createHash('sha256');
  for (let done = 0; done < size; done += PIECE) {
    sha.update(new Uint8Array(memory, ((done / PIECE) % PIECES) * PIECE, PIECE));
  }
  sha.digest();
}

/** @param {number} size @param {string} path */
function write(size, path) {
  const memory = new Uint8Array(new SharedArrayBuffer((PIECES + 1) * PIECE));
  const { O_WRONLY, O_CREAT, O_TRUNC, O_DIRECT } = constants;
  const file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT);
  const start = findStart(file, memory);
  for (let done = 0; done < size; done += PIECE) {
    writeSync(file, memory, start + ((done / PIECE) % PIECES) * PIECE, PIECE, done);
  }
  closeSync(file);
  rmSync(path);
}

/** @param {number} file @param {Uint8Array} memory */
function findStart(file, memory) {
  for (let start = 0; start < 4096; start += 8) {
    try {
      writeSync(file, memory, start, 4096, 0);
      return start;
    } catch {
      continue; // not where a page begins
    }
  }
  throw new Error('the file system takes no direct writes');
}

if (isMainThread) {
  const [what = '', bytes = '0', path = ''] = process.argv.slice(2);
  const size = Number(bytes);
  const memory = new SharedArrayBuffer(PIECES * PIECE);
  const before = process.cpuUsage();
  if (what === 'hash') {
    const threads = [0, 1].map(
      () => new Worker(new URL(import.meta.url), { workerData: memory, argv: [String(size)] }),
    );
    await Promise.all(threads.map((thread) => once(thread, 'exit')));
  } else {
    write(size, path);
  }
  const { user, system } = process.cpuUsage(before);
  process.stdout.write(`${(user + system) / 1e6}\n`);
} else {
  /** @type {unknown} */
  const memory = workerData;
  if (memory instanceof SharedArrayBuffer) hash(memory, Number(process.argv[2]));
}
