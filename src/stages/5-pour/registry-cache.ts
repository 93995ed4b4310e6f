import pLimit from 'p-limit';
import { digestOf, type Digest } from '../../base/digest.ts';
import { SealiftError } from '../../base/errors.ts';
import { TransientError } from '../../base/http/network-failure.ts';
import { sumSizes } from '../../base/lists.ts';
import { type BlobSource, readBlob, hasLocal } from '../../base/store/blob-source.ts';
import type { SharedCache, BlobCache } from '../../base/store/store.ts';
import type { Stage } from '../../engine/index.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import {
  type Descriptor,
  formatReference,
  parseReference,
  type Reference,
  type RegistryClient,
  type WritingClient,
} from '../../registry/index.ts';

type Blob = Pick<Descriptor, 'digest' | 'size'>;

/** The result of bringing some blobs into a repository. Bytes. */
export type FilledCache = {
  /** Bytes that this job fetched from elsewhere. */
  readonly fetched: number;
  /** Bytes that were already in the repository. */
  readonly found: number;
};

/**
 * A repository that many builds fill with the blobs that they fetch. Its content is never trusted.
 */
export type RegistryCache = SharedCache & {
  /**
   * Brings blobs into the repository that it does not have, before they are read. Each job of a
   * fleet begins at another place in the list of digests, so that jobs meet late and find blobs
   * that others brought.
   */
  readonly fill: (
    blobs: readonly Blob[],
    options: {
      /** Name of the job. */
      readonly job: string;
      readonly sourcesOf: (blob: Blob) => readonly BlobSource[];
      readonly onProgress: (bytes: number, total: number) => void;
    },
  ) => Promise<FilledCache>;
};

type Options = {
  readonly client: Pick<WritingClient, 'writerOf' | 'sourcesOf'>;
  /** Reference without a tag. */
  readonly repository: Reference;
  readonly signal: AbortSignal;
  /** Called once, when the repository cannot be used and registries are asked instead. */
  readonly warn: (message: string) => void;
};

const LANES = 4;

export function createRegistryCache({ client, repository, signal, warn }: Options): RegistryCache {
  const writer = client.writerOf(repository);
  const here = client.sourcesOf(repository);
  const filled = new Set<BlobSource>();
  let hasFailed = false;
  /**
   * Brings a blob into the repository. The registry verifies the blobs it takes, and each reader
   * verifies them again. Returns the bytes that were fetched.
   */
  const bring = async (blob: Blob, sources: readonly BlobSource[]): Promise<number> => {
    let fetched = 0;
    try {
      await writer.pushBlob({
        blob,
        open: () => readInOrder(blob, sources, signal),
        mountFrom: [],
        signal,
        onSent: (size) => (fetched += size),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      if (!hasFailed)
        warn(`the cache ${formatReference(repository)} lacks a blob: ${error.message}`);
      hasFailed = true; // the sources themselves report why they do not give it
    }
    return fetched;
  };
  const local: BlobSource = here[0] ?? { name: 'cache', local: false, open: nothing };
  return {
    local,
    over(sources) {
      const source: BlobSource = {
        ...local,
        async open(blob, options) {
          const opened = await local.open(blob, options);
          if (opened || hasFailed) return opened;
          await bring(blob, sources);
          return local.open(blob, options);
        },
      };
      filled.add(source);
      return source;
    },
    async fill(blobs, { job, sourcesOf, onProgress }) {
      const limit = pLimit(LANES);
      const total = sumSizes(blobs);
      let [fetched, done] = [0, 0];
      const work = async (blob: Blob): Promise<void> => {
        if (hasFailed) return;
        const sources = sourcesOf(blob).filter((source) => !filled.has(source));
        fetched += await bring(blob, sources);
        done += blob.size;
        onProgress(done, total);
      };
      await Promise.all(startAt(digestOf(job), blobs).map((blob) => limit(() => work(blob))));
      return { fetched, found: done - fetched };
    },
  };
}

const nothing = (): Promise<undefined> => Promise.resolve(undefined);

/** Orders blobs by digest, from this one on, and around. */
function startAt<B extends Blob>(start: Digest, blobs: readonly B[]): readonly B[] {
  const sorted = blobs.toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
  const after = sorted.filter(({ digest }) => digest >= start);
  return [...after, ...sorted.slice(0, sorted.length - after.length)];
}

/** Reads the sources in order. A source that starts over begins another upload. */
async function* readInOrder(
  { digest, size }: Blob,
  sources: readonly BlobSource[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const blob = { mediaType: 'application/octet-stream', digest, size };
  let at = 0;
  for await (const { offset, bytes, source } of readBlob(sources, blob, { offset: 0, signal })) {
    if (offset !== at) {
      const message = `${source.name} starts ${digest} over`;
      throw new TransientError('registry.upload-lost', message, { answered: true });
    }
    at += bytes.length;
    yield bytes;
  }
}

export type FillCacheInput = { readonly blobs: readonly PlannedBlob[]; readonly output: string };

type FillCacheTools = {
  readonly client: Pick<RegistryClient, 'sourcesOf'>;
  readonly cache: BlobCache;
  readonly seeds: readonly BlobSource[];
  readonly common?: RegistryCache;
};

/**
 * Brings blobs that neither this machine nor the repository that jobs share has into that
 * repository.
 */
export const fillCache: Stage<FillCacheInput, FilledCache | undefined, FillCacheTools> = {
  name: 'fill cache',
  async run({ blobs, output }, { client, cache, seeds, common }, { onProgress }) {
    if (!common) return undefined;
    const missing: PlannedBlob[] = [];
    for (const blob of blobs) {
      if (!(await hasLocal([cache.source, ...seeds], blob))) missing.push(blob);
    }
    const from = new Map(missing.map((blob) => [blob.digest, blob.from]));
    return common.fill(missing, {
      job: output,
      sourcesOf: ({ digest }) =>
        (from.get(digest) ?? []).flatMap((name) => client.sourcesOf(parseReference(name))),
      onProgress,
    });
  },
};
