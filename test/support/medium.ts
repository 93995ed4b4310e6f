import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { scanBaseIso } from '../../src/iso/lay-out/scan.ts';
import type { Extent, TreeFile } from '../../src/iso/extent.ts';
import { layOutIso } from '../../src/iso/lay-out/lay-out.ts';
import { formatMediaIndex, type MediaIndex } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import { planDistributionTree } from '../../src/registry/layout/distribution.ts';
import { buildImage, packTar, type TestImage } from './images.ts';
import { makeTinyIso } from './tiny-iso.ts';
import { writeLayout } from './write-layout.ts';

type Placed = {
  readonly name: string;
  readonly set: string;
  readonly repository: string;
  readonly image: TestImage;
};

export type TestMedium = {
  readonly path: string;
  readonly index: Omit<MediaIndex, 'digest'>;
  readonly images: readonly Placed[];
  readonly extentOf: (path: string) => MediaIndex['extents'][number];
};

/** Bytes that nothing compresses, the same at every call. */
const noise = (seed: string, size: number): Uint8Array =>
  createHash('shake256', { outputLength: size }).update(seed).digest();

/** `etcd` and `cli` of a release and an additional `tools`, over one shared layer. */
async function makeImages(): Promise<readonly Placed[]> {
  const tar = async (name: string, size: number): Promise<{ tar: Uint8Array }> => ({
    tar: await packTar([[name, noise(name, size)]]),
  });
  const shared = await tar('usr/shared', 300_000);
  return [
    ['etcd', 'release', 'openshift/release', await tar('usr/etcd', 5_000_000)] as const,
    ['cli', 'release', 'openshift/release', await tar('usr/cli', 10_000)] as const,
    ['tools', 'additional', 'rhel9/tools', await tar('usr/tools', 20_000)] as const,
  ].map(([name, set, repository, own]) => ({
    name,
    set,
    repository,
    image: buildImage([shared, own]),
  }));
}

/** The files of a registry with these images, each tagged with its name. */
export const listRegistryFiles = (
  images: readonly Pick<Placed, 'name' | 'repository' | 'image'>[],
): TreeFile[] =>
  planDistributionTree(
    images.map(({ name, repository, image: { manifests } }) => ({
      repository,
      tags: [name],
      manifests,
    })),
  ).map(({ path, content }) => ({ path: `/registry${path}`, content }));

/** A medium with a registry and an index, over the smallest base there is; without foreign programs. */
export async function makeMedium(
  directory: string,
  edit: (index: string) => string = (text) => text,
): Promise<TestMedium> {
  const images = await makeImages();
  const basePath = join(directory, 'tiny.iso');
  await writeFile(basePath, makeTinyIso());
  const base = await scanBaseIso(basePath);
  let index: TestMedium['index'] | undefined;
  const render = (extents: readonly Extent[]): Uint8Array => {
    index = describeMedium(images, extents);
    return Buffer.from(edit(formatMediaIndex(index)));
  };
  const files = listRegistryFiles(images);
  const layout = layOutIso({
    base,
    files,
    remove: [],
    patches: [],
    epoch: 1_767_323_045,
    index: { path: INDEX_PATH, render },
  });
  const blobs = new Map(images.flatMap(({ image }) => [...image.blobs]));
  const path = join(directory, 'medium.iso');
  await writeLayout(path, layout, { basePath, openBlob: (digest) => blobs.get(digest as Digest) });
  if (!index) throw new Error('the index was not rendered');
  const { extents } = index;
  return {
    path,
    index,
    images,
    extentOf(path) {
      const extent = extents.find(({ paths }) => paths.includes(path));
      if (!extent) throw new Error(`no extent for ${path}`);
      return extent;
    },
  };
}

const describeMedium = (
  images: readonly Placed[],
  extents: readonly Extent[],
): TestMedium['index'] => ({
  format: 1,
  product: 'live-iso',
  base: { digest: digestOf('base'), size: 49_152 },
  release: { version: '4.21.3', reference: 'quay.io/a/b@sha256:0', architecture: 'amd64' },
  images: images.map(({ name, set, repository, image }) => ({
    name,
    set,
    repository,
    source: `quay.io/a/${name}`,
    tags: [name],
    manifests: image.manifests.map(({ descriptor }) => descriptor.digest),
  })),
  extents: extents
    .filter(({ source }) => source.kind !== 'zero')
    .map(({ offset, size, digest, paths }) => ({
      offset,
      size,
      paths,
      ...(digest !== undefined && { digest }),
    })),
});

/** Where the registry keeps a blob on the medium. */
export const blobPath = (digest: Digest): string => {
  const hex = digest.slice('sha256:'.length);
  return `/registry/docker/registry/v2/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`;
};
