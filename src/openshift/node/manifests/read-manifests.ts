import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readInputFile, readListed } from '../../../base/disk/files.ts';
import { planCustomResources, planExtraManifests, type Manifest } from './extra-manifests.ts';

export type UserManifests = {
  /** `openshift/*.yaml`, for the installation of the cluster. */
  readonly extra: readonly Manifest[];
  /** `openshift/crs/*.yaml`, applied when their operators are there. */
  readonly crs: readonly Manifest[];
};

const MANIFESTS = { domain: 'manifest' };

/**
 * Reads the manifests beside a configuration; absent folders are empty.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`, `manifest.unreadable`,
 * `manifest.too-large`
 */
export function readUserManifests(directory: string): UserManifests {
  const folder = join(directory, 'openshift');
  const extra = readYamlFiles(folder);
  const crs = readYamlFiles(join(folder, 'crs'));
  planExtraManifests(extra, { useDefaultSourceNames: false });
  planCustomResources(crs);
  return { extra, crs };
}

const readYamlFiles = (directory: string): readonly Manifest[] =>
  listNames(directory)
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => {
      const path = join(directory, name);
      const bytes = readListed(path, MANIFESTS, () => readInputFile(path, MANIFESTS));
      return { name, text: bytes.toString('utf8') };
    });

function listNames(directory: string): readonly string[] {
  const entries = readListed(directory, MANIFESTS, () =>
    lstatSync(directory, { throwIfNoEntry: false }) === undefined
      ? []
      : readdirSync(directory, { withFileTypes: true }),
  );
  return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
}
