import { isDigest } from '../base/digest.ts';
import type { IsoImage } from '../iso/index.ts';
import { findSeedImage } from '../openshift/installation/ignition.ts';
import {
  findSeedInfo,
  parseSeedCluster,
  SEED_INFO_PATH,
  type SeedCluster,
} from '../openshift/installation/seed.ts';
import { readFiles, readReference } from '../registry/index.ts';
import { mergeMediumConfigs, readMediumConfigs } from './live-config.ts';
import { readIndex } from './media-index.ts';
import { findRegistryRoot, isoRegistryTree, openMediumImage } from './tree.ts';

/** Reads the cluster that the seed on an installation ISO was made from; undefined if the ISO has no seed. */
export async function readCarriedSeed(
  iso: IsoImage,
  signal: AbortSignal,
): Promise<SeedCluster | undefined> {
  const root = await findRegistryRoot(iso);
  const config = mergeMediumConfigs(await readMediumConfigs(iso));
  const name = config && findSeedImage(config);
  const digest = name === undefined ? undefined : await findDigest(iso, name);
  if (root === undefined || name === undefined || digest === undefined) return undefined;
  const tree = isoRegistryTree(iso, root);
  const { config: image, layers } = await openMediumImage(tree, { name, digest }, signal);
  const label = findSeedInfo(Buffer.from(image).toString('utf8'));
  if (label !== undefined) return parseSeedCluster(label);
  const files = await readFiles(layers, (path) => path === SEED_INFO_PATH, { signal });
  return parseSeedCluster(Buffer.from(files.get(SEED_INFO_PATH) ?? []).toString('utf8'));
}

/** Digest of an image of the medium, by the name with which it was asked for. */
async function findDigest(iso: IsoImage, name: string) {
  const wanted = readReference(name);
  const found = (await readIndex(iso))?.images.find(({ source }) => {
    const { registry, repository, digest } = readReference(source) ?? {};
    if (registry !== wanted?.registry || repository !== wanted?.repository) return false;
    return wanted?.digest === undefined || wanted.digest === digest;
  });
  const [digest = ''] = found?.manifests ?? [];
  return isDigest(digest) ? digest : undefined;
}
