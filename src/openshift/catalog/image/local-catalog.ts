import { ConfigError } from '../../../base/errors.ts';
import type { LocalCatalog } from '../../../fbc/source.ts';
import { blobsOf } from '../../../registry/manifest.ts';
import { openOciLayout } from '../../../registry/layout/oci-layout.ts';
import type { Reference } from '../../../registry/reference.ts';
import { readManifest, type ImageTools } from '../../image-access.ts';
import { readImage, type Selection } from '../../mirror/fetch-images.ts';
import type { Release } from '../../release/release-payload.ts';

/** In place of a registry for images that are in none; no host can have this name (RFC 6761 6.4). */
const NO_REGISTRY = 'local.invalid';

/** The component that catalogs are built on: it has `opm`. */
const SERVER = 'operator-registry';

/**
 * Copies an image of an OCI image layout to the cache, verified: its manifests, and the blobs of the
 * platforms that are carried. All of it is read from there, by digest, and no registry is asked.
 *
 * @throws what `openOciLayout` and reading blobs throw
 */
export async function importOciLayout(
  { path, tag }: Extract<LocalCatalog, { kind: 'oci' }>,
  repository: string,
  { selection, ...tools }: ImageTools & { readonly selection: Selection },
): Promise<Reference> {
  const { signal, onProgress } = tools;
  const layout = await openOciLayout(path, tag);
  const read = (reference: Reference) => readManifest({ ...layout, signal }, reference);
  const manifests = await readImage(read, layout.reference, selection);
  const sources = layout.client.sourcesOf(layout.reference);
  for (const { bytes, manifest } of manifests) {
    await tools.cache.put(bytes);
    for (const blob of blobsOf(manifest)) {
      await tools.cache.ensure(blob, sources, { signal, ...(onProgress && { onProgress }) });
    }
  }
  const [top] = manifests;
  if (top === undefined) throw new RangeError('an image has a manifest');
  return { registry: NO_REGISTRY, repository, digest: top.descriptor.digest };
}

/**
 * The image of a release that a catalog out of a directory is put into.
 *
 * @throws ConfigError `catalog.no-server`
 */
export function findCatalogServer({ version, components }: Release): Reference {
  const found = components.find(({ name }) => name === SERVER);
  if (found) return found.reference;
  throw new ConfigError(
    'catalog.no-server',
    `release ${version} has no component ${SERVER} to serve a catalog out of a directory`,
    { expected: SERVER, hint: 'build an image of the catalog and name it, or its OCI layout' },
  );
}
