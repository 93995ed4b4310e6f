import { join } from 'node:path';
import { type FileInput, isCached, type FileDigests } from '../../base/disk/file-digests.ts';
import { ConfigError } from '../../base/errors.ts';
import type { Stage } from '../../engine/index.ts';
import { extractComponentFile, type ImageTools } from '../../openshift/images.ts';
import {
  describeForInstaller,
  findInstaller,
  writeInstallerMarkers,
} from '../../openshift/installer/installer.ts';
import { getComponent, type Release } from '../../openshift/release/release.ts';

export type FetchInstallerInput = {
  readonly release: Release;
  /** Go's name of the architecture of the machine that runs it. */
  readonly machine: string;
  /** The installer that is linked against the host's validated cryptography; it needs RHEL. */
  readonly fips: boolean;
};

const NAME_ONE = 'name an installer of this release that runs on this machine in build.installer';

export type FetchInstallerTools = Pick<ImageTools, 'client' | 'cache'> & {
  readonly workDir: string;
};

/**
 * Fetches `openshift-install` of exactly this release, executable, with its release written into
 * it as `oc adm release extract` would.
 */
export const fetchInstaller: Stage<FetchInstallerInput, FileInput, FetchInstallerTools> = {
  name: 'fetch installer',
  reuse: { kind: 'same-program', isUsable: isCached },
  async run({ release, machine, fips }, { client, cache, workDir }, { signal, onProgress }) {
    const told = describeForInstaller(release);
    const { component, path } = findInstaller(release.arch, { machine, fips });
    return extractComponentFile(
      {
        reference: getComponent(release, component, NAME_ONE),
        arch: release.arch,
        path,
        directory: join(workDir, 'cache', 'installer'),
        suffix: '',
        finishKey: `${told.image} ${told.version} ${told.architecture}`,
        finish: async (path) => {
          await writeInstallerMarkers(path, told);
        },
      },
      { client, cache, signal, onProgress },
    );
  },
};

export type IdentifyInstallerTools = { readonly digests: FileDigests };

/** Identifies the installer that the user names, by digest: the file may have been replaced since. */
export const identifyInstaller: Stage<
  { readonly path: string },
  FileInput,
  IdentifyInstallerTools
> = {
  name: 'identify installer',
  async run({ path }, { digests }) {
    const file = await digests.identify(path);
    if (file) return file;
    throw new ConfigError(
      'installer.missing',
      `installer "${path}" does not exist, or is not a file`,
      {
        hint: 'correct build.installer, or leave it out to use the installer of the release',
      },
    );
  },
};
