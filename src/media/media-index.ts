import { isDigest, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { groupBy, isObject, withoutUndefined } from '../base/lists.ts';
import { digestCanonicalJson, formatReadableJson } from '../base/text/json.ts';
import type { Layout, Areas, Places } from '../iso/extent.ts';
import type { IsoImage } from '../iso/read/open.ts';
import type { SelectedCatalog } from '../openshift/catalog/selected.ts';
import { nameCatalog } from '../openshift/mirror/operator-set.ts';
import { isTexts, checkText, parseObject, isTextList, type Document } from '../shape/go-json.ts';

/** What a catalog of the medium offers: no more than is carried. */
export type IndexCatalog = {
  /** As the image of the catalog is named in the index. */
  readonly name: string;
  /** Of the image that is carried: the catalog's own, or a rebuilt one. */
  readonly digest: string;
  readonly packages: readonly IndexPackage[];
};

export type IndexPackage = {
  readonly name: string;
  readonly defaultChannel?: string;
  /** `head` is the name of a bundle. */
  readonly channels: readonly { readonly name: string; readonly head?: string }[];
  readonly bundles: readonly { readonly name: string; readonly version?: string }[];
};

/** What the index says of the catalogs, in their order; all below sorted by name. */
export const describeCatalogs = (catalogs: readonly SelectedCatalog[]): readonly IndexCatalog[] =>
  catalogs.map((catalog) => {
    const bundles = groupBy(catalog.bundles, (bundle) => bundle.package);
    return {
      name: nameCatalog(catalog),
      digest: catalog.digest,
      packages: sortByName(catalog.packages).map(({ name, defaultChannel, channels }) => ({
        name,
        ...withoutUndefined({ defaultChannel }),
        channels: sortByName(channels),
        bundles: sortByName(bundles.get(name) ?? []).map(({ name, version }) => ({
          name,
          ...withoutUndefined({ version }),
        })),
      })),
    };
  });

const sortByName = <Item extends { readonly name: string }>(
  items: readonly Item[],
): readonly Item[] => items.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));

/** Whether a member of an index has the form of its catalogs. */
const areCatalogs = (value: unknown): boolean =>
  value === undefined ||
  isListOf(
    value,
    (catalog) => isTexts(catalog, ['name', 'digest']) && isListOf(catalog['packages'], isPackage),
  );

const isPackage = (value: Members): boolean =>
  isTexts(value, ['name']) &&
  isOptionalText(value['defaultChannel']) &&
  isListOf(value['channels'], (channel) => isNamed(channel, 'head')) &&
  isListOf(value['bundles'], (bundle) => isNamed(bundle, 'version'));

type Members = Readonly<Record<string, unknown>>;

const isListOf = (value: unknown, isItem: (item: Members) => boolean): boolean =>
  Array.isArray(value) && value.every((item) => isObject(item) && isItem(item));

const isNamed = (value: Members, optional: string): boolean =>
  isTexts(value, ['name']) && isOptionalText(value[optional]);

const isOptionalText = (value: unknown): boolean =>
  value === undefined || typeof value === 'string';

/** Where the medium's own account of itself is. */
export const INDEX_PATH = '/sealift/index.json';

/** The registry's storage on media that boot, which keep it in `docker/registry/v2` below. */
export const REGISTRY_ROOT = '/registry';

/** That of upgrade ISOs: where the units of installed hosts serve it from. */
export const UPGRADE_REGISTRY_ROOT = '/oc-mirror/install';

/** The initrd that carries the bootstrap config. */
export const BOOTSTRAP_IMAGE_PATH = '/images/bootstrap-appliance.img';

/** What the embed area holds on a medium that has no values of a site. */
export const PRISTINE_IGNITION_PATH = '/sealift/ignition.img';

/** The images of a live ISO by digest, for whoever copies them; also in the release bundle. */
export const BUNDLE_PATH = '/bundle.json';

/** One run of bytes of the medium, as its index tells. */
export type IndexExtent = {
  readonly offset: number;
  readonly size: number;
  /** Absent for the index itself, and for what may change. */
  readonly digest?: Digest;
  /** Of what may change, as the medium was without values of a site. */
  readonly pristine?: Digest;
  readonly paths: readonly string[];
};

/** Bytes of the medium that are there to be changed; the index does not change with them. */
export type MutableArea = {
  readonly kind: 'ignition' | 'kernel-arguments';
  readonly offset: number;
  readonly size: number;
  /** As they are without values of a site. */
  readonly digest: Digest;
};

export type IndexImage = {
  readonly name: string;
  readonly set: string;
  readonly source: string;
  readonly repository: string;
  readonly tags: readonly string[];
  readonly manifests: readonly string[];
};

