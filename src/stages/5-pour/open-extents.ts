import { type FileInput, type FileDigests, baseChanged } from '../../base/disk/file-digests.ts';
import { type BlobSource, readBlob } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Extent } from '../../iso/index.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import type { ExtentOpener, OpenExtent, OpenExtentOptions } from '../../pour/index.ts';
import { parseReference, type RegistryClient } from '../../registry/index.ts';

export type ExtentSources = {
  readonly base?: FileInput | undefined;
  /** Further files, which extents name by digest. */
  readonly files?: readonly FileInput[] | undefined;
  readonly digests: FileDigests;
  readonly blobs: readonly PlannedBlob[];
  readonly cache: BlobCache;
  readonly client: Pick<RegistryClient, 'sourcesOf'>;
};

const BASE = { name: 'base ISO', local: true };

/**
 * Finds each extent's bytes: the base in its file, blobs in the cache, then in the seeds, then in every
 * repository that has them, each with its mirrors in order.
 */
export function createExtentOpener(sources: ExtentSources): ExtentOpener {
  const { cache, client } = sources;
  const blobs = new Map(sources.blobs.map((blob) => [blob.digest, blob]));
  const known = new Map<PlannedBlob, readonly BlobSource[]>();
  /** Always returns the same objects: sources that gave wrong bytes are known by identity. */
  const sourcesOf = (blob: PlannedBlob): readonly BlobSource[] => {
    const found = known.get(blob) ?? [
      ...new Set([cache.source, ...remoteSources(blob, client)]), // a seed counts as a source of every repository
    ];
    known.set(blob, found);
    return found;
  };
  return async (extent, options) => {
    if (extent.source.kind === 'base') return openBase(sources, extent, options);
    const blob = extent.digest && blobs.get(extent.digest);
    if (!blob) throw new Error(`the extent at byte ${extent.offset} has no source`);
    const ranked = options.rank(sourcesOf(blob));
    let tried = 0;
    for (const source of ranked) {
      if (!source.fileOf) break;
      const found = await source.fileOf(blob, options.onFetched);
      if (found) {
        const position = found.position + options.offset;
        return { kind: 'file', ...found, position, source };
      }
      tried += 1;
    }
    return { kind: 'stream', chunks: readBlob(ranked.slice(tried), blob, options) };
  };
}

async function openBase(
  { base, files = [], digests }: ExtentSources,
  extent: Extent,
  { offset, rank }: OpenExtentOptions,
): Promise<OpenExtent> {
  const { from } = extent.source as Extract<Extent['source'], { kind: 'base' }>;
  const file = from ? [base, ...files].find((one) => one?.digest === from.file) : base;
  if (!file)
    throw new Error(`the extent at byte ${extent.offset} is part of a base, but there is no base`);
  const [source] = rank([BASE]);
  if (!source) throw await baseChanged(file, digests);
  const position = (from?.offset ?? extent.offset) + offset;
  return { kind: 'file', path: file.path, position, source };
}

const remoteSources = (blob: PlannedBlob, client: ExtentSources['client']): BlobSource[] =>
  blob.from.flatMap((repository) => client.sourcesOf(parseReference(repository)));
