// @ts-check
// Loaded before the program: kills it in the middle of its nth write to a place in a file, or to this place of
// any file. Plain JavaScript: it is named in NODE_OPTIONS, before anything could load TypeScript.
import { open } from 'node:fs/promises';
import { isMainThread } from 'node:worker_threads';

const { KILL_AT = '0', KILL_PLACE: place } = process.env;
let left = Number(KILL_AT);

/** @typedef {(...args: unknown[]) => Promise<unknown>} Write buffer, start, size, position */

if (isMainThread && left > 0) {
  const file = await open('/dev/null');
  /** @type {unknown} */
  const prototype = Object.getPrototypeOf(file);
  const handles = /** @type {{ write: Write }} */ (prototype);
  await file.close();
  const { write } = handles;
  /** @this {unknown} @param {unknown[]} args */
  handles.write = async function (...args) {
    const [bytes, start = 0, size, position] = args;
    const counts = place === undefined ? typeof position === 'number' : position === Number(place);
    if (!counts || --left !== 0) return write.apply(this, args);
    const whole = size ?? /** @type {Uint8Array} */ (bytes).length - Number(start);
    await write.call(this, bytes, start, Math.ceil(Number(whole) / 2), position);
    process.kill(process.pid, 'SIGKILL');
    return /** @type {Promise<unknown>} */ (new Promise(() => undefined));
  };
}
