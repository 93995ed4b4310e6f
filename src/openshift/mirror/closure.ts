import { formatNames } from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import type { Catalog } from '../../fbc/index.ts';
import { formatReference, readReference, type Reference } from '../../registry/index.ts';
import { listBundles } from '../catalog/selected.ts';
import type { NodeLookup } from '../node/lookup.ts';
import type { ImageReferences } from '../release/release.ts';
import type { MirrorPlan, PlannedImage } from './plan.ts';
import type { Need } from './sets.ts';

/** An image that something on the medium names. */
export type NamedImage = { readonly image: Reference; readonly neededBy: Need };

/** An image that no repository has to which the mirrors of the medium lead. Plain JSON. */
export type AbsentImage = {
  readonly image: string;
  readonly neededBy: readonly Need[];
  /** Repositories that a node asks, in order; empty if it asks none on the medium. */
  readonly asked: readonly string[];
};

/** A manifest of the medium by its place, `repository@sha256:...` and `repository:tag`. */
export type Shelf = ReadonlySet<string>;

export const listReleaseNames = ({
  version,
  components,
}: Pick<ImageReferences, 'version' | 'components'>): readonly NamedImage[] =>
  components.map(({ name, reference }) => ({
    image: reference,
    neededBy: { part: `release ${version}`, component: name },
  }));

/** A name that is not a reference is left out. */
export const listCatalogNames = (catalog: Catalog, name: string): readonly NamedImage[] =>
  listBundles(catalog).flatMap((bundle) =>
    bundle.relatedImages.flatMap(({ image }) => {
      const reference = readReference(image);
      const neededBy = { part: bundle.package, bundle: bundle.name, catalog: name };
      return reference ? [{ image: reference, neededBy }] : [];
    }),
  );

export function shelfOf({ images }: Pick<MirrorPlan, 'images'>): Shelf {
  return new Set(images.flatMap(listNames));
}

function listNames({ destination, signedCopy, manifests }: PlannedImage): readonly string[] {
  return [destination, ...(signedCopy ? [signedCopy] : [])].flatMap(({ repository, tags }) => [
    ...manifests.map(({ digest }) => `${repository}@${digest}`),
    ...tags.map((tag) => `${repository}:${tag}`),
  ]);
}

/**
 * Finds the images that are not where a node looks for them; tag and digest together are pulled by digest.
 * `leftOut` names images that were left out on purpose.
 */
export function findAbsent(
  named: readonly NamedImage[],
  { look, shelf, leftOut = [] }: Places,
): readonly AbsentImage[] {
  const isLeftOut = createLeftOutTest(leftOut);
  const byName = groupBy(named, ({ image }) => formatReference(image));
  return [...byName].flatMap(([name, [first, ...others]]) =>
    first === undefined || isLeftOut(name) || isOnShelf(first.image, { look, shelf })
      ? []
      : {
          image: name,
          neededBy: [first, ...others].map(({ neededBy }) => neededBy),
          asked: look(first.image),
        },
  );
}

export function describeAbsence({ neededBy, asked }: AbsentImage): string {
  const needs = new Set(
    neededBy.map(({ component, bundle, part }) =>
      component === undefined ? (bundle ?? part) : `${component} of ${part}`,
    ),
  );
  const places =
    asked.length === 0 ? 'no mirror set leads to it' : `looked in ${formatNames(asked)}`;
  return `(needed by ${formatNames([...needs])}): ${places}`;
}

type Places = {
  readonly look: NodeLookup;
  readonly shelf: Shelf;
  readonly leftOut?: readonly string[] | undefined;
};

/** Compares digests, if there are any. */
export function createLeftOutTest(leftOut: readonly string[]): (name: string) => boolean {
  const onPurpose = new Set(leftOut.map(versionOf));
  return (name) => onPurpose.has(versionOf(name));
}

/** The digest, or the whole name of an image without one. */
const versionOf = (name: string): string => name.replace(/^.*@/, '');

const isOnShelf = (image: Reference, { look, shelf }: Omit<Places, 'leftOut'>): boolean =>
  look(image).some((repository) => shelf.has(repository + suffixOf(image)));

/** The end of an image's name on a shelf. */
const suffixOf = ({ tag, digest }: Reference): string =>
  digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;

export function createShelfLookup(shelf: Shelf): NodeLookup {
  const bySuffix = groupBy(shelf, (name) => name.slice(name.search(/[@:]/)));
  return (image) => {
    const suffix = suffixOf(image);
    return (bySuffix.get(suffix) ?? []).map((name) => name.slice(0, -suffix.length));
  };
}
