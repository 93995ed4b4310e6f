import { RegistryError } from '../../base/errors.ts';
import type { FileInput } from '../../base/disk/file-input.ts';
import type { ExtentOpener, ExtentSource, OpenExtent } from '../../iso/pour/lane.ts';
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
  readonly client: Pick<RegistryClient, 'sourcesOf'>;
};

const BASE = { name: 'base ISO', local: true };

/**
 * Finds each extent's bytes: the base in its file, blobs in the cache, then in every repository that
 * has them, each with its mirrors in order.
 */
export function createExtentOpener(sources: ExtentSources): ExtentOpener {
  const blobs = new Map(sources.blobs.map((blob) => [blob.digest, blob]));
  const remotes = new Map<PlannedBlob, readonly BlobSource[]>();
  /** Always the same objects: those that gave wrong bytes are refused by identity. */
  const remotesOf = (blob: PlannedBlob): readonly BlobSource[] => {
    const known = remotes.get(blob) ?? remoteSources(blob, sources.client);
    remotes.set(blob, known);
    return known;
  };
  return async (extent, { offset, refused, signal }) => {
    if (extent.source.kind === 'base') {
      return openBase(sources, { position: extent.offset + offset, refused });
    }
    const blob = extent.digest && blobs.get(extent.digest);
    if (!blob) throw noSource(extent.paths[0] ?? `extent at byte ${extent.offset}`);
    const { cache } = sources;
    if (!refused.has(cache.source) && (await cache.has(blob.digest))) {
      const path = cache.pathOf(blob.digest);
      return { kind: 'file', path, position: offset, source: cache.source };
    }
    const remote = remotesOf(blob).filter((source) => !refused.has(source));
    const [first] = remote;
    if (first === undefined) throw noSource(`blob ${blob.digest}`);
    const path = await first.fileOf?.(blob);
    if (path !== undefined) return { kind: 'file', path, position: offset, source: first };
    return { kind: 'stream', chunks: readBlob(remote, blob, { offset, signal }) };
  };
}

async function openBase(
  { base, digests }: ExtentSources,
  { position, refused }: { readonly position: number; readonly refused: ReadonlySet<ExtentSource> },
): Promise<OpenExtent> {
  if (!base) throw new Error(`bytes at ${position} are of a base that is not there`);
  if (refused.has(BASE)) throw await baseChanged(base, digests);
  return { kind: 'file', path: base.path, position, source: BASE };
}

const remoteSources = (blob: PlannedBlob, client: ExtentSources['client']): BlobSource[] =>
  blob.from.flatMap((repository) => client.sourcesOf(parseReference(repository)));

const noSource = (what: string): RegistryError =>
  new RegistryError('blob.no-source', `no source is left for ${what}: all gave wrong bytes`, {
    hint: 'compare the mirrors with the origin, or run again later',
  });
