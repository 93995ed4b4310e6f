import type { Stage } from '../../engine/stage.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import { hasLocal, type BlobSource } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/store.ts';
import type { FilledCache, RegistryCache } from '../../registry/cache/registry-cache.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { parseReference } from '../../registry/reference.ts';

export type FillCacheInput = { readonly blobs: readonly PlannedBlob[]; readonly output: string };

type FillCacheTools = {
  readonly client: Pick<RegistryClient, 'sourcesOf'>;
  readonly cache: BlobCache;
  readonly seeds: readonly BlobSource[];
  readonly common?: RegistryCache;
};

/** Brings what neither this machine nor the repository that jobs share has into that repository. */
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
