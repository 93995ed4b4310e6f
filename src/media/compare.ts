import { withoutUndefined } from '../base/lists.ts';
import type { RandomAccess } from '../base/random-access.ts';
import { digestCanonicalJson } from '../base/text/json.ts';
import {
  type IgnitionPart,
  readCompared,
  type ComparedConfig,
  type ComparedMedium,
} from './compare-configs.ts';
import {
  compareBytes,
  compareFiles,
  type ComparedBytes,
  type ComparedFile,
  compareImages,
  type ComparedImage,
  compareOperators,
  countChanges,
  type ComparedOperator,
  listChanges,
  type Changes,
} from './compare-parts.ts';
import { compareTrees, readTree, withBuilt } from './compare-trees.ts';
import { type MediaIndex, INDEX_PATH } from './media-index.ts';
import { type IsoSource, useImage } from './open.ts';

/** Identity of a medium. A member is absent if it is unknown or if the medium lacks it. */
type Identity = {
  /** Bytes. */
  readonly size: number;
  readonly product?: string;
  readonly release?: MediaIndex['release'];
  readonly base?: string;
  /** Versions of the releases whose signatures were not verified. */
  readonly unsigned?: readonly string[];
  readonly indexDigest?: string;
};

export type ComparedIgnition = {
  readonly config: 'embedded' | 'bootstrap';
  /** `changed` without changed parts means the same parts in another form or order. */
  readonly state: 'added' | 'removed' | 'changed' | 'unchanged';
  readonly parts: Changes<IgnitionPart>;
};

