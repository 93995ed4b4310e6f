import { join, resolve } from 'node:path';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { ARCHITECTURES, toArchitecture } from '../architecture.ts';

/** An ISO that does not say itself which release it is of: a live ISO of CoreOS. */
export type OsImage = {
  readonly version: string;
  readonly architecture: string;
  /** A path, or an address. */
  readonly place: string;
};

/** In a folder of the store. */
export const OS_IMAGES = 'os-images.json';

/**
 * What the folder says of such ISOs, in the form of assisted-image-service's OS_IMAGES. Paths are relative to
 * the folder.
 *
 * @throws ConfigError `service.os-images`
 */
export function readOsImages(folder: string): readonly OsImage[] {
  const path = join(folder, OS_IMAGES);
  let value: unknown;
  try {
    value = JSON.parse(readInputFile(path, { domain: 'input' }).toString('utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    if (error instanceof SyntaxError) throw malformed(path, error.message);
    throw error;
  }
  if (!Array.isArray(value)) throw malformed(path, 'it is not a list');
  return value.map((entry: unknown, index) => {
    const { openshift_version: version, cpu_architecture, url } = isObject(entry) ? entry : {};
    const architecture = toArchitecture(cpu_architecture);
    if (typeof version !== 'string' || typeof url !== 'string' || architecture === undefined) {
      throw malformed(path, `entry ${index} lacks openshift_version, cpu_architecture or url`);
    }
    return { version, architecture, place: isElsewhere(url) ? url : resolve(folder, url) };
  });
}

const malformed = (path: string, problem: string): ConfigError =>
  new ConfigError('service.os-images', `${path} cannot be used: ${problem}`, {
    expected: `[{"openshift_version", "cpu_architecture": "${ARCHITECTURES.join('|')}", "url"}]`,
    found: problem,
    hint: 'correct it: it is read again when it changes',
  });
