import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import type { Descriptor, Platform } from '../../src/registry/manifest.ts';
import type { RegistryFile } from '../../src/registry/layout/distribution.ts';
import type { Layer } from '../../src/registry/layers/read.ts';
import { MEDIA_TYPE, parseManifest, type StoredManifest } from '../../src/registry/manifest.ts';

/** What a layer is packed with; zstd needs the program of that name. */
export type Compression = 'none' | 'gzip' | 'zstd';

/** An entry of a layer: text for a regular file, or a tar header of another type. */
export type LayerEntry = string | Uint8Array | Omit<Partial<Header>, 'name'>;

/** An image in memory: the manifest a tag would name first, then children; and all blobs. */
export type TestImage = {
  readonly manifests: readonly StoredManifest[];
  readonly blobs: ReadonlyMap<Digest, Uint8Array>;
};

/** A tar of these entries, in this order; names are packed as they are given. */
export async function packTar(
  entries: readonly (readonly [name: string, entry: LayerEntry])[],
): Promise<Buffer> {
  const tar = pack();
  const mtime = new Date(0);
  for (const [name, entry] of entries) {
    if (typeof entry === 'string') tar.entry({ name, mtime }, entry);
    else if (entry instanceof Uint8Array) tar.entry({ name, mtime }, Buffer.from(entry));
    else tar.entry({ name, mtime, ...entry });
  }
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export function compress(tar: Uint8Array, compression: Compression): Buffer {
  switch (compression) {
    case 'none':
      return Buffer.from(tar);
    case 'gzip':
      return gzipSync(tar, { level: 1 });
    case 'zstd':
      return execFileSync('zstd', ['-c', '-q'], { input: tar, maxBuffer: 1 << 30 });
  }
}

/** A layer that opens from memory, in pieces of `chunkSize` bytes. */
export function layerOf(bytes: Uint8Array, chunkSize = 65_536): Layer {
  const chunks = function* (): Generator<Buffer> {
    for (let start = 0; start < bytes.length; start += chunkSize) {
      yield Buffer.from(bytes.subarray(start, start + chunkSize));
    }
  };
  return {
    descriptor: descriptorOf(bytes, MEDIA_TYPE.ociLayer),
    open: () => Promise.resolve(Readable.from(chunks(), { objectMode: false })),
  };
}

/** Packs entries into a gzipped layer. */
export async function packLayer(
  entries: readonly (readonly [name: string, entry: LayerEntry])[],
  compression: Compression = 'gzip',
): Promise<Layer> {
  return layerOf(compress(await packTar(entries), compression));
}

const MEDIA_TYPES = {
  oci: {
    manifest: MEDIA_TYPE.ociManifest,
    index: MEDIA_TYPE.ociIndex,
    config: MEDIA_TYPE.ociConfig,
    layer: `${MEDIA_TYPE.ociLayer}+gzip`,
  },
  docker: {
    manifest: MEDIA_TYPE.dockerManifest,
    index: MEDIA_TYPE.dockerList,
    config: 'application/vnd.docker.container.image.v1+json',
    layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  },
} as const;

export type ImageOptions = {
  readonly family?: keyof typeof MEDIA_TYPES;
  readonly architecture?: string;
  /** Layers that are named and not held. */
  readonly foreign?: readonly Descriptor[];
};

/** An image of these gzipped layers, bottom to top, whose config is true to them. */
export function buildImage(
  layers: readonly { readonly tar: Uint8Array }[],
  options: ImageOptions = {},
): TestImage {
  const types = MEDIA_TYPES[options.family ?? 'oci'];
  const packed = layers.map(({ tar }) => compress(tar, 'gzip'));
  const config = encodeJson({
    architecture: options.architecture ?? 'amd64',
    os: 'linux',
    config: {},
    rootfs: { type: 'layers', diff_ids: layers.map(({ tar }) => digestOf(tar)) },
  });
  const manifest = storeManifest({
    schemaVersion: 2,
    mediaType: types.manifest,
    config: descriptorOf(config, types.config),
    layers: [
      ...packed.map((bytes) => descriptorOf(bytes, types.layer)),
      ...(options.foreign ?? []),
    ],
  });
  return {
    manifests: [manifest],
    blobs: new Map([config, ...packed].map((bytes) => [digestOf(bytes), bytes])),
  };
}

/** An index over the images, by the architecture each was built for; `absent` are named only. */
export function buildIndex(
  images: readonly (readonly [platform: Platform, image: TestImage])[],
  options: { readonly family?: keyof typeof MEDIA_TYPES; readonly absent?: Descriptor } = {},
): TestImage {
  const children = images
    .map(([, { manifests }]) => manifests[0])
    .filter((top) => top !== undefined);
  const index = storeManifest({
    schemaVersion: 2,
    mediaType: MEDIA_TYPES[options.family ?? 'oci'].index,
    manifests: [
      ...children.map(({ descriptor }, at) => ({ ...descriptor, platform: images[at]?.[0] })),
      ...(options.absent ? [options.absent] : []),
    ],
  });
  return {
    manifests: [index, ...children],
    blobs: new Map(images.flatMap(([, { blobs }]) => [...blobs])),
  };
}

/** Encodes a manifest document and reads it back. */
export function storeManifest(
  document: Readonly<Record<string, unknown>> & { readonly mediaType: string },
): StoredManifest {
  const bytes = encodeJson(document);
  const manifest = parseManifest(bytes);
  return { descriptor: descriptorOf(bytes, document.mediaType), bytes, manifest };
}

export const descriptorOf = (bytes: Uint8Array, mediaType: string): Descriptor => ({
  mediaType,
  digest: digestOf(bytes),
  size: bytes.length,
});

/** Writes a planned tree below a folder, blobs from memory. */
export async function writeTree(
  root: string,
  files: readonly RegistryFile[],
  blobs: ReadonlyMap<Digest, Uint8Array>,
): Promise<void> {
  for (const { path, content } of files) {
    const bytes = content.kind === 'bytes' ? content.bytes : blobs.get(content.digest);
    if (bytes === undefined) throw new Error(`no blob for ${path}`);
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), bytes);
  }
}

const encodeJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
