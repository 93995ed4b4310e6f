import { IntegrityError } from '../../base/errors.ts';
import { sumSizes } from '../../base/lists.ts';
import type { Digest } from '../../base/digest.ts';
import type { RegistryClient } from '../../registry/client.ts';
import type { StoredManifest } from '../../registry/manifest.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import { parseArtifact, type IsoArtifact } from './artifact-manifest.ts';

/** An artifact, and the digest of what names all of it. */
export type FoundArtifact = { readonly artifact: IsoArtifact; readonly manifest: Digest };

/** Bytes of all manifests: 200,000 layers take 50 MB. */
const LARGEST = 64 * 2 ** 20;

/**
 * What a reference names, with the manifests of its index.
 *
 * @throws IntegrityError `artifact.not-ours`, `artifact.malformed`; RegistryError
 */
export async function fetchArtifact(
  reference: Reference,
  { client, signal }: { readonly client: RegistryClient; readonly signal: AbortSignal },
): Promise<FoundArtifact> {
  const name = formatReference(reference);
  const top = await client.fetchManifest(reference, { signal });
  const others: StoredManifest[] = [];
  if (top.manifest.kind === 'index') {
    const { manifests } = top.manifest;
    requireFew(name, sumSizes(manifests));
    parseArtifact(name, top, []); // an index of anything else is not followed
    for (const { digest } of manifests) {
      const { registry, repository } = reference;
      others.push(await client.fetchManifest({ registry, repository, digest }, { signal }));
    }
  }
  return { artifact: parseArtifact(name, top, others), manifest: top.descriptor.digest };
}

function requireFew(name: string, size: number): void {
  if (size <= LARGEST) return;
  throw new IntegrityError('artifact.malformed', `${name} has manifests of ${size} bytes`, {
    expected: `at most ${LARGEST}`,
    found: String(size),
  });
}
