import { ConfigError } from '../../base/errors.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import type { Stage } from '../../engine/stage.ts';
import type { FileDigests } from '../../base/disk/file-digests.ts';

export type IdentifyInstallerTools = { readonly digests: FileDigests };

/**
 * The installer that the user names, by digest: the file may have been replaced since.
 *
 * @throws ConfigError `installer.missing`
 */
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