/** `/sealift/index.json`: what the medium says of itself. Offsets and sizes are bytes. */
export type MediaIndex = {
  /** 2 names its areas and catalogs. */
  readonly format: 1 | 2;
  /** Of the canonical JSON of everything else in it; media of the first versions have none. */
  readonly digest?: Digest;
  readonly product: string;
  /** The ISO that it grew from; absent on media that do not boot. */
  readonly base?: { readonly digest: string; readonly size: number };
  readonly release: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: string;
  };
  /** Versions of releases on the medium whose signature was not verified; absent where there are none. */
  readonly unsigned?: readonly string[];
  readonly images: readonly IndexImage[];
  /** What the catalogs offer; absent on media that are built without catalogs, and in format 1. */
  readonly catalogs?: readonly IndexCatalog[];
  /** Where what is behind the base begins: the room to grow is part of an area. */
  readonly areas?: Areas;
  /** What may change; absent on media that nothing can be added to, and on those of earlier versions. */
  readonly mutable?: readonly MutableArea[];
  readonly extents: readonly IndexExtent[];
};

/** What `format` 1 had before it had a digest. */
const KEYS_WITHOUT_DIGEST: ReadonlySet<string> = new Set([
  'format',
  'product',
  'base',
  'release',
  'images',
  'extents',
]);

/** The text of an index, with its digest. Its length depends on no digest in it. */
export function formatMediaIndex(content: Omit<MediaIndex, 'digest'>): string {
  const extents = content.extents.map(({ paths, ...extent }) => ({
    ...extent,
    ...(paths.length > 0 && { paths }),
  }));
  const plain = { ...content, extents };
  return formatReadableJson({ ...plain, digest: digestCanonicalJson(plain) });
}

/** @throws IntegrityError `index.malformed`, `index.format`, `index.digest`, `index.overlap` */
export function parseMediaIndex(source: Uint8Array | string): MediaIndex {
  const { index, damage } = decodeMediaIndex(source);
  if (damage) throw damage;
  const [first] = findOverlaps(index.extents);
  if (first) throw createOverlapError(first);
  return index;
}

/**
 * An index that may have another digest than it says: `damage` is then the error that tells so, and
 * what the index says may be wrong anywhere.
 *
 * @throws IntegrityError `index.malformed`, `index.format`
 */
export function decodeMediaIndex(source: Uint8Array | string): {
  readonly index: MediaIndex;
  readonly damage?: IntegrityError;
} {
  const document = parse(source);
  if (document['format'] !== 1 && document['format'] !== 2) {
    throw new IntegrityError('index.format', `${INDEX_PATH} has a format we do not know`, {
      expected: '1 or 2',
      found: JSON.stringify(document['format'] ?? null),
      hint: 'use a newer sealift',
    });
  }
  if (!isWellFormed(document)) throw malformed();
  const { mutable = [] } = document as { readonly mutable?: readonly MutableArea[] };
  const extents = (document['extents'] as unknown[])
    .map(parseExtent)
    .map((extent) => markMutable(extent, mutable));
  const damage = findWrongDigest(document);
  return { index: { ...(document as unknown as MediaIndex), extents }, ...(damage && { damage }) };
}

/**
 * Extents that begin before an earlier one ends. Nothing that we write has them, and to check each
 * would cost more than the medium has bytes.
 */
export function findOverlaps(extents: readonly IndexExtent[]): ReadonlySet<IndexExtent> {
  const overlaps = new Set<IndexExtent>();
  let end = 0;
  for (const extent of extents.toSorted((a, b) => a.offset - b.offset)) {
    if (extent.size === 0) continue;
    if (extent.offset < end) overlaps.add(extent);
    else end = extent.offset + extent.size;
  }
  return overlaps;
}

const createOverlapError = ({ offset, size }: IndexExtent): IntegrityError =>
  new IntegrityError(
    'index.overlap',
    `${INDEX_PATH} names bytes ${offset} to ${offset + size - 1}, of which another extent has some`,
  );

function findWrongDigest({ digest, ...content }: Document): IntegrityError | undefined {
  if (digest === undefined) {
    // Else one flipped bit in the key would make the digest a thing that need not be there.
    if (Object.keys(content).every((key) => KEYS_WITHOUT_DIGEST.has(key))) return undefined;
    throw malformed();
  }
  const expected = digestCanonicalJson(content);
  if (digest === expected) return undefined;
  const found = typeof digest === 'string' ? digest : JSON.stringify(digest);
  return new IntegrityError('index.digest', `${INDEX_PATH} does not have the digest it names`, {
    expected: found,
    found: expected,
  });
}

/**
 * 3,000 images with 60,000 blobs and 72,000 links, each an extent of its own, have 1,370,000 values. A
 * value is little text and may be much memory: two million empty objects take more than 300 MiB.
 */
const MOST_VALUES = 1_500_000;

/**
 * The text of an index that is not more than one may be. Who keeps it and not the bytes needs 48 MiB less.
 *
 * @throws IntegrityError `index.malformed`
 */
const checkIndexText = (bytes: Uint8Array): string => checkText(bytes, MOST_VALUES, malformed);

const parse = (source: Uint8Array | string): Document =>
  parseObject(typeof source === 'string' ? source : checkIndexText(source), malformed);

