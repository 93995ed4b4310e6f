import { IntegrityError } from '../../base/errors.ts';
import { sumSizes } from '../../base/lists.ts';
import type { Digest } from '../../base/digest.ts';
import type { RegistryClient } from '../../registry/client.ts';
import type { Descriptor } from '../../registry/manifest.ts';
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
    for (const { digest, size } of manifests) {
      const { registry, repository } = reference;
      const other = await client.fetchManifest({ registry, repository, digest }, { signal });
      if (other.bytes.length !== size) throw wrongSize(name, { digest, size }, other);
      others.push(other);
    }
  }
  return { artifact: parseArtifact(name, top, others), manifest: top.descriptor.digest };
}

/** The limit stands on the sizes that the index tells. */
const wrongSize = (
  name: string,
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  { bytes }: StoredManifest,
): IntegrityError =>
  new IntegrityError('artifact.malformed', `${name} tells a wrong size of ${digest}`, {
    expected: `${size} bytes`,
    found: `${bytes.length} bytes`,
    hint: 'push the ISO again',
  });

function requireFew(name: string, size: number): void {
  if (size <= LARGEST) return;
  throw new IntegrityError('artifact.malformed', `${name} has manifests of ${size} bytes`, {
    expected: `at most ${LARGEST}`,
    found: String(size),
  });
}
