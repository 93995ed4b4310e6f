import { ConfigError, type SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { maskLogin } from '../../base/text/redact.ts';
import { parseReference, type Reference } from '../../registry/index.ts';
import type { SelectedBundle, SelectedCatalog } from '../catalog/selected.ts';
import {
  type BlockedImage,
  type FindBlocking,
  planDestination,
  type ImageSet,
  type Need,
  type WantedImage,
} from './sets.ts';

export type OperatorImages = {
  readonly set: ImageSet;
  /** References that could not be carried, but are blocked. */
  readonly blocked: readonly BlockedImage[];
};

type Collected = { readonly problems: Unusable[]; readonly blocked: Map<string, BlockedImage> };

type Unusable = { readonly line: string; readonly image: string };

/**
 * One entry for each part that needs an image. A blocked image need not be a reference.
 *
 * @throws ConfigError `catalog.image-reference` that lists every reference that cannot be carried,
 * with catalog, package and bundle.
 */
export function planOperatorSet(
  catalogs: readonly SelectedCatalog[],
  findBlocking: FindBlocking,
): OperatorImages {
  const collected: Collected = { problems: [], blocked: new Map() };
  const images = catalogs.flatMap((catalog) => [
    ...catalog.bundles.flatMap((bundle) =>
      planBundle(bundle, { catalog, findBlocking, collected }),
    ),
    planCatalog(catalog),
  ]);
  if (collected.problems.length > 0) throw unusableReferences(collected.problems);
  return { set: { name: 'operator', images }, blocked: [...collected.blocked.values()] };
}

export function planCatalogDestination(catalog: SelectedCatalog): {
  readonly repository: string;
  readonly tag: string;
} {
  const { targetCatalog, targetTag, reference, digest } = catalog;
  const { repository, tags } = planDestination(
    reference.tag === undefined ? { ...reference, digest } : reference,
    {
      ...withoutUndefined({ repository: targetCatalog, tag: targetTag }),
    },
  );
  return { repository, tag: tags[0] ?? 'latest' };
}

/** Does not contain directories of this machine. */
export function nameCatalog(catalog: SelectedCatalog): string {
  if (!catalog.isLocal) return catalog.name;
  const { repository, tag } = planCatalogDestination(catalog);
  return `${repository}:${tag}`;
}

/** A rebuilt or local catalog is in no registry; its manifests come from the cache by their digests. */
function planCatalog(catalog: SelectedCatalog): WantedImage {
  const { registry, repository } = catalog.reference;
  const destination = planCatalogDestination(catalog);
  return {
    name: nameCatalog(catalog),
    source: { registry, repository, digest: catalog.digest },
    destination: { repository: destination.repository, tags: [destination.tag] },
    neededBy: [{ part: `catalog ${catalog.name}`, catalog: catalog.name }],
    kind: 'catalog',
    ...((catalog.rebuilt ?? catalog.isLocal) && { isMadeHere: true as const }),
  };
}

type BundleOptions = {
  readonly catalog: SelectedCatalog;
  readonly findBlocking: FindBlocking;
  readonly collected: Collected;
};

function planBundle(
  bundle: SelectedBundle,
  { catalog, findBlocking, collected }: BundleOptions,
): WantedImage[] {
  const need: Need = { part: bundle.package, bundle: bundle.name, catalog: catalog.name };
  return bundle.relatedImages.flatMap(({ name, image }) => {
    const source = readReference(image);
    if (typeof source === 'string') {
      const pattern = findBlocking([image]);
      const where = `catalog ${catalog.name}: package "${bundle.package}": bundle "${bundle.name}"`;
      if (pattern === undefined) collected.problems.push({ line: `${where}: ${source}`, image });
      else collected.blocked.set(image, { image, pattern });
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

/** The reference, or the reason why the media cannot carry it. */
function readReference(text: string): Reference | string {
  if (text.startsWith('oci:')) {
    return `invalid image: ${text} 'oci' is not supported in operator catalogs`;
  }
  try {
    const reference = parseReference(text);
    if (reference.tag !== undefined || reference.digest !== undefined) return reference;
    return `error parsing image ${text}: tag and digest are empty`;
  } catch (error) {
    return `error parsing image ${maskLogin(text)}: ${(error as SealiftError).message}`;
  }
}

/** The pattern in the hint blocks this image and no other. */
function unusableReferences(problems: readonly Unusable[]): ConfigError {
  const images = [...new Set(problems.map(({ image }) => image))];
  const pattern = `^${escapePattern(images[0] ?? '')}$`;
  const others = images.length > 1 ? ' and the others likewise' : '';
  return new ConfigError('catalog.image-reference', problems.map(({ line }) => line).join('\n'), {
    expected: 'registry/repository:tag or registry/repository@sha256:...',
    hint: `add '${pattern}' to blockedImages${others}, or the bundle to skipBundles of its package`,
  });
}

/** Escapes like Go's `regexp.QuoteMeta`. */
const escapePattern = (text: string): string => text.replaceAll(/[\\.+*?()|[\]{}^$]/g, '\\$&');
