import { stat } from 'node:fs/promises';
import { isErrno } from '../base/errno.ts';

/** Whether a file that a stage made is still there, and as long as it was. */
export async function isKept(file: {
  readonly path: string;
  readonly size: number;
}): Promise<boolean> {
  try {
    return (await stat(file.path)).size === file.size;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
