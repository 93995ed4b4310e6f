import { groupBy } from '../../base/lists.ts';
import type { IndexImage } from '../index/media-index.ts';
import type { Changes } from './list-changes.ts';

export type ComparedImage = {
  /** The component, or the name that the configuration or the operator gives. */
  readonly name: string;
  readonly set: string;
  /** Where it comes from, by digest. */
  readonly source: string;
  /** Of the manifest or list that its tags name. */
  readonly digest: string;
  /** How many manifests of it are carried. */
  readonly manifests: number;
};

type Left = { readonly old: readonly IndexImage[]; readonly now: readonly IndexImage[] };
type Pair = { readonly old: IndexImage; readonly new: IndexImage };

const SEPARATOR = '\n';

const byName = ({ set, name }: IndexImage): string => [set, name].join(SEPARATOR);

const byContent = (image: IndexImage): string =>
  [byName(image), ...image.manifests].join(SEPARATOR);

/** The repository of a source without its tag and digest. */
const bySource = ({ set, source }: IndexImage): string =>
  [set, source.replace(/@.*$/, '').replace(/:[^/:]*$/, '')].join(SEPARATOR);

/**
 * Compares images by set and name. The image of a bundle has the bundle's version in its name: what has no
 * image of its name on the other medium is compared with the only one of its source's repository.
 */
export function compareImages(
  old: readonly IndexImage[],
  now: readonly IndexImage[],
): Changes<ComparedImage> {
  const same = pairUp({ old, now }, byContent, (olds, news) => Math.min(olds, news));
  const named = pairUp(same.left, byName, onlyOne);
  const moved = pairUp(named.left, bySource, onlyOne);
  return {
    added: sort(moved.left.now).map(describe),
    removed: sort(moved.left.old).map(describe),
    changed: [...named.pairs, ...moved.pairs]
      .sort((a, b) => compare(a.new, b.new))
      .map((pair) => ({ old: describe(pair.old), new: describe(pair.new) })),
    unchanged: same.pairs.length,
  };
}

const onlyOne = (olds: number, news: number): number => (olds === 1 && news === 1 ? 1 : 0);

/** Pairs of images with one key, as many as `countPairs` says for their numbers, and what is left. */
function pairUp(
  { old, now }: Left,
  keyOf: (image: IndexImage) => string,
  countPairs: (olds: number, news: number) => number,
): { readonly pairs: readonly Pair[]; readonly left: Left } {
  const [olds, news] = [groupBy(old, keyOf), groupBy(now, keyOf)];
  const pairs = [...olds].flatMap(([key, group]): readonly Pair[] => {
    const others = news.get(key) ?? [];
    const count = countPairs(group.length, others.length);
    return group.slice(0, count).flatMap((old, at) => {
      const other = others[at];
      return other === undefined ? [] : [{ old, new: other }];
    });
  });
  const paired = new Set(pairs.flatMap((pair) => [pair.old, pair.new]));
  const isLeft = (image: IndexImage): boolean => !paired.has(image);
  return { pairs, left: { old: old.filter(isLeft), now: now.filter(isLeft) } };
}

const sort = (images: readonly IndexImage[]): readonly IndexImage[] => images.toSorted(compare);

function compare(a: IndexImage, b: IndexImage): number {
  const [first, second] = [byContent(a), byContent(b)];
  if (first === second) return 0;
  return first < second ? -1 : 1;
}

const describe = ({ name, set, source, manifests }: IndexImage): ComparedImage => ({
  name,
  set,
  source,
  digest: manifests[0] ?? '',
  manifests: manifests.length,
});
