import type { Digest } from '../../base/digest.ts';
import type { MirrorPlan, PlannedImage } from './mirror-plan.ts';

/** What a part of the configuration costs. Sizes are bytes of blobs and manifests, each once. */
export type PartCost = {
  /** `release`, `additional images`, the package of an operator, `catalog ...`. */
  readonly part: string;
  readonly images: number;
  /** Everything that it needs. */
  readonly size: number;
  /** What leaving it out would save: what no other part needs. */
  readonly marginalSize: number;
};

type Piece = { readonly size: number; readonly parts: Set<string> };

/** The cost of each part, in the order of the plan. */
export const planCosts = (plan: MirrorPlan): readonly PartCost[] => addCosts(plan, partsOf);

/**
 * Bytes of the registry tree on a medium or on the disk of a host: every blob and manifest that is
 * served, and once more those of the registry image, which has a form of its own. Without links and
 * what the medium adds itself: some kilobytes an image.
 */
export const sizeOfRegistry = ({ images, registryImage }: MirrorPlan): number =>
  sizeOf(images) + (registryImage ? sizeOf([registryImage]) : 0);

const sizeOf = (images: readonly PlannedImage[]): number =>
  listPieces(images, partsOf).reduce((total, { size }) => total + size, 0);

/** What a bundle costs: of leaving it out, shared layers considered. Sizes are bytes. */
export type BundleCost = Omit<PartCost, 'part'>;

/** The cost of each bundle, by {@link bundleKey}. */
export function planBundleCosts(plan: MirrorPlan): ReadonlyMap<string, BundleCost> {
  const bundlesOf: PartsOf = ({ neededBy }) =>
    new Set(
      neededBy.map(({ part, bundle, catalog = '' }) =>
        bundle === undefined ? part : bundleKey(catalog, bundle),
      ),
    );
  return new Map(addCosts(plan, bundlesOf).map(({ part, ...cost }) => [part, cost]));
}

export const bundleKey = (catalog: string, bundle: string): string =>
  JSON.stringify([catalog, bundle]);

type PartsOf = (image: PlannedImage) => ReadonlySet<string>;

function addCosts(plan: MirrorPlan, partsOf: PartsOf): readonly PartCost[] {
  const images = listImages(plan);
  const pieces = listPieces(images, partsOf);
  const costs = new Map<string, { images: number; size: number; marginalSize: number }>();
  for (const image of images) {
    for (const part of partsOf(image)) {
      const cost = costs.get(part) ?? { images: 0, size: 0, marginalSize: 0 };
      cost.images++;
      costs.set(part, cost);
    }
  }
  for (const { size, parts } of pieces) {
    for (const part of parts) {
      const cost = costs.get(part);
      if (!cost) continue;
      cost.size += size;
      if (parts.size === 1) cost.marginalSize += size;
    }
  }
  return [...costs].map(([part, cost]) => ({ part, ...cost }));
}

/** Parts that could be left out together, and the bytes that this would save. */
export type Omission = { readonly parts: readonly string[]; readonly size: number };

const MAX_OMISSIONS = 3;

/**
 * How to save at least `excess` bytes: the smallest single parts that suffice; where none does, the
 * fewest that do so together, taken by what each adds. Release, catalogs and the registry image are
 * never offered. Empty when leaving everything out does not suffice.
 */
export function findOmissions(plan: MirrorPlan, excess: number): readonly Omission[] {
  const pieces = listPieces(listImages(plan), partsOf);
  const optional = planCosts(plan).filter(({ part }) => isOptional(part));
  const single = optional
    .filter(({ marginalSize }) => marginalSize >= excess)
    .sort((a, b) => a.marginalSize - b.marginalSize || (a.part < b.part ? -1 : 1))
    .slice(0, MAX_OMISSIONS)
    .map(({ part, marginalSize }) => ({ parts: [part], size: marginalSize }));
  if (single.length > 0) return single;
  const together = addUp(
    pieces,
    optional.map(({ part }) => part),
    excess,
  );
  return together ? [together] : [];
}

/** The part that adds most comes first, until it is enough. */
function addUp(
  pieces: readonly Piece[],
  optional: readonly string[],
  excess: number,
): Omission | undefined {
  const chosen = new Set<string>();
  let size = 0;
  while (size < excess) {
    const [best] = optional
      .filter((part) => !chosen.has(part))
      .map((part) => ({ part, size: sizeOnlyNeededBy(pieces, new Set([...chosen, part])) }))
      .sort((a, b) => b.size - a.size || (a.part < b.part ? -1 : 1));
    if (best === undefined) return undefined;
    chosen.add(best.part);
    size = best.size;
  }
  return { parts: [...chosen], size };
}

const sizeOnlyNeededBy = (pieces: readonly Piece[], chosen: ReadonlySet<string>): number =>
  pieces
    .filter(({ parts }) => [...parts].every((part) => chosen.has(part)))
    .reduce((total, { size }) => total + size, 0);

const isOptional = (part: string): boolean =>
  part !== 'release' && part !== 'registry image' && !part.startsWith('catalog ');

const listImages = ({ images, registryImage }: MirrorPlan): readonly PlannedImage[] =>
  registryImage ? [...images, registryImage] : images;

const partsOf = ({ neededBy }: PlannedImage): ReadonlySet<string> =>
  new Set(neededBy.map(({ part }) => part));

/** Every blob and manifest once, with all parts that need it. */
function listPieces(images: readonly PlannedImage[], partsOf: PartsOf): readonly Piece[] {
  const pieces = new Map<Digest, Piece>();
  for (const image of images) {
    const parts = partsOf(image);
    for (const { digest, size } of [...image.manifests, ...image.blobs]) {
      const piece = pieces.get(digest) ?? { size, parts: new Set<string>() };
      pieces.set(digest, piece);
      for (const part of parts) piece.parts.add(part);
    }
  }
  return [...pieces.values()];
}
