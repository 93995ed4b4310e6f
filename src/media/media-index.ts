import type { Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { objectOrEmpty } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import { digestCanonicalJson, formatReadableJson, type Json } from '../base/text/json.ts';
import type { Areas, IsoImage, Layout, Places } from '../iso/index.ts';
import { decode, requireDecoded } from '../shape/decode.ts';
import { findJsonExcess } from '../shape/json-text.ts';
import type { TypeOf } from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';
import type { IndexCatalog } from './index-catalogs.ts';
import { findOverlaps, INDEX, KEYS_WITHOUT_DIGEST } from './index-rules.ts';
import { NewerFormatError } from './newer.ts';

/* The index of a medium, `/sealift/index.json`: its paths, members and format. */

/** Path of the root file system on a live ISO of CoreOS; a minimal ISO fetches it from the network. */
export const ROOTFS_PATH = '/images/pxeboot/rootfs.img';

export const INDEX_PATH = '/sealift/index.json';

/** Path of the registry's storage on bootable media, which keep it in `docker/registry/v2` below. */
export const REGISTRY_ROOT = '/registry';

/** Path of the registry on upgrade ISOs, from which the units of installed hosts serve it. */
export const UPGRADE_REGISTRY_ROOT = '/oc-mirror/install';

/** Path of the initrd that carries the bootstrap config. */
export const BOOTSTRAP_IMAGE_PATH = '/images/bootstrap-appliance.img';

/** Path of the archive that the embed area has without site values. */
export const PRISTINE_IGNITION_PATH = '/sealift/ignition.img';

/** Contents of the mutable areas as the build left them, on media that were built with values. */
export const BUILT_PATH = '/sealift/built.img';

/**
 * Room for the configuration image of a site, on live ISOs that load such images: zeros until one is put
 * there. The live system shows it as a loop device.
 */
export const CONFIG_AREA_PATH = '/sealift/config-image.img';

/** Path of the list of images by digest on a live ISO, for tools that copy them; also in the release bundle. */
export const BUNDLE_PATH = '/bundle.json';

/** Path of the disk image that a deployment ISO writes to the disk of a machine. */
export const DEPLOYED_DISK_PATH = '/deploy/appliance.raw';

export type IndexExtent = {
  readonly offset: number;
  readonly size: number;
  /** Absent for the index itself, and for mutable bytes. */
  readonly digest?: Digest;
  /** Digest of mutable bytes, before any site values. */
  readonly pristine?: Digest;
  readonly paths: readonly string[];
};

/** Bytes of the medium that may be changed; the index does not change with them. */
export type MutableArea = {
  /**
   * `built`: a copy of the areas as the build left them, in a file; zeros once it is dropped. `config-image`:
   * the configuration image of a site, in a file; zeros without one.
   */
  readonly kind: 'ignition' | 'kernel-arguments' | 'built' | 'config-image';
  readonly offset: number;
  readonly size: number;
  /** Digest before any site values. */
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

/** `osStream` is that of its operating system, such as `rhel-10`; media of earlier versions do not name it. */
type IndexBase = { readonly digest: string; readonly size: number; readonly osStream?: string };

/** Content of `/sealift/index.json`, which describes the medium. Offsets and sizes are bytes. */
export type MediaIndex = {
  /**
   * Format 2 has areas and catalogs; format 3 has a copy of the areas as built; format 4 has an area for a
   * configuration image; in format 5, the file of a disk image only begins with the extent that has its path.
   */
  readonly format: 1 | 2 | 3 | 4 | 5;
  /** Digest of the canonical JSON of all other members; media of the first versions have no digest. */
  readonly digest?: Digest;
  readonly product: string;
  /** Version of sealift that made the medium; absent on media of earlier versions. */
  readonly program?: string;
  /** ISO that the medium was built from; absent on media that do not boot. */
  readonly base?: IndexBase;
  readonly release: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: string;
  };
  /** Versions of the releases whose signatures were not verified; absent if there are no such releases. */
  readonly unsigned?: readonly string[];
  readonly images: readonly IndexImage[];
  /** Images that a release or catalog names and that were left out on purpose. */
  readonly leftOut?: readonly string[];
  /** Contents of the catalogs; absent on media built without catalogs, and in format 1. */
  readonly catalogs?: readonly IndexCatalog[];
  /** Starts of the areas after the base; room to grow is part of each area. */
  readonly areas?: Areas;
  /** Mutable areas; absent on media that cannot be extended, and on media of earlier versions. */
  readonly mutable?: readonly MutableArea[];
  readonly extents: readonly IndexExtent[];
};

/** Formats an index with its digest. The length does not depend on the digests in it. */
export function formatMediaIndex(content: Omit<MediaIndex, 'digest'>): string {
  const extents = content.extents.map(({ paths, ...extent }) => ({
    ...extent,
    ...(paths.length > 0 && { paths }),
  }));
  const plain = { ...content, extents };
  return formatReadableJson({ ...plain, digest: digestCanonicalJson(plain) });
}

export function parseMediaIndex(source: Uint8Array | string): MediaIndex {
  const { index, damage } = decodeMediaIndex(source);
  if (damage) throw damage;
  const [first] = findOverlaps(index.extents);
  if (first) throw createOverlapError(first);
  return index;
}

/** Accepts a wrong digest: `damage` is then the error that reports it, and any member may be wrong. */
export function decodeMediaIndex(source: Uint8Array | string): {
  readonly index: MediaIndex;
  readonly damage?: IntegrityError;
} {
  const document = parse(source);
  requireKnown(document);
  const read = requireDecoded(decode(INDEX, document), ([first]) =>
    malformed(`${NOT_OURS}: ${describeFinding(first)}`),
  );
  const { mutable = [] } = read as MediaIndex;
  const extents = read.extents.map((extent) => markMutable(requireDigest(extent), mutable));
  const damage = findWrongDigest(document);
  return { index: { ...(read as MediaIndex), extents }, ...(damage && { damage }) };
}

const NEWEST = 5;

/**
 * The digest of an index has the same rule in every format, so that a damaged format is told from a newer one.
 */
function requireKnown(document: Document): void {
  const { format } = document;
  if (typeof format !== 'number' || !Number.isSafeInteger(format) || format < 1) throw malformed();
  if (format <= NEWEST) return;
  const { digest, ...content } = document;
  if (digest !== digestCanonicalJson(content)) throw malformed();
  throw new NewerFormatError('the medium', format, NEWEST);
}

const createOverlapError = ({ offset, size }: IndexExtent): IntegrityError =>
  new IntegrityError(
    'index.overlap',
    `${INDEX_PATH} names bytes ${offset} to ${offset + size - 1}, which overlap another extent`,
  );

function findWrongDigest({ digest, ...content }: Document): IntegrityError | undefined {
  if (digest === undefined) {
    // Otherwise a flipped bit in the key would turn the digest into an optional member.
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
 * 3,000 images with 60,000 blobs and 72,000 links, each an extent, have 1,370,000. A value has little text
 * but may take much memory: two million empty objects take more than 300 MiB.
 */
const MOST_VALUES = 1_500_000;

/** Checks the size of an index and returns its text, which takes 48 MiB less than with its bytes. */
function checkIndexText(bytes: Uint8Array): string {
  const excess = findJsonExcess(bytes, { values: MOST_VALUES, depth: 16 });
  if (excess !== undefined) throw malformed(excess);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

type Document = Readonly<Record<string, Json>>;

/** The text of a large index has 48 MB, and its bounds are known: it is not read as `decodeJson` does. */
function parse(source: Uint8Array | string): Document {
  const text = typeof source === 'string' ? source : checkIndexText(source);
  try {
    return objectOrEmpty(JSON.parse(text)) as Document;
  } catch (cause) {
    throw malformed('is not JSON', cause);
  }
}

function requireDigest(extent: TypeOf<typeof INDEX>['extents'][number]): IndexExtent {
  if (extent.digest !== undefined || isIndexItself(extent.paths)) return extent;
  throw malformed(`${NOT_OURS}: the extent at ${extent.offset} has no digest`);
}

function markMutable(extent: IndexExtent, areas: readonly MutableArea[]): IndexExtent {
  const { offset, size, paths, digest } = extent;
  const isMutable = areas.some(
    (area) => area.offset < offset + size && area.offset + area.size > offset,
  );
  return isMutable && digest ? { offset, size, paths, pristine: digest } : extent;
}

/** Cannot hold its own digest; any other extent without a digest is damage. */
const isIndexItself = (paths: readonly unknown[]): boolean =>
  paths.length === 1 && paths[0] === INDEX_PATH;

const NOT_OURS = 'is not in the form that sealift writes';

const malformed = (problem = NOT_OURS, cause?: unknown): IntegrityError =>
  new IntegrityError('index.malformed', `${INDEX_PATH} ${problem}`, { cause });

/** Enough for 3,000 images with 60,000 blobs and 72,000 links, which take 48,000,000 bytes. */
export const LARGEST_INDEX = 48 * 1024 * 1024;

type Files = Pick<IsoImage, 'find' | 'readFile'>;

/**
 * Undefined on an image that this program did not make.
 *
 * @throws IntegrityError `index.malformed`, `index.digest`, `index.overlap`, `iso.file-too-large`; NewerFormatError
 */
export async function readIndex(iso: Files): Promise<MediaIndex | undefined> {
  const text = await readText(iso);
  return text === undefined ? undefined : parseMediaIndex(text);
}

/** An index that may be damaged: then it comes with the error that reports it. */
export type DamagedIndex = {
  readonly index: MediaIndex;
  readonly damage?: IntegrityError;
  /** Place of the file on the medium. */
  readonly extents: readonly ByteRange[];
};

/** The digest may be wrong, or the bytes not those that we write of its values. */
export async function readDamagedIndex(iso: Files): Promise<DamagedIndex | undefined> {
  const node = await iso.find(INDEX_PATH);
  const text = node?.kind === 'file' ? await readText(iso) : undefined;
  if (node?.kind !== 'file' || text === undefined) return undefined;
  const { index, damage = findOddText(text) } = decodeMediaIndex(text);
  return { index, extents: node.extents, ...(damage && { damage }) };
}

/** The digest covers the values alone; spaces fill the index up to its reserved size (decision 10). */
function findOddText(text: string): IntegrityError | undefined {
  const written = formatReadableJson(JSON.parse(text) as Json);
  if (text === written || text === `${written.padEnd(text.length - 1)}\n`) return undefined;
  return new IntegrityError(
    'index.text',
    `${INDEX_PATH} has other white space than sealift writes`,
  );
}

async function readText(iso: Files): Promise<string | undefined> {
  const node = await iso.find(INDEX_PATH);
  return node?.kind === 'file'
    ? checkIndexText(await iso.readFile(node, LARGEST_INDEX))
    : undefined;
}

/** Lets a later layout keep bytes in place; undefined for media that do not name their areas. */
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
