import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Stage } from '../../engine/index.ts';
import { openIso } from '../../iso/index.ts';
import {
  extractComponentFile,
  openImage,
  fetchBlob,
  type ImageTools,
} from '../../openshift/images.ts';
import {
  findSeedInfo,
  listSeedDifferences,
  parseSeedCluster,
  SEED_INFO_PATH,
  type SeedCluster,
} from '../../openshift/installation/seed.ts';
import { platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import { readSystemName } from '../../openshift/release/os-stream.ts';
import { parseReference } from '../../registry/index.ts';

export type ReadSeedInput = { readonly seedImage: string; readonly arch: RpmArchitecture };

export type ReadSeedTools = Pick<ImageTools, 'client' | 'cache'> & { readonly workDir: string };

export const readSeed: Stage<ReadSeedInput, SeedCluster | undefined, ReadSeedTools> = {
  name: 'read seed version',
  run: (input, tools, { signal, onProgress }) =>
    fetchSeedCluster(input, { ...tools, signal, onProgress }),
};

/**
 * Reads the cluster that a seed was made from: from a label of the image, else from a file in it, whose layers
 * stay in the cache. Undefined for an image that does not tell it, and so is not a seed.
 */
export async function fetchSeedCluster(
  { seedImage, arch }: ReadSeedInput,
  { workDir, ...tools }: ImageTools & { readonly workDir: string },
): Promise<SeedCluster | undefined> {
  const { reference, image } = await openImage(tools, parseReference(seedImage), platformOf(arch));
  const config = Buffer.from(await fetchBlob(tools, reference, image.config)).toString('utf8');
  const label = findSeedInfo(config);
  if (label !== undefined) return parseSeedCluster(label);
  const directory = join(workDir, 'cache', 'seed');
  const wanted = { reference, arch, path: SEED_INFO_PATH, directory, suffix: '.json' };
  try {
    const { path } = await extractComponentFile(wanted, tools);
    return parseSeedCluster(await readFile(path, 'utf8'));
  } catch (error) {
    const isMissing = error instanceof IntegrityError && error.code === 'layer.file-missing';
    if (isMissing) return undefined;
    throw error;
  }
}

export type CompareSeedInput = {
  readonly base: FileInput;
  readonly seedVersion: string;
  readonly releaseVersion?: string | undefined;
};

/** Compares the live ISO and the release with the seed, and returns differences as sentences. */
export const compareSeed: Stage<CompareSeedInput, readonly string[], unknown> = {
  name: 'compare with seed',
  async run({ base, seedVersion, releaseVersion }) {
    const iso = await openIso(base.path);
    try {
      return listSeedDifferences({
        seedVersion,
        systemName: await readSystemName(iso),
        ...(releaseVersion !== undefined && { releaseVersion }),
      });
    } finally {
      await iso.close();
    }
  },
};