export type ComparedArguments = {
  readonly old: string;
  readonly new: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

/** Contents that could not be compared because one of the media does not describe them. */
export type NotCompared = {
  readonly what: string;
  readonly medium: 'old' | 'new';
  readonly reason: string;
};

/** Differences between two media. Plain JSON without secrets; sizes are bytes. */
export type MediaComparison = {
  /** True if the compared contents have no differences. */
  readonly same: boolean;
  readonly old: Identity;
  readonly new: Identity;
  readonly operators?: Changes<ComparedOperator>;
  readonly images?: Changes<ComparedImage>;
  readonly bytes?: ComparedBytes;
  readonly files?: Changes<ComparedFile>;
  readonly kernelArguments?: ComparedArguments;
  readonly ignition: readonly ComparedIgnition[];
  /** Configuration images of sites; absent if neither medium has one. */
  readonly configImage?: Pick<ComparedIgnition, 'state'>;
  /** Everything that was compared, in words. */
  readonly compared: readonly string[];
  readonly notCompared: readonly NotCompared[];
};

/**
 * Compares indexes, kernel arguments and Ignition configs; without two indexes, also the names and sizes of
 * files. Reads no blobs.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if not even the directories can be read
 */
export const compareMedia = (old: IsoSource, now: IsoSource): Promise<MediaComparison> =>
  useImage(old, (before) =>
    useImage(now, (after) => compareImagesOf(keepOpen(before), keepOpen(after))),
  );

/** An image that its next reader does not close. */
const keepOpen = (image: RandomAccess): RandomAccess => ({
  ...image,
  close: () => Promise.resolve(),
});

async function compareImagesOf(old: RandomAccess, now: RandomAccess): Promise<MediaComparison> {
  const [before, after] = [await readCompared(old), await readCompared(now)];
  const isIndexed = before.index.value !== undefined && after.index.value !== undefined;
  const trees = isIndexed ? undefined : { old: await readTree(old), now: await readTree(now) };
  return compareRead(before, after, trees);
}

type Trees = Readonly<Record<'old' | 'now', Awaited<ReturnType<typeof readTree>>>>;

function compareRead(
  old: ComparedMedium,
  now: ComparedMedium,
  trees: Trees | undefined,
): MediaComparison {
  const isSameIndex = digestIndex(old.index.value) === digestIndex(now.index.value);
  const files = trees && compareTrees(trees.old, trees.now);
  const parts = {
    ...(trees ? withoutUndefined({ files }) : compareIndexed(old, now, isSameIndex)),
    ...compareArguments(old.kernelArguments.value, now.kernelArguments.value),
    ignition: [
      ...compareConfigs('embedded', old.embedded, now.embedded),
      ...compareConfigs('bootstrap', old.bootstrap, now.bootstrap),
    ],
    ...compareConfigImages(old.configImage, now.configImage),
  };
  return {
    ...parts,
    same: isSameIndex && haveSameParts(parts) && haveSameProof(old, now) && haveSameAreas(old, now),
    old: identify(old),
    new: identify(now),
    compared: listCompared(old, now, trees),
    notCompared: [...listUnknown('old', old, trees?.old), ...listUnknown('new', now, trees?.now)],
  };
}

type ComparedParts = Pick<MediaComparison, 'ignition' | 'files' | 'configImage'>;

const haveSameParts = ({ ignition, files, configImage }: ComparedParts): boolean =>
  [...ignition, ...(configImage ? [configImage] : [])].every(
    ({ state }) => state === 'unchanged',
  ) &&
  (!files || countChanges(files) === 0);

/** True if the sizes are the same, and the proofs of media without an index. */
const haveSameProof = (old: ComparedMedium, now: ComparedMedium): boolean =>
  old.size === now.size && (now.index.value !== undefined || old.proof === now.proof);

/** True if the arguments are the same, and the areas that cannot be read have the same bytes. */
const haveSameAreas = (old: ComparedMedium, now: ComparedMedium): boolean =>
  old.kernelArguments.value === now.kernelArguments.value &&
  ((isRead(old) && isRead(now)) || old.areas === now.areas);

const isRead = ({ kernelArguments, embedded }: ComparedMedium): boolean =>
  kernelArguments.problem === undefined && embedded.problem === undefined;

/** Computed for media of the first versions, whose index does not name it. */
const digestIndex = (index: MediaIndex | undefined): string | undefined =>
  index && (index.digest ?? digestCanonicalJson(index));

function identify({ size, index }: ComparedMedium): Identity {
  if (!index.value) return { size };
  const { product, release, base, unsigned, digest } = index.value;
  return {
    size,
    product,
    release,
    ...withoutUndefined({ base: base?.digest, unsigned, indexDigest: digest }),
  };
}

type Indexed = Pick<MediaComparison, 'operators' | 'images' | 'bytes' | 'files'>;

function compareIndexed(old: ComparedMedium, now: ComparedMedium, isSameIndex: boolean): Indexed {
  if (!old.index.value || !now.index.value) return {};
  const { files, ...others } = compareIndexes(old.index.value, now.index.value, isSameIndex);
  return { ...others, files: withBuilt(files, old.built.value, now.built.value) };
}

const compareIndexes = (
  old: MediaIndex,
  now: MediaIndex,
  isSameIndex: boolean,
): Indexed & Required<Pick<Indexed, 'files'>> => ({
  ...(namesCatalogs(old) &&
    namesCatalogs(now) && {
      operators: compareOperators(old.catalogs ?? [], now.catalogs ?? []),
    }),
  images: compareImages(old.images, now.images),
  bytes: compareBytes(old.extents, now.extents, isSameIndex),
  files: compareFiles(old.extents, now.extents),
});

/** True if an index names the catalogs of its medium, so that one without catalogs means no operators. */
const namesCatalogs = ({ format }: MediaIndex): boolean => format !== 1;

function compareArguments(
  old: string | undefined,
  now: string | undefined,
): Pick<MediaComparison, 'kernelArguments'> {
  if (old === undefined || now === undefined) return {};
  const [before, after] = [splitWords(old), splitWords(now)];
  const added = without(after, before);
  return { kernelArguments: { old, new: now, added, removed: without(before, after) } };
}

const splitWords = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean);

