import { createHash } from 'node:crypto';
import type { Digest } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Platform } from '../../registry/manifest.ts';
import { pathTo } from '../../registry/layout/distribution.ts';
import type { Layer } from '../../registry/layers/read.ts';
import { isForPlatform, parseManifest, type ImageManifest } from '../../registry/manifest.ts';
import { readManifestBytes } from '../../registry/layout/tree.ts';
import type { RegistryTree } from '../../registry/layout/tree.ts';

type Wanted = {
  /** What an error calls the image. */
  readonly name: string;
  readonly digest: Digest;
  readonly platform: Platform;
};

/**
 * The layers of an image in the registry of a medium, bottom to top. A layer is digested whole before
 * it is read.
 *
 * @throws IntegrityError `medium.no-image`, `medium.blob-damaged` and those of reading a manifest;
 * ConfigError `image.no-platform`
 */
export async function openMediumLayers(
  tree: RegistryTree,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<Layer[]> {
  const { layers } = await readImage(tree, wanted);
  const verified = new Set<Digest>();
  return layers.map((descriptor) => ({
    descriptor,
    async open() {
      const { digest } = descriptor;
      if (!verified.has(digest)) await verifyBlob(tree, { ...wanted, digest }, signal);
      verified.add(digest);
      return tree.stream(pathTo.blob(digest));
    },
  }));
}

async function readImage(tree: RegistryTree, wanted: Wanted): Promise<ImageManifest> {
  const manifest = await readManifest(tree, wanted);
  if (manifest.kind === 'manifest') return manifest;
  const child = manifest.manifests.find((entry) => isForPlatform(entry, wanted.platform));
  const image = child && (await readManifest(tree, { ...wanted, digest: child.digest }));
  if (image?.kind === 'manifest') return image;
  const { os, architecture } = wanted.platform;
  throw new ConfigError(
    'image.no-platform',
    `${wanted.name} on the medium has nothing for ${os}/${architecture}`,
  );
}

async function readManifest(tree: RegistryTree, { name, digest }: Wanted) {
  const bytes = await readManifestBytes(tree, digest);
  if (bytes) return parseManifest(bytes);
  throw new IntegrityError('medium.no-image', `the medium does not carry ${name}`, {
    expected: digest,
    found: 'no such manifest in its registry',
    hint: 'give a live ISO that carries the whole release',
  });
}

async function verifyBlob(
  tree: RegistryTree,
  { name, digest }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const path = pathTo.blob(digest);
  const hash = createHash('sha256');
  if ((await tree.size(path)) !== undefined) {
    for await (const piece of tree.stream(path) as AsyncIterable<Uint8Array>) {
      signal.throwIfAborted();
      hash.update(piece);
    }
  }
  const found = `sha256:${hash.digest('hex')}`;
  if (found === digest) return;
  throw new IntegrityError('medium.blob-damaged', `a layer of ${name} on the medium is damaged`, {
    expected: digest,
    found,
    hint: 'run "sealift verify" on the medium, and copy it again',
  });
}
