import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { digestOf, type Digest } from '../base/digest.ts';
import { ConfigError, IntegrityError, SealiftError } from '../base/errors.ts';
import type { BlobCache } from '../registry/blob-cache.ts';
import type { OpenBlob } from '../registry/blob-source.ts';
import type { RegistryClient } from '../registry/client.ts';
import type { Descriptor, Platform } from '../registry/descriptor.ts';
import type { Layer } from '../registry/layers.ts';
import {
  isForPlatform,
  MAX_MANIFEST_SIZE,
  parseManifest,
  type ImageManifest,
  type StoredManifest,
} from '../registry/manifest.ts';
import { formatReference, type Reference } from '../registry/reference.ts';
import { restate } from '../registry/source-answers.ts';

/** What we ask of a registry client. */
type ImageClient = Pick<RegistryClient, 'fetchManifest' | 'resolveTag' | 'sourcesOf'>;

/** What we ask of the cache that is addressed by digest. */
type ImageCache = Pick<BlobCache, 'source' | 'ensure' | 'has' | 'put'>;

export type ImageTools = {
  readonly client: ImageClient;
  readonly cache: ImageCache;
  readonly signal: AbortSignal;
  /** Bytes fetched so far, of whatever is being fetched. */
  readonly onProgress?: (bytes: number) => void;
};

/** An image of one platform: its own manifest, and the one the reference names. */
export type OpenImage = {
  /** By digest, that of the manifest or index the reference names. */
  readonly reference: Reference;
  /** The index, or the same as `image`. */
  readonly top: StoredManifest;
  readonly image: ImageManifest;
};

/**
 * A manifest or index. One that is asked for by digest never changes, so it comes from the cache
 * once it was fetched; a tag is always asked for.
 *
 * @throws what the client throws, with the name of the image
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

/** The same; errors are those of the client, which images of one registry may share. */
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

/**
 * The image that a node of this platform would run.
 *
 * @throws ConfigError `image.no-platform` when an index has none for it, and what fetching throws.
 */
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

/** First match wins, as everywhere. */
function selectChild(
  children: readonly Descriptor[],
  platform: Platform,
  reference: Reference,
): Descriptor {
  const child = children.find((entry) => isForPlatform(entry, platform));
  if (child) return child;
  throw noPlatform(reference, platform, formatPlatforms(children));
}

/**
 * A small blob, whole: a config.
 *
 * @throws IntegrityError `blob.too-large` above the size of a manifest, and what fetching throws
 */
export async function readBlob(
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
  return readFile(await ensureBlob(tools, reference, blob));
}

/** The layers bottom to top; each is fetched into the cache when it is opened for the first time. */
export function openLayers(
  tools: ImageTools,
  reference: Reference,
  layers: readonly Descriptor[],
): Layer[] {
  return layers.map((descriptor) => ({
    descriptor,
    open: async () =>
      createReadStream(await ensureBlob(tools, reference, descriptor), { highWaterMark: 1 << 20 }),
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

function ensureBlob(tools: ImageTools, reference: Reference, blob: Descriptor): Promise<string> {
  const { client, cache, signal, onProgress } = tools;
  return cache.ensure(blob, client.sourcesOf(reference), {
    signal,
    ...(onProgress && { onProgress }),
  });
}

/** Whatever the cache has under this name is verified: other bytes count as none. */
async function readCached(tools: ImageTools, digest: Digest): Promise<StoredManifest | undefined> {
  const size = await findSize(tools, digest);
  if (size === undefined || size > MAX_MANIFEST_SIZE) return undefined;
  const opened = await openCached(tools, { digest, size });
  if (opened === undefined) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of opened.body as AsyncIterable<Buffer>) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (digestOf(bytes) !== digest) return undefined;
  const manifest = parseManifest(bytes);
  return { descriptor: { mediaType: manifest.mediaType, digest, size }, bytes, manifest };
}

/**
 * A component is known by its digest alone, but the cache opens a blob only for who knows its size:
 * nothing has no bytes, and the refusal says how many there are.
 */
async function findSize(tools: ImageTools, digest: Digest): Promise<number | undefined> {
  if (!(await tools.cache.has(digest))) return undefined;
  try {
    const opened = await openCached(tools, { digest, size: 0 });
    opened?.body.destroy();
    return undefined;
  } catch (error) {
    if (!(error instanceof IntegrityError) || error.code !== 'blob.too-long') throw error;
    return Number(error.found);
  }
}

const openCached = (
  { cache, signal }: ImageTools,
  blob: { readonly digest: Digest; readonly size: number },
): Promise<OpenBlob | undefined> =>
  cache.source.open({ mediaType: 'application/octet-stream', ...blob }, { offset: 0, signal });
