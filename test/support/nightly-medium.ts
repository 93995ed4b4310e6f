import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { digestOf, hexOf, type Digest } from '../../src/base/digest.ts';
import { layOutIso } from '../../src/iso/lay-out/lay-out.ts';
import type { Places } from '../../src/iso/extent.ts';
import { scanBaseIso } from '../../src/iso/lay-out/scan.ts';
import { listIndexExtents } from '../../src/media/describe.ts';
import { formatMediaIndex, placesOf, type MediaIndex } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import { MEDIA_TYPE } from '../../src/registry/manifest.ts';
import { descriptorOf, storeManifest, type TestImage } from './images.ts';
import { makeIso } from './iso.ts';
import { listRegistryFiles } from './medium.ts';
import { writeLayout } from './write-layout.ts';

/** Bytes that nothing compresses, the same at every call. */
const noise = (seed: string, size: number): Buffer =>
  createHash('shake256', { outputLength: size }).update(seed).digest();

/** A base with one large file and two small ones, which genisoimage makes. */
export const makeNightlyBase = (directory: string, name: string, size: number): Promise<string> =>
  makeIso(
    directory,
    { files: { 'images/rootfs.img': noise(name, size), 'a.txt': name, 'b.txt': name } },
    `${name}-base.iso`,
  );

/** An image whose layers are noise of these names. */
export function noiseImage(layers: readonly string[], size: number): TestImage {
  // skopeo compresses layers that are not.
  const blobs = layers.map((name) => gzipSync(noise(name, size), { level: 0 }));
  const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', layers }));
  const describe = (bytes: Uint8Array, mediaType: string) => descriptorOf(bytes, mediaType);
  const manifest = storeManifest({
    schemaVersion: 2,
    mediaType: MEDIA_TYPE.ociManifest,
    config: describe(config, MEDIA_TYPE.ociConfig),
    layers: blobs.map((bytes) => describe(bytes, `${MEDIA_TYPE.ociLayer}+gzip`)),
  });
  return {
    manifests: [manifest],
    blobs: new Map([config, ...blobs].map((bytes) => [digestOf(bytes), bytes] as const)),
  };
}

/** Writes an image as skopeo's `dir:` transport reads it. */
export async function writeImageDirectory(directory: string, image: TestImage): Promise<void> {
  await mkdir(directory);
  await writeFile(join(directory, 'manifest.json'), image.manifests[0]?.bytes ?? '');
  for (const [digest, bytes] of image.blobs) await writeFile(join(directory, hexOf(digest)), bytes);
}

export type NightlyImage = {
  readonly name: string;
  /** `registry/repository` that it is of. */
  readonly source: string;
  readonly image: TestImage;
};

/** A medium of these images over a base; `before` is the one whose places are kept. */
export async function writeNightly(
  path: string,
  {
    basePath,
    images,
    places,
  }: {
    readonly basePath: string;
    readonly images: readonly NightlyImage[];
    readonly places?: Places | undefined;
  },
): Promise<Places | undefined> {
  const base = await scanBaseIso(basePath);
  const index: Omit<MediaIndex, 'digest' | 'extents'> = {
    format: 2,
    product: 'live-iso',
    base: { digest: base.digest, size: base.size },
    release: { version: '4.21.3', reference: 'quay.io/a/b@sha256:0', architecture: 'amd64' },
    images: images.map(({ name, source, image }) => ({
      name,
      set: 'release',
      repository: 'openshift/release',
      source: `${source}@${image.manifests[0]?.descriptor.digest ?? ''}`,
      tags: [name],
      manifests: image.manifests.map(({ descriptor }) => descriptor.digest),
    })),
  };
  const files = listRegistryFiles(
    images.map(({ name, image }) => ({ name, image, repository: 'openshift/release' })),
  );
  const layout = layOutIso({
    base,
    files,
    remove: [],
    patches: [],
    epoch: 1_767_323_045,
    ...(places && { places }),
    index: {
      path: INDEX_PATH,
      render: (extents, areas) =>
        Buffer.from(
          formatMediaIndex({
            ...index,
            areas,
            extents: listIndexExtents(extents),
          }),
        ),
    },
  });
  const blobs = new Map(images.flatMap(({ image }) => [...image.blobs]));
  await writeLayout(path, layout, { basePath, openBlob: (digest) => blobs.get(digest as Digest) });
  return placesOf(layout);
}
