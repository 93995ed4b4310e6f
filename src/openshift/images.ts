import { createReadStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Digest, digestOf, hexOf } from '../base/digest.ts';
import { nameAside } from '../base/disk/aside.ts';
import { explainDiskFailure } from '../base/disk/disk-errors.ts';
import { type FileInput, findCached, cacheFile } from '../base/disk/file-digests.ts';
import { digestFile } from '../base/disk/files.ts';
import { restate } from '../base/download/source-answers.ts';
import { ConfigError, IntegrityError, SealiftError } from '../base/errors.ts';
import { DOCUMENT_TIME } from '../base/http/body.ts';
import { withoutUndefined, maxOf } from '../base/lists.ts';
import type { BlobCache } from '../base/store/blob-cache.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import {
  type Descriptor,
  extractFile,
  formatReference,
  type ImageManifest,
  isForPlatform,
  type Layer,
  MAX_MANIFEST_SIZE,
  parseStored,
  type Platform,
  type Reference,
  type RegistryClient,
  type StoredManifest,
} from '../registry/index.ts';
import { platformOf, type RpmArchitecture } from './release/bundle.ts';

/** The methods that we use. */
type ImageClient = Pick<RegistryClient, 'fetchManifest' | 'resolveTag' | 'sourcesOf'>;

/** The methods that we use. */
type ImageCache = Pick<BlobCache, 'read' | 'ensure' | 'put'>;

export type ImageTools = {
  readonly client: ImageClient;
  readonly cache: ImageCache;
  readonly signal: AbortSignal;
  /** Called with the bytes fetched so far, for any current fetch. */
  readonly onProgress?: (bytes: number) => void;
};

/** An image of one platform: its own manifest, and the one that the reference names. */
export type OpenImage = {
  /** Reference by digest, that of the manifest or index that the reference names. */
  readonly reference: Reference;
  /** The index, or the same as `image`. */
  readonly top: StoredManifest;
  readonly image: ImageManifest;
};

/**
 * A manifest that is named by digest comes from the cache after the first fetch; a tag is always requested.
 *
 * @throws the errors of the client, with the name of the image
 */
export async function readManifest(
  tools: ImageTools,
  reference: Reference,
): Promise<StoredManifest> {
  try {
    return await askForManifest(tools, reference);
  } catch (error) {
    tools.signal.throwIfAborted();
    if (!(error instanceof SealiftError)) throw error;
    const name = formatReference(reference);
    throw restate(error, `image ${name} cannot be fetched: ${error.message}`);
  }
}

/** {@link readManifest} with the errors of the client, which images of one registry may share. */
export async function askForManifest(
  tools: ImageTools,
  reference: Reference,
): Promise<StoredManifest> {
  const { client, cache, signal } = tools;
  const known = reference.digest && (await readCached(tools, reference.digest));
  if (known !== undefined) return known;
  const fetched = await client.fetchManifest(reference, { signal });
  await cache.put(fetched.bytes);
  return fetched;
}

/** @throws ConfigError `image.no-platform` if an index has no image for it, and the errors of fetching. */
export async function openImage(
  tools: ImageTools,
  reference: Reference,
  platform: Platform,
): Promise<OpenImage> {
  const top = await readManifest(tools, reference);
  const { registry, repository } = reference;
  const pinned = { registry, repository, digest: top.descriptor.digest };
  if (top.manifest.kind === 'manifest') return { reference: pinned, top, image: top.manifest };
  const child = selectChild(top.manifest.manifests, platform, reference);
  const { manifest } = await readManifest(tools, { ...pinned, digest: child.digest });
  if (manifest.kind === 'manifest') return { reference: pinned, top, image: manifest };
  throw noPlatform(reference, platform, 'another index');
}

/** The first match wins, as in other clients. */
function selectChild(
  children: readonly Descriptor[],
  platform: Platform,
  reference: Reference,
): Descriptor {
  const child = children.find((entry) => isForPlatform(entry, platform));
  if (child) return child;
  throw noPlatform(reference, platform, formatPlatforms(children));
}

