import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Stage } from '../../engine/stage.ts';
import type { ImageTools } from '../../openshift/images.ts';
import { extractComponentFile } from '../../openshift/images.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { parseReference } from '../../registry/reference.ts';

/** What the program in a seed image reads to know which images to pull. */
const LIST = 'containers.list';

export type PrecacheInput = { readonly seedImage: string; readonly arch: RpmArchitecture };

export type PrecacheTools = Pick<ImageTools, 'client' | 'cache'> & { readonly workDir: string };

/**
 * The images that an installation pulls besides the seed, as the seed names them. Its layers stay in
 * the cache: they are poured from there.
 *
 * @throws IntegrityError `layer.file-missing`; ConfigError `reference.malformed`
 */
export const readPrecacheList: Stage<PrecacheInput, readonly string[], PrecacheTools> = {
  name: 'read precache list',
  async run({ seedImage, arch }, { client, cache, workDir }, { signal, onProgress }) {
    const directory = join(workDir, 'cache', 'seed');
    const reference = parseReference(seedImage);
    const { path } = await extractComponentFile(
      { reference, arch, path: LIST, directory, suffix: '.list' },
      { client, cache, signal, onProgress },
    );
    const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
    return [...new Set(lines.filter((line) => line !== ''))];
  },
};
