import { formatReference, type Reference } from '../../registry/index.ts';
import { createNodeLookup, type NodeLookup } from '../node/lookup.ts';
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

/** Every name by which a node can pull the images of a plan. */
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
 * Finds the images that a medium names and does not have where a node looks for them. An image
 * that is named by tag and digest is pulled by digest.
 */
export function findAbsent(
  named: readonly NamedImage[],
  { mirrors, shelf }: { readonly mirrors: MirrorPlan['mirrors']; readonly shelf: Shelf },
): readonly AbsentImage[] {
  const look = createNodeLookup(mirrors);
  const absent = new Map<string, AbsentImage>();
  for (const { image, neededBy } of named) {
    const name = formatReference(image);
    const known = absent.get(name);
    if (known) absent.set(name, { ...known, neededBy: [...known.neededBy, neededBy] });
    else if (!isOnShelf(image, { look, shelf }))
      absent.set(name, { image: name, neededBy: [neededBy], asked: look(image) });
  }
  return [...absent.values()];
}

function isOnShelf(
  image: Reference,
  { look, shelf }: { readonly look: NodeLookup; readonly shelf: Shelf },
): boolean {
  const { tag, digest } = image;
  const version = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  return look(image).some((repository) => shelf.has(repository + version));
}
