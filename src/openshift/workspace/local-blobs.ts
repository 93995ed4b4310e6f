import { IntegrityError } from '../../base/errors.ts';
import { hasLocal } from '../../base/store/blob-source.ts';
import { parseReference, type RegistryClient } from '../../registry/index.ts';
import type { MirrorPlan, PlannedBlob } from '../mirror/plan.ts';

/** Number of images named in the error; the others are counted. */
const MOST_NAMED = 10;

/**
 * By size, so that a tree with holes is refused before anything is poured. The pour checks digests.
 *
 * @throws IntegrityError `workspace.blobs-missing`, `blob.too-long`, `blob.too-short`
 */
export async function requireLocalBlobs(
  { blobs }: Pick<MirrorPlan, 'blobs'>,
  { client }: { readonly client: Pick<RegistryClient, 'sourcesOf'> },
): Promise<void> {
  const missing: PlannedBlob[] = [];
  for (const blob of blobs) {
    const sources = blob.from.flatMap((name) => client.sourcesOf(parseReference(name)));
    if (!(await hasLocal(sources, blob))) missing.push(blob);
  }
  if (missing.length === 0) return;
  const lines = missing
    .slice(0, MOST_NAMED)
    .map(({ digest, users }) => `${digest} (needed by ${users.join(', ')})`);
  const others = missing.length > MOST_NAMED ? [`and ${missing.length - MOST_NAMED} more`] : [];
  throw new IntegrityError(
    'workspace.blobs-missing',
    `${missing.length} of ${blobs.length} blobs are not in the mirror's data:\n${[...lines, ...others].join('\n')}`,
    {
      expected: `${blobs.length} blobs`,
      found: `${blobs.length - missing.length} blobs`,
      hint: 'mirror these images again',
    },
  );
}
