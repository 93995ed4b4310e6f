import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../base/errno.ts';
import {
  planCustomResources,
  planExtraManifests,
  type Manifest,
} from '../../openshift/node/extra-manifests.ts';

export type UserManifests = {
  /** `openshift/*.yaml`, for the installation of the cluster. */
  readonly extra: readonly Manifest[];
  /** `openshift/crs/*.yaml`, applied when their operators are there. */
  readonly crs: readonly Manifest[];
};

/**
 * Reads the manifests beside a configuration; absent folders are empty.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`
 */
export async function readUserManifests(directory: string): Promise<UserManifests> {
  const folder = join(directory, 'openshift');
  const extra = await readYamlFiles(folder);
  const crs = await readYamlFiles(join(folder, 'crs'));
  planExtraManifests(extra, { useDefaultSourceNames: false });
  planCustomResources(crs);
  return { extra, crs };
}

async function readYamlFiles(directory: string): Promise<Manifest[]> {
  const names = await readNames(directory);
  return Promise.all(
    names
      .filter((name) => /\.ya?ml$/.test(name))
      .sort()
      .map(async (name) => ({ name, text: await readFile(join(directory, name), 'utf8') })),
  );
}

async function readNames(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
