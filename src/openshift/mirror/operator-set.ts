import { ConfigError, type SealiftError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';
import type { SelectedBundle, SelectedCatalog } from '../catalog/selected-catalog.ts';
import { planDestination, type ImageSet, type Need, type WantedImage } from './image-set.ts';

/**
 * The images of every kept bundle and the catalogs themselves, one entry for each who needs one.
 *
 * @throws ConfigError `catalog.image-reference` that tells of every reference that cannot be carried,
 * with catalog, package and bundle.
 */
export function planOperatorSet(catalogs: readonly SelectedCatalog[]): ImageSet {
  const problems: string[] = [];
  const images = catalogs.flatMap((catalog) => [
    ...catalog.bundles.flatMap((bundle) => planBundle(bundle, catalog, problems)),
    planCatalog(catalog),
  ]);
  if (problems.length > 0) throw unusableReferences(problems);
  return { name: 'operator', images };
}

/** Where a catalog's image is in the node's registry. */
export function planCatalogDestination(catalog: SelectedCatalog): {
  readonly repository: string;
  readonly tag: string;
} {
  const { targetCatalog, targetTag, reference, digest } = catalog;
  const { repository, tags } = planDestination(
    reference.tag === undefined ? { ...reference, digest } : reference,
    {
      ...(targetCatalog !== undefined && { repository: targetCatalog }),
      ...(targetTag !== undefined && { tag: targetTag }),
    },
  );
  return { repository, tag: tags[0] ?? 'latest' };
}

/** A rebuilt catalog is in no registry; its manifests come from the cache by their digests. */
function planCatalog(catalog: SelectedCatalog): WantedImage {
  const { registry, repository } = catalog.reference;
  const destination = planCatalogDestination(catalog);
  return {
    name: catalog.name,
    source: { registry, repository, digest: catalog.digest },
    destination: { repository: destination.repository, tags: [destination.tag] },
    neededBy: [{ part: `catalog ${catalog.name}`, catalog: catalog.name }],
    kind: 'catalog',
    ...(catalog.rebuilt && { isMadeHere: true as const }),
  };
}

function planBundle(
  bundle: SelectedBundle,
  catalog: SelectedCatalog,
  problems: string[],
): WantedImage[] {
  const need: Need = { part: bundle.package, bundle: bundle.name, catalog: catalog.name };
  return bundle.relatedImages.flatMap(({ name, image }) => {
    const source = readReference(image);
    if (typeof source === 'string') {
      problems.push(
        `catalog ${catalog.name}: package "${bundle.package}": bundle "${bundle.name}": ${source}`,
      );
      return [];
    }
    const destination = planDestination(source);
    return [{ name: nameOf({ name, image, bundle }), source, destination, neededBy: [need] }];
  });
}

/** Many bundles leave the name of their own image empty. */
function nameOf(about: { name: string; image: string; bundle: SelectedBundle }): string {
  if (about.image === about.bundle.image) return about.bundle.name;
  return about.name === '' ? about.image : about.name;
}

/** The reference, or why it is none that can be carried. */
function readReference(text: string): Reference | string {
  if (text.startsWith('oci:')) {
    return `invalid image: ${text} 'oci' is not supported in operator catalogs`;
  }
  try {
    const reference = parseReference(text);
    if (reference.tag !== undefined || reference.digest !== undefined) return reference;
    return `error parsing image ${text}: tag and digest are empty`;
  } catch (error) {
    return `error parsing image ${text}: ${(error as SealiftError).message}`;
  }
}

const unusableReferences = (problems: readonly string[]): ConfigError =>
  new ConfigError('catalog.image-reference', problems.join('\n'), {
    expected: 'registry/repository:tag or registry/repository@sha256:...',
    hint: 'leave the bundle out with a version range, or block the image',
  });