function parseExtent(value: unknown): IndexExtent {
  const extent = value as Partial<Record<keyof IndexExtent, unknown>> | null;
  const { offset, size, digest, paths = [] } = extent ?? {};
  if (!isCount(offset) || !isCount(size) || !isTextList(paths)) throw malformed();
  const place = { offset, size, paths };
  if (typeof digest === 'string' && isDigest(digest)) return { ...place, digest };
  if (digest !== undefined || !isIndexItself(paths)) throw malformed();
  return place;
}

function markMutable(extent: IndexExtent, areas: readonly MutableArea[]): IndexExtent {
  const { offset, size, paths, digest } = extent;
  const isMutable = areas.some(
    (area) => area.offset < offset + size && area.offset + area.size > offset,
  );
  return isMutable && digest ? { offset, size, paths, pristine: digest } : extent;
}

/** The index cannot tell its own digest; whatever else lacks one is damaged. */
const isIndexItself = (paths: readonly unknown[]): boolean =>
  paths.length === 1 && paths[0] === INDEX_PATH;

/** Far above any medium, so that the sum of two is exact. */
const LARGEST_COUNT = 2 ** 52;

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < LARGEST_COUNT;

const malformed = (problem = 'is not of the form we write', cause?: unknown): IntegrityError =>
  new IntegrityError('index.malformed', `${INDEX_PATH} ${problem}`, { cause });

const isWellFormed = (document: Document): boolean =>
  typeof document['product'] === 'string' &&
  isOfReleases(document) &&
  isBase(document['base']) &&
  areAreas(document['areas']) &&
  areMutable(document['mutable']) &&
  areCatalogs(document['catalogs']) &&
  Array.isArray(document['extents']) &&
  Array.isArray(document['images']) &&
  (document['images'] as unknown[]).every(isImage);

const isOfReleases = ({ release, unsigned }: Document): boolean =>
  isTexts(release, ['version', 'reference', 'architecture']) &&
  (unsigned === undefined || isTextList(unsigned));

const AREAS = ['structures', 'files', 'index', 'smallBlobs', 'blobs'] as const;

const areAreas = (areas: unknown): boolean =>
  areas === undefined || (isObject(areas) && AREAS.every((name) => isCount(areas[name])));

/** A medium has one area for Ignition and one for each boot menu. */
const MOST_MUTABLE = 100;

const areMutable = (areas: unknown): boolean =>
  areas === undefined ||
  (Array.isArray(areas) && areas.length <= MOST_MUTABLE && areas.every(isMutableArea));

const isMutableArea = (area: unknown): boolean =>
  isObject(area) &&
  typeof area['kind'] === 'string' &&
  typeof area['digest'] === 'string' &&
  isDigest(area['digest']) &&
  isCount(area['offset']) &&
  isCount(area['size']) &&
  area['size'] <= LARGEST_MUTABLE;

/** Far above any Ignition config that a machine boots with. */
const LARGEST_MUTABLE = 64 * 1024 * 1024;

const isBase = (base: unknown): boolean => base === undefined || isTexts(base, ['digest']);

function isImage(value: unknown): boolean {
  if (!isTexts(value, ['name', 'set', 'source', 'repository'])) return false;
  const { tags, manifests } = value as { tags?: unknown; manifests?: unknown };
  return isTextList(tags) && isTextList(manifests);
}

/** 3,000 images with 60,000 blobs and 72,000 links take 48,000,000 bytes. */
export const LARGEST_INDEX = 48 * 1024 * 1024;

type Files = Pick<IsoImage, 'find' | 'readFile'>;

/**
 * The index of a medium that this program made; undefined on any other image.
 *
 * @throws IntegrityError `index.malformed`, `index.format`, `index.digest`, `index.overlap`,
 * `iso.file-too-large`
 */
export async function readIndex(iso: Files): Promise<MediaIndex | undefined> {
  const text = await readText(iso);
  return text === undefined ? undefined : parseMediaIndex(text);
}

/**
 * The same for who looks for damage: an index that has another digest than it names comes with the
 * error that tells so.
 *
 * @throws IntegrityError `index.malformed`, `index.format`, `iso.file-too-large`
 */
export async function readDamagedIndex(
  iso: Files,
): Promise<{ readonly index: MediaIndex; readonly damage?: IntegrityError } | undefined> {
  const text = await readText(iso);
  return text === undefined ? undefined : decodeMediaIndex(text);
}

async function readText(iso: Files): Promise<string | undefined> {
  const node = await iso.find(INDEX_PATH);
  return node?.kind === 'file'
    ? checkIndexText(await iso.readFile(node, LARGEST_INDEX))
    : undefined;
}

/** What a later layout needs to leave bytes where they are; undefined for media that do not name their areas. */
export const placesOf = ({
  areas,
  extents,
}: Pick<MediaIndex, 'areas' | 'extents'> | Pick<Layout, 'areas' | 'extents'>): Places | undefined =>
  areas && {
    areas,
    offsets: extents.flatMap((extent: IndexExtent) => {
      const { offset, digest = extent.pristine } = extent;
      return digest !== undefined && offset >= areas.structures ? [[digest, offset] as const] : [];
    }),
  };