/** @throws IntegrityError `blob.too-large` above the size of a manifest, and the errors of fetching */
export async function fetchBlob(
  tools: ImageTools,
  reference: Reference,
  blob: Descriptor,
): Promise<Uint8Array> {
  if (blob.size > MAX_MANIFEST_SIZE) {
    throw new IntegrityError(
      'blob.too-large',
      `config ${blob.digest} of image ${formatReference(reference)} should have at most ${MAX_MANIFEST_SIZE} bytes, but has ${blob.size}`,
      { expected: `at most ${MAX_MANIFEST_SIZE}`, found: String(blob.size) },
    );
  }
  return readFile(await ensureBlob(tools, reference, { blob, bodyTime: DOCUMENT_TIME }));
}

/** Bottom to top; each is fetched into the cache when it is opened for the first time. */
export function openLayers(
  tools: ImageTools,
  reference: Reference,
  layers: readonly Descriptor[],
): Layer[] {
  return layers.map((descriptor) => ({
    descriptor,
    open: async () =>
      createReadStream(await ensureBlob(tools, reference, { blob: descriptor }), {
        highWaterMark: 1 << 20,
      }),
  }));
}

export const noPlatform = (reference: Reference, platform: Platform, found: string): ConfigError =>
  new ConfigError(
    'image.no-platform',
    `image ${formatReference(reference)} has nothing for ${platform.os}/${platform.architecture}, only ${found}`,
    { expected: `${platform.os}/${platform.architecture}`, found },
  );

/** `linux/amd64, linux/arm64`, for errors. */
export const formatPlatforms = (children: readonly Descriptor[]): string =>
  children
    .map(({ platform }) => (platform ? `${platform.os}/${platform.architecture}` : 'no platform'))
    .join(', ') || 'no images at all';

function ensureBlob(
  { client, cache, signal, onProgress }: ImageTools,
  reference: Reference,
  { blob, bodyTime }: Wanted,
): Promise<string> {
  return cache.ensure(blob, client.sourcesOf(reference), {
    signal,
    ...withoutUndefined({ onProgress, bodyTime }),
  });
}

type Wanted = { readonly blob: Descriptor; readonly bodyTime?: number };

async function readCached(
  { cache }: Pick<ImageTools, 'cache'>,
  digest: Digest,
): Promise<StoredManifest | undefined> {
  const bytes = await cache.read(digest);
  return bytes && parseStored(bytes, digest);
}

/** @throws IntegrityError `cache.missing` */
export async function readPlanned(
  cache: Pick<BlobCache, 'read'>,
  { digest }: Descriptor,
): Promise<Uint8Array> {
  const bytes = await cache.read(digest);
  if (bytes) return bytes;
  throw new IntegrityError(
    'cache.missing',
    `manifest ${digest} is no longer in the cache, or is damaged`,
    {
      hint: 'build again',
    },
  );
}

export type ComponentFile = {
  readonly reference: Reference;
  readonly arch: RpmArchitecture;
  readonly path: string;
  readonly directory: string;
  /** Suffix of the file: `.iso`, or empty. */
  readonly suffix: string;
  /** The value that `finish` depends on, so that a file finished differently is another file. */
  readonly finishKey?: string;
  /** Changes the file before it counts as extracted. */
  readonly finish?: (path: string) => Promise<void>;
};

/**
 * One file of an image, stored under the digest of its layers: the next request costs a check of its size and
 * time. A file that was modified since is digested again.
 */
export async function extractComponentFile(
  wanted: ComponentFile,
  tools: ImageTools,
): Promise<FileInput> {
  const { reference, image } = await openImage(tools, wanted.reference, platformOf(wanted.arch));
  const key = digestOf(
    formatCanonicalJson({
      layers: image.layers.map(({ digest }) => digest),
      path: wanted.path,
      finish: wanted.finishKey,
    }),
  );
  const path = join(wanted.directory, `${hexOf(key)}${wanted.suffix}`);
  const known = await findCached(path);
  if (known) return known;
  const aside = await nameAside(path); // another build of this work directory may be extracting it, too
  try {
    const layers = openLayers(tools, reference, image.layers);
    const { signal } = tools;
    const { digest } = await extractFile(layers, wanted.path, aside, { signal });
    if (wanted.finish === undefined) return await cacheFile(aside, path, digest);
    await wanted.finish(aside);
    return await cacheFile(aside, path, await digestFile(aside, signal));
  } catch (error) {
    await rm(aside, { force: true });
    const needed = maxOf(image.layers.map(({ size }) => size));
    throw explainDiskFailure(error, { directory: wanted.directory, needed });
  }
}
