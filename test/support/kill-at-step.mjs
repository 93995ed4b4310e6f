// @ts-check
// Loaded before the program: kills it right before its nth change of a file below a directory.
// Plain JavaScript: it is named in NODE_OPTIONS, before anything could load TypeScript.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const { KILL_BELOW: below = '', KILL_AT = '0' } = process.env;
const CHANGES = ['linkSync', 'renameSync', 'rmSync', 'openSync', 'writeFileSync', 'mkdirSync'];
const PROMISED = ['rename', 'rm', 'rmdir', 'open', 'writeFile', 'mkdir', 'link', 'chmod'];

let left = Number(KILL_AT);

/** @typedef {(...args: unknown[]) => unknown} Call */

/** @param {object} module @param {string} name */
function patch(module, name) {
  const calls = /** @type {Record<string, Call>} */ (module);
  const original = calls[name];
  calls[name] = (...args) => {
    const isBelow = args.some((arg) => typeof arg === 'string' && arg.startsWith(`${below}/`));
    if (isBelow && !String(args[0]).includes('.lock') && args[1] !== 'r' && --left === 0) {
      process.kill(process.pid, 'SIGKILL');
    }
    return original?.(...args);
  };
}

if (isMainThread && left > 0) {
  for (const name of CHANGES) patch(fs, name);
  for (const name of PROMISED) patch(fs.promises, name);
  syncBuiltinESMExports();
}
