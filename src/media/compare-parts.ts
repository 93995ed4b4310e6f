import { groupBy, withoutUndefined } from '../base/lists.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import { type IndexCatalog, type IndexPackage } from './index-catalogs.ts';
import {
  type IndexImage,
  INDEX_PATH,
  REGISTRY_ROOT,
  UPGRADE_REGISTRY_ROOT,
  type IndexExtent,
} from './media-index.ts';

/* Comparisons of two media by part: images, operators, bytes and files. */

/** Differences between two lists, each sorted. */
export type Changes<Item> = {
  readonly added: readonly Item[];
  readonly removed: readonly Item[];
  readonly changed: readonly { readonly old: Item; readonly new: Item }[];
  /** Number of items that are the same in both. */
  readonly unchanged: number;
};

/** An item of a medium, and a text that is equal only if the items are equal. */
export type Compared<Item> = { readonly item: Item; readonly content: string };

/** Sorted by key. */
export function listChanges<Item>(
  old: ReadonlyMap<string, Compared<Item>>,
  now: ReadonlyMap<string, Compared<Item>>,
): Changes<Item> {
  const added: Item[] = [];
  const removed: Item[] = [];
  const changed: { readonly old: Item; readonly new: Item }[] = [];
  for (const key of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const [before, after] = [old.get(key), now.get(key)];
    if (after === undefined && before) removed.push(before.item);
    if (before === undefined && after) added.push(after.item);
    if (before && after && before.content !== after.content) {
      changed.push({ old: before.item, new: after.item });
    }
  }
  return { added, removed, changed, unchanged: old.size - removed.length - changed.length };
}

export const countChanges = ({ added, removed, changed }: Changes<unknown>): number =>
  added.length + removed.length + changed.length;

export type ComparedImage = {
  /** Name of the component, or the name that the configuration or the operator gives. */
  readonly name: string;
  readonly set: string;
  /** Source reference, by digest. */
  readonly source: string;
  /** Digest of the manifest or list that the tags name. */
  readonly digest: string;
  /** Number of its manifests on the medium. */
  readonly manifests: number;
};

/**
 * Compares images by set and name. A bundle's image has the version in its name: without a namesake, it is
 * compared with the only image from the same source repository.
 */
export function compareImages(
  old: readonly IndexImage[],
  now: readonly IndexImage[],
): Changes<ComparedImage> {
  const same = pairUp({ old, now }, byContent, (olds, news) => Math.min(olds, news));
  const named = pairUp(same.left, byName, onlyOne);
  const moved = pairUp(named.left, bySource, onlyOne);
  return {
    added: sort(moved.left.now).map(describeImage),
    removed: sort(moved.left.old).map(describeImage),
    changed: [...named.pairs, ...moved.pairs]
      .sort((a, b) => compare(a.new, b.new))
      .map((pair) => ({ old: describeImage(pair.old), new: describeImage(pair.new) })),
    unchanged: same.pairs.length,
  };
}

type Left = { readonly old: readonly IndexImage[]; readonly now: readonly IndexImage[] };
type Pair = { readonly old: IndexImage; readonly new: IndexImage };

const onlyOne = (olds: number, news: number): number => (olds === 1 && news === 1 ? 1 : 0);

/** Pairs as many as `countPairs` allows, and returns the rest. */
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

const SEPARATOR = '\n';

const byName = ({ set, name }: IndexImage): string => [set, name].join(SEPARATOR);

const byContent = (image: IndexImage): string =>
  [byName(image), ...image.manifests].join(SEPARATOR);

const bySource = ({ set, source }: IndexImage): string =>
  [set, source.replace(/@.*$/, '').replace(/:[^/:]*$/, '')].join(SEPARATOR);

const sort = (images: readonly IndexImage[]): readonly IndexImage[] => images.toSorted(compare);

function compare(a: IndexImage, b: IndexImage): number {
  const [first, second] = [byContent(a), byContent(b)];
  if (first === second) return 0;
  return first < second ? -1 : 1;
}

const describeImage = ({ name, set, source, manifests }: IndexImage): ComparedImage => ({
  name,
  set,
  source,
  digest: manifests[0] ?? '',
  manifests: manifests.length,
});

