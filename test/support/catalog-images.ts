import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf, type Digest } from '../../src/base/digest.ts';
import { MEDIA_TYPE } from '../../src/registry/manifest.ts';
import {
  compress,
  descriptorOf,
  packTar,
  storeManifest,
  type Compression,
  type LayerEntry,
  type TestImage,
} from './images.ts';

export type CatalogImageOptions = {
  readonly family?: 'oci' | 'docker';
  readonly architecture?: string;
  /** '' leaves the label out. */
  readonly label?: string;
  /** What the config has besides. */
  readonly config?: Readonly<Record<string, unknown>>;
};

export type CatalogLayer = {
  readonly entries: readonly (readonly [name: string, entry: LayerEntry])[];
  readonly compression?: Compression;
};

const LABEL = 'operators.operatorframework.io.index.configs.v1';

/** A catalog image of the usual shape, whose config is true to its layers. */
export async function buildCatalogImage(
  layers: readonly CatalogLayer[],
  options: CatalogImageOptions = {},
): Promise<TestImage> {
  const { family = 'oci', architecture = 'amd64', label = '/configs' } = options;
  const isDocker = family === 'docker';
  const packed = await Promise.all(
    layers.map(async ({ entries, compression = 'gzip' }) => {
      const tar = await packTar(entries);
      const bytes = compress(tar, compression);
      return { tar, bytes, descriptor: descriptorOf(bytes, layerType(isDocker, compression)) };
    }),
  );
  const created = '2025-01-02T03:04:05Z';
  const config = Buffer.from(
    JSON.stringify({
      architecture,
      os: 'linux',
      created,
      config: {
        Entrypoint: ['/bin/opm'],
        Cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
        Labels: { vendor: 'Someone', ...(label !== '' && { [LABEL]: label }) },
      },
      rootfs: { type: 'layers', diff_ids: packed.map(({ tar }) => digestOf(tar)) },
      history: packed.map(() => ({ created, created_by: 'COPY' })),
      ...options.config,
    }),
  );
  const manifest = storeManifest({
    schemaVersion: 2,
    mediaType: isDocker ? MEDIA_TYPE.dockerManifest : MEDIA_TYPE.ociManifest,
    config: descriptorOf(
      config,
      isDocker ? 'application/vnd.docker.container.image.v1+json' : MEDIA_TYPE.ociConfig,
    ),
    layers: packed.map(({ descriptor }) => descriptor),
    ...(!isDocker && { annotations: { 'org.example.kept': 'yes' } }),
  });
  const blobs = [config, ...packed.map(({ bytes }) => bytes)];
  return { manifests: [manifest], blobs: new Map(blobs.map((bytes) => [digestOf(bytes), bytes])) };
}

function layerType(isDocker: boolean, compression: Compression): string {
  if (!isDocker) return MEDIA_TYPE.ociLayer + (compression === 'none' ? '' : `+${compression}`);
  const type = 'application/vnd.docker.image.rootfs.diff.tar';
  return compression === 'none' ? type : `${type}.${compression}`;
}

/** Writes images into an OCI image layout, each under a name; '' gives none. */
export async function writeOciLayout(
  directory: string,
  images: readonly (readonly [name: string, image: TestImage])[],
): Promise<void> {
  const blobs = join(directory, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const put = (digest: Digest, bytes: Uint8Array): Promise<void> =>
    writeFile(join(blobs, hexOf(digest)), bytes);
  for (const [, image] of images) {
    for (const { descriptor, bytes } of image.manifests) await put(descriptor.digest, bytes);
    for (const [digest, bytes] of image.blobs) await put(digest, bytes);
  }
  const manifests = images.map(([name, image]) => ({
    ...image.manifests[0]?.descriptor,
    ...(name !== '' && { annotations: { 'org.opencontainers.image.ref.name': name } }),
  }));
  await writeFile(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
}
