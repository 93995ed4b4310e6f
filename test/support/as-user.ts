import { chmodSync } from 'node:fs';

/** Who owns no file. */
export const NOBODY = 65_534;

/** Whether this process may give files to other users and act as them; in CI it must. */
export const isRoot = process.geteuid?.() === 0;
if (!isRoot) {
  if (process.env['CI'] === 'true') throw new Error('CI needs root: tests act as other users');
  console.warn('tests that act as other users are skipped: they need root');
}

/**
 * Does something as a user whom modes of files keep out; root is let in everywhere.
 *
 * @param within directories on the way to the files, which such a user may enter then
 */
export async function asUser<T>(within: readonly string[], work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work();
  for (const directory of within) chmodSync(directory, 0o755);
  process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}
