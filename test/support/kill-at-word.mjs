// @ts-check
// Loaded before the program: kills it right before it prints the event, or renames to the file, that KILL_AT
// names. Plain JavaScript: it is named in NODE_OPTIONS, before anything could load TypeScript.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const { KILL_AT: word = '' } = process.env;

/** @typedef {(...args: unknown[]) => unknown} Call */

/** @param {object} object @param {string} name @param {(args: readonly unknown[]) => boolean} isTime */
function killBefore(object, name, isTime) {
  const calls = /** @type {Record<string, Call>} */ (object);
  const original = /** @type {Call} */ (calls[name]).bind(object);
  calls[name] = (...args) => {
    if (isTime(args)) process.kill(process.pid, 'SIGKILL');
    return original(...args);
  };
}

if (isMainThread && word !== '') {
  killBefore(process.stderr, 'write', ([text]) => String(text).includes(word));
  killBefore(fs.promises, 'rename', ([, to]) => String(to).endsWith(word));
  syncBuiltinESMExports();
}
