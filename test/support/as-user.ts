import { chmodSync } from 'node:fs';

/** Who owns no file. */
const NOBODY = 65_534;

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
