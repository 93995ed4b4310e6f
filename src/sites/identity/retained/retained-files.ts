import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, isErrno } from '../../../base/errors.ts';
import { readFileIfPresent } from '../../../base/disk/files.ts';
import { formatSize } from '../../../base/text/words.ts';

/** A manifest has the pull secret and the network of a site; all else is smaller. */
const MAX_SIZE = 16 << 20;

/**
 * A text below a directory, or undefined where there is none.
 *
 * @throws ConfigError `retained.unreadable`
 */
export async function readRetainedText(dir: string, file: string): Promise<string | undefined> {
  const path = join(dir, file);
  try {
    const size = await findSize(path);
    if (size === undefined) return undefined;
    if (size > MAX_SIZE) throw unreadable(dir, file);
    const bytes = await readFileIfPresent(path);
    return bytes && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    if (!isErrno(cause, 'EACCES', 'EISDIR', 'ELOOP', 'ERR_ENCODING_INVALID_ENCODED_DATA'))
      throw cause;
    throw unreadable(dir, file, cause);
  }
}

/** Anything but a file counts as too large: reading a pipe may never end. */
async function findSize(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path);
    return found.isFile() ? found.size : Infinity;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

const unreadable = (dir: string, file: string, cause?: unknown): ConfigError =>
  new ConfigError('retained.unreadable', `${dir}: failed to load ${file} file`, {
    ...(cause === undefined
      ? { expected: `a file of at most ${formatSize(MAX_SIZE)}` }
      : { cause }),
  });

/** A part is missing of what belongs together. */
export const incomplete = (message: string, hint = GIVE_ALL): ConfigError =>
  new ConfigError('retained.incomplete', message, { hint });

const GIVE_ALL = 'give all that the earlier producer left, or nothing of it';

/** Two parts are of different runs. */
export const mismatch = (message: string): ConfigError =>
  new ConfigError('retained.mismatch', message, {
    hint: 'give files of one cluster and of one run only',
  });
