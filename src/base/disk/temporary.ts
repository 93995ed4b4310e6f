import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskError } from '../errors.ts';

/**
 * Calls a function with a temporary folder, private to this user, and removes the folder in any case.
 *
 * @throws DiskError `disk.no-temporary`
 */
export async function useTemporaryFolder<Result>(
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await makeFolder();
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), 'sealift-'));
  } catch (cause) {
    throw new DiskError('disk.no-temporary', `cannot create a temporary folder in ${tmpdir()}`, {
      cause,
      hint: 'set TMPDIR to a writable folder',
    });
  }
}