export type ComparedOperator = {
  readonly catalog: string;
  readonly package: string;
  /** Version of the head of the default channel, which OLM installs by default. */
  readonly version?: string;
  readonly defaultChannel?: string;
  readonly channels: readonly string[];
  /** Versions of all bundles; a bundle without a version is listed by its name. */
  readonly versions: readonly string[];
};

/** Compares packages by name and by the repository of their catalog, regardless of its tag. */
export const compareOperators = (old: Catalogs, now: Catalogs): Changes<ComparedOperator> =>
  listChanges(listOperators(old), listOperators(now));

type Catalogs = readonly IndexCatalog[];

function listOperators(catalogs: Catalogs): ReadonlyMap<string, Compared<ComparedOperator>> {
  const operators = new Map<string, Compared<ComparedOperator>>();
  for (const { name: catalog, packages } of catalogs) {
    const repository = catalog.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
    for (const one of packages) {
      // A second catalog from the same repository is compared separately.
      const key = [one.name, repository].join('\n');
      operators.set(operators.has(key) ? [one.name, catalog].join('\n') : key, {
        item: describePackage(catalog, one),
        content: formatCanonicalJson(one),
      });
    }
  }
  return operators;
}

function describePackage(catalog: string, one: IndexPackage): ComparedOperator {
  const { name, defaultChannel, channels, bundles } = one;
  const nameVersion = (bundle: IndexPackage['bundles'][number]): string =>
    bundle.version ?? bundle.name;
  const head = channels.find((channel) => channel.name === defaultChannel)?.head;
  const bundle = bundles.find((bundle) => bundle.name === head);
  return {
    catalog,
    package: name,
    ...withoutUndefined({ version: bundle && nameVersion(bundle), defaultChannel }),
    channels: channels.map((channel) => channel.name),
    versions: bundles.map(nameVersion),
  };
}

export type ComparedBytes = {
  /** At any offset. */
  readonly shared: number;
  /** At the same offset. */
  readonly inPlace: number;
  /** Bytes that the old medium lacks. */
  readonly new: number;
  /** Bytes that the new medium lacks. */
  readonly gone: number;
};

/** An index does not hold its own digest; `isSameIndex` says if the indexes are equal. */
export function compareBytes(old: Extents, now: Extents, isSameIndex: boolean): ComparedBytes {
  const [oldDigests, digests] = [listDigests(old), listDigests(now)];
  const isOn = (others: ReadonlySet<string>, { digest }: IndexExtent): boolean =>
    digest === undefined ? isSameIndex : others.has(digest);
  const places = new Map(old.map(({ offset, digest }) => [offset, digest]));
  const bytes = { shared: 0, inPlace: 0, new: 0, gone: 0 };
  for (const extent of now) {
    const { size, offset, digest } = extent;
    if (!isOn(oldDigests, extent)) {
      bytes.new += size;
      continue;
    }
    bytes.shared += size;
    if (places.has(offset) && places.get(offset) === digest) bytes.inPlace += size;
  }
  for (const extent of old) if (!isOn(digests, extent)) bytes.gone += extent.size;
  return bytes;
}

type Extents = readonly IndexExtent[];

const listDigests = (extents: Extents): ReadonlySet<string> =>
  new Set(extents.flatMap(({ digest }) => digest ?? []));

/** Path without a digest: a file may hold little more than a secret. */
export type ComparedFile = { readonly path: string };

/** Compares the files outside the registry: the base with its kernel, and the files added next to it. */
export const compareFiles = (old: Extents, now: Extents): Changes<ComparedFile> =>
  listChanges(listFiles(old), listFiles(now));

const REGISTRIES = [`${REGISTRY_ROOT}/`, `${UPGRADE_REGISTRY_ROOT}/`];

/** True for the registry, and for the index of it. */
export const isOfRegistry = (path: string): boolean =>
  path === INDEX_PATH || REGISTRIES.some((root) => path.startsWith(root));

/** Lists files with all their extents: a file has several if it is large, or if a part of it was patched. */
function listFiles(extents: Extents): ReadonlyMap<string, Compared<ComparedFile>> {
  const files = new Map<string, Compared<ComparedFile>>();
  for (const { size, digest, paths } of extents) {
    for (const path of paths) {
      if (isOfRegistry(path)) continue;
      const content = `${files.get(path)?.content ?? ''}${size} ${digest ?? ''}\n`;
      files.set(path, { item: { path }, content });
    }
  }
  return files;
}
