import { IntegrityError } from '../../base/errors.ts';
import { isSameStamp, readStamp, type FileInput } from '../../base/disk/file-input.ts';
import type { FileDigests } from './file-digests.ts';

/**
 * Reads from a base ISO; what comes of it counts only when the file was the same before and after. Where
 * it was not, or had other bytes than its digest says, that digest is forgotten, so that the next run
 * takes the file as it is then.
 *
 * @throws IntegrityError `base-iso.changed`, and what `read` throws
 */
export async function readUnchanged<Result>(
  base: FileInput,
  digests: FileDigests,
  read: () => Promise<Result>,
): Promise<Result> {
  const before = await readStamp(base.path);
  try {
    const result = await read();
    const after = await readStamp(base.path);
    if (before && after && isSameStamp(before, after)) return result;
  } catch (error) {
    if (error instanceof IntegrityError) await digests.forget(base.path);
    throw error;
  }
  throw await baseChanged(base, digests);
}

/** The file has other bytes than its digest says. */
export async function baseChanged(
  { path, digest }: FileInput,
  digests: FileDigests,
): Promise<IntegrityError> {
  await digests.forget(path);
  return new IntegrityError('base-iso.changed', `base ISO "${path}" changed during the build`, {
    expected: digest,
    found: 'other bytes',
    hint: 'run the same command again when nothing writes to the file',
  });
}