/** Removes the items of another list, one occurrence each, because arguments may be repeated. */
function without(items: readonly string[], others: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const other of others) counts.set(other, (counts.get(other) ?? 0) + 1);
  return items.filter((item) => {
    const count = counts.get(item) ?? 0;
    counts.set(item, count - 1);
    return count <= 0;
  });
}

type ReadConfig = ComparedMedium['embedded'];

/** Empty if neither medium has a config, or if one of them is damaged. */
function compareConfigs(
  config: ComparedIgnition['config'],
  { value: old, problem }: ReadConfig,
  { value: now, problem: newProblem }: ReadConfig,
): readonly ComparedIgnition[] {
  if (problem !== undefined || newProblem !== undefined || !(old ?? now)) return [];
  const parts = listChanges(old?.parts ?? new Map(), now?.parts ?? new Map());
  return [{ config, state: findState(textOf(old), textOf(now)), parts }];
}

const textOf = (config: ComparedConfig | undefined): string | undefined => config?.text;

function findState(old: string | undefined, now: string | undefined): ComparedIgnition['state'] {
  if (old === undefined) return 'added';
  if (now === undefined) return 'removed';
  return old === now ? 'unchanged' : 'changed';
}

/** Absent if neither medium has one, or if one of them cannot be read. */
function compareConfigImages(
  { value: old, problem }: ComparedMedium['configImage'],
  { value: now, problem: newProblem }: ComparedMedium['configImage'],
): Pick<MediaComparison, 'configImage'> {
  if (problem !== undefined || newProblem !== undefined || !(old ?? now)) return {};
  return { configImage: { state: findState(old, now) } };
}

/** Digests of an index or proof are compared, but no bytes with them. */
function listCompared(
  old: ComparedMedium,
  now: ComparedMedium,
  trees: Trees | undefined,
): readonly string[] {
  const both = (has: (medium: ComparedMedium) => unknown): boolean =>
    Boolean(has(old)) && Boolean(has(now));
  const either = (has: (medium: ComparedMedium) => unknown): boolean =>
    both(isRead) && (Boolean(has(old)) || Boolean(has(now)));
  return [
    ...(both(({ index }) => index.value) ? ['the digests in their indexes'] : []),
    ...(both(({ proof }) => proof) ? ['the digests in their proofs'] : []),
    ...(trees?.old.value && trees.now.value ? ['names and sizes of files'] : []),
    ...(both((medium) => medium.kernelArguments.value) ? ['kernel arguments'] : []),
    ...(both(isRead) ? ['the Ignition area'] : []),
    ...(either(({ bootstrap }) => bootstrap.value) ? ['the bootstrap Ignition config'] : []),
    ...(either(({ configImage }) => configImage.value) ? ['the configuration image'] : []),
  ];
}

/** Media that do not boot have no kernel arguments and no Ignition config. */
function listUnknown(
  medium: 'old' | 'new',
  compared: ComparedMedium,
  tree: Trees['old'] | undefined,
): readonly NotCompared[] {
  const { index, kernelArguments, embedded, bootstrap, configImage } = compared;
  const boots = index.value === undefined || index.value.base !== undefined;
  const isOld = index.value !== undefined && !namesCatalogs(index.value);
  const reasons: readonly (readonly [string, string | undefined])[] = [
    [
      'release, operators, images and bytes',
      index.value ? undefined : (index.problem ?? `there is no ${INDEX_PATH}`),
    ],
    ['operators', isOld ? 'its index has format 1, which does not name catalogs' : undefined],
    ['kernel arguments and Ignition configs', boots ? kernelArguments.problem : undefined],
    ['Ignition config of the embed area', embedded.problem],
    ['bootstrap Ignition config', bootstrap.problem],
    ['configuration images', configImage.problem],
    ['names and sizes of files', tree?.problem],
    ...[embedded, bootstrap]
      .flatMap(({ value }) => value?.unresolved ?? [])
      .map(({ source, reason }) => ['merged configs', `${source}: ${reason}`] as const),
  ];
  return reasons.flatMap(([what, reason]) =>
    reason === undefined ? [] : [{ what, medium, reason }],
  );
}
