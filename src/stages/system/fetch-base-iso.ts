import { join } from 'node:path';
import type { Stage } from '../../engine/stage.ts';
import type { BaseIso } from '../../openshift/release/base-iso.ts';
import { isCached } from '../../base/disk/file-digests.ts';
import type { ImageTools } from '../../openshift/images.ts';
import { extractComponentFile } from '../../openshift/images.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { getComponent, type Release } from '../../openshift/release/release.ts';
import { isAtLeast } from '../../openshift/release/version.ts';
import { formatReference } from '../../registry/reference.ts';

export type FetchBaseIsoInput = { readonly release: Release };

export type FetchBaseIsoTools = Pick<ImageTools, 'client' | 'cache'> & { readonly workDir: string };

/**
 * The CoreOS live ISO that the medium is built on, out of the release's `machine-os-images`.
 *
 * @throws IntegrityError `release.component-missing`, `layer.file-missing`
 */
export const fetchBaseIso: Stage<FetchBaseIsoInput, BaseIso, FetchBaseIsoTools> = {
  name: 'fetch base ISO',
  reuse: { kind: 'same-program', isUsable: isCached },
  async run({ release }, { client, cache, workDir }, { signal, onProgress }) {
    const { arch } = release;
    const reference = getComponent(release, 'machine-os-images');
    const path = baseIsoPath(release.version, arch);
    const directory = join(workDir, 'cache', 'base');
    const file = await extractComponentFile(
      { reference, arch, path, directory, suffix: '.iso' },
      { client, cache, signal, onProgress },
    );
    return { ...file, from: `${path} of ${formatReference(reference)}` };
  },
};

/** Where the live ISO is in `machine-os-images`; from 5.0 on there are two, and this is the one. */
function baseIsoPath(version: string, arch: RpmArchitecture): string {
  const name = isAtLeast(version, '5.0.0') ? 'coreos10' : 'coreos';
  return `coreos/${name}-${arch}.iso`;
}
