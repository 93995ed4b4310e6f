import { RegistryError } from '../../base/errors.ts';
import type { FileInput } from '../../base/disk/file-input.ts';
import type { ExtentChunk, ExtentOpener, OpenExtent } from '../../iso/pour/lane.ts';
import type { FileDigests } from '../../openshift/files/file-digests.ts';
import { baseChanged } from '../../openshift/files/unchanged-file.ts';
import type { PlannedBlob } from '../../openshift/mirror/mirror-plan.ts';
import type { BlobCache } from '../../registry/cache/blob-cache.ts';
import type { BlobSource } from '../../registry/blob-source.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { readBlob } from '../../registry/read-blob.ts';
import { parseReference } from '../../registry/reference.ts';

export type ExtentSources = {
  readonly base?: FileInput;
  readonly digests: FileDigests;
  readonly blobs: readonly PlannedBlob[];
  readonly cache: BlobCache;
  readonly client: RegistryClient;
};

const BASE_SOURCE = 'base ISO';

/**
 * Finds each extent's bytes: the base in its file, blobs in the cache, then in every repository that
 * has them, each with its mirrors in order.
 */
export function createExtentOpener(sources: ExtentSources): ExtentOpener {
  const blobs = new Map(sources.blobs.map((blob) => [blob.digest, blob]));
  return async (extent, { offset, refused, signal }) => {
    if (extent.source.kind === 'base') {
      return openBase(sources, { position: extent.offset + offset, refused });
    }
    const blob = extent.digest && blobs.get(extent.digest);
    if (!blob) throw noSource(extent.paths[0] ?? `extent at byte ${extent.offset}`);
    const { cache } = sources;
    if (!refused.has(cache.source.name) && (await cache.has(blob.digest))) {
      const path = cache.pathOf(blob.digest);
      return { kind: 'file', path, position: offset, source: cache.source.name };
    }
    const remote = remoteSources(blob, sources.client).filter(({ name }) => !refused.has(name));
    const [first] = remote;
    if (first === undefined) throw noSource(`blob ${blob.digest}`);
    const path = await first.fileOf?.(blob);
    if (path !== undefined) return { kind: 'file', path, position: offset, source: first.name };
    return { kind: 'stream', chunks: toChunks(readBlob(remote, blob, { offset, signal })) };
  };
}

async function openBase(
  { base, digests }: ExtentSources,
  { position, refused }: { readonly position: number; readonly refused: ReadonlySet<string> },
): Promise<OpenExtent> {
  if (!base) throw new Error(`bytes at ${position} are of a base that is not there`);
  if (refused.has(BASE_SOURCE)) throw await baseChanged(base, digests);
  return { kind: 'file', path: base.path, position, source: BASE_SOURCE };
}

const remoteSources = (blob: PlannedBlob, client: RegistryClient): BlobSource[] =>
  blob.from.flatMap((repository) => client.sourcesOf(parseReference(repository)));

async function* toChunks(
  chunks: AsyncIterable<{ offset: number; bytes: Uint8Array; source: BlobSource }>,
): AsyncGenerator<ExtentChunk> {
  for await (const { offset, bytes, source } of chunks) {
    yield { offset, bytes, source: source.name, local: source.local };
  }
}

const noSource = (what: string): RegistryError =>
  new RegistryError('blob.no-source', `no source is left for ${what}: all gave wrong bytes`, {
    hint: 'compare the mirrors with the origin, or run again later',
  });
