import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Whether a foreign program is installed. On a laptop a missing one skips its tests with a notice;
 * in CI (CI=true) it fails, so that a judge never goes missing unseen.
 */
export function requireTool(name: string): boolean {
  if (hasTool(name)) return true;
  if (process.env['CI'] === 'true') throw new Error(`CI needs the program "${name}"`);
  console.warn(`tests that need "${name}" are skipped: it is not installed`);
  return false;
}

export function hasTool(name: string): boolean {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return directories.some((directory) => isExecutable(join(directory, name)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent or not executable is the answer, not a failure
  }
}

/** Output of a foreign program; its exit code must be 0. */
export const askTool = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
