import { digestOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import { findEmbedArea, type IsoImage, type LocatedAreas, lacksEmbedArea } from '../iso/index.ts';
import type { LiveSystem } from '../openshift/agent/live-system.ts';
import {
  type AreaBytes,
  type AreaKind,
  type FoundAreas,
  type AreaValues,
  isFileArea,
  planContents,
  readKargText,
  fillEmbed,
  fillKargs,
} from './area-values.ts';
import { locateOptionalKargs, type OverlayPart, readBareArchive } from './areas.ts';
import { decodeBuilt, listBuiltArchives, readBuiltKargs } from './built.ts';
import { isEmptyArea } from './config-area.ts';
import { readLiveSystem } from './config-image.ts';
import {
  BUILT_PATH,
  CONFIG_AREA_PATH,
  INDEX_PATH,
  type MediaIndex,
  type MutableArea,
  ROOTFS_PATH,
} from './media-index.ts';
import { attempt } from './open.ts';
import { type Proof, readProof } from './proof.ts';

/*
 * Owns what is known of a medium before its payload is read: its index or proof, and its areas as they are,
 * as the build left them, and without values of any site. verify, inspect, diff, customize and repair use it.
 */

export type Medium = {
  /** The part of the medium that names its bytes; absent on ISOs of other makers. */
  readonly provenBy?: 'index' | 'proof';
  readonly areas: MediumAreas;
};

export type MediumAreas = FoundAreas & {
  /**
   * Contents that the build left. Absent if the medium no longer carries them, and on ISOs of other makers.
   */
  readonly built?: AreaValues;
  /**
   * Without values of any site: on an installation ISO, as its build left it. Absent if no longer carried.
   */
  readonly bare?: AreaValues;
  /** Damage of the copy of the built contents. */
  readonly damage?: IntegrityError;
  /** Digests of the areas as built, by kind, on a medium with a proof. */
  readonly digests?: Proof['areas'];
  /**
   * The live system that reads the configuration image in its area. Absent without an image, and if the
   * Ignition configs cannot be read.
   */
  readonly system?: LiveSystem;
};

type Files = Pick<IsoImage, 'find' | 'readFile' | 'readBytes'>;
/** The part that names the bytes of a medium; an index that was not read names them too. */
type Known = { readonly index?: MediaIndex | undefined; readonly proof?: Proof | undefined };

/**
 * The index of a large medium is large: it is not read here, but compared if it is given.
 *
 * @throws IntegrityError `iso.no-embed-area` on an ISO that has no areas, `proof.damaged`, and those of `readAreas`
 */
export async function readMedium(
  iso: Files & { readonly fileSize?: number },
  index?: MediaIndex,
): Promise<Medium> {
  const isIndexed = index !== undefined || (await iso.find(INDEX_PATH)) !== undefined;
  if (isIndexed) return { provenBy: 'index', areas: await readAreas(iso, { index }) };
  const proof = await readProof({ read: iso.readBytes, size: iso.fileSize ?? Infinity });
  const areas = await readAreas(iso, { proof });
  return proof ? { provenBy: 'proof', areas } : { areas };
}

/** Compares the areas with index or proof. The medium may be damaged elsewhere. */
export async function readAreas(iso: Files, { index, proof }: Known): Promise<MediumAreas> {
  const place = findNamed(index, 'ignition') ?? (await findEmbedArea(iso));
  const embed = {
    offset: place.offset,
    size: place.size,
    bytes: await iso.readBytes(place.offset, place.size),
  };
  const kargs = await locateOptionalKargs(iso);
  const now = [
    { kind: 'ignition' as const, offset: embed.offset, bytes: embed.bytes },
    ...(kargs ? await readEach(iso, 'kernel-arguments', placesOf(kargs)) : []),
    ...(await readFileArea(iso, index, 'built')),
    ...(await readFileArea(iso, index, 'config-image')),
  ].sort((a, b) => a.offset - b.offset);
  const system = await readReader(iso, now);
  const areas = { embed, now, ...withoutUndefined({ kargs, system }) };
  if (proof) return { ...areas, ...(await recallProven(areas, proof)), digests: proof.areas };
  const archive = await readBareArchive(iso);
  if (archive) return { ...areas, ...(await recallIndexed(areas, archive, index)) };
  const isOurs = (await iso.find(INDEX_PATH)) !== undefined; // of the first versions
  return isOurs
    ? areas
    : { ...areas, bare: { archive: new Uint8Array(), kargs: kargs?.default ?? '' } };
}

/** Undefined on an ISO without areas, such as a configuration ISO. */
export async function readOptionalAreas(
  iso: Files,
  known: Known,
): Promise<MediumAreas | undefined> {
  try {
    return await readAreas(iso, known);
  } catch (error) {
    if (lacksEmbedArea(error)) return undefined;
    throw error;
  }
}

const findNamed = (index: MediaIndex | undefined, wanted: AreaKind): ByteRange | undefined =>
  index?.mutable?.find(({ kind }) => kind === wanted);

const PATHS = { 'built': BUILT_PATH, 'config-image': CONFIG_AREA_PATH };

/** Empty on a medium without such an area. */
async function readFileArea(
  iso: Files,
  index: MediaIndex | undefined,
  kind: keyof typeof PATHS,
): Promise<readonly AreaBytes[]> {
  const place = findNamed(index, kind) ?? (await findFile(iso, PATHS[kind]));
  return place ? readEach(iso, kind, [place]) : [];
}

async function findFile(iso: Files, path: string): Promise<ByteRange | undefined> {
  const node = await iso.find(path);
  return node?.kind === 'file' && node.size <= LARGEST_COPY ? node.extents[0] : undefined;
}

/** Reads the configs only for an image; damage of an area is judged as such. */
async function readReader(iso: Files, now: readonly AreaBytes[]): Promise<LiveSystem | undefined> {
  const area = now.find(({ kind }) => kind === 'config-image');
  if (!area || isEmptyArea(area.bytes)) return undefined;
  return (await attempt(() => readLiveSystem(iso))).value;
}

/** As large as an index may name an area. */
const LARGEST_COPY = 64 * 2 ** 20;

const placesOf = ({ areas, size }: LocatedAreas): readonly ByteRange[] =>
  areas.map(({ offset }) => ({ offset, size }));

const readEach = (
  iso: Files,
  kind: AreaKind,
  places: readonly ByteRange[],
): Promise<readonly AreaBytes[]> =>
  Promise.all(
    places.map(async ({ offset, size }) => ({
      kind,
      offset,
      bytes: await iso.readBytes(offset, size),
    })),
  );

type Recalled = Pick<MediumAreas, 'built' | 'bare' | 'damage'>;

async function recallIndexed(
  areas: FoundAreas,
  archive: Uint8Array,
  index: MediaIndex | undefined,
): Promise<Recalled> {
  const kargs = (await readBuiltKargs(archive)) ?? areas.kargs?.default ?? '';
  const bare = { archive, kargs };
  if (index) requireNamed(planContents(areas, bare, 'bare'), index.mutable ?? []);
  const copy = areas.now.find(({ kind }) => kind === 'built');
  if (!copy) return { bare, built: bare };
  try {
    return { bare, ...withoutUndefined({ built: decodeBuilt(copy.bytes) }) };
  } catch (error) {
    if (error instanceof IntegrityError) return { bare, damage: error };
    throw error;
  }
}

function requireNamed(parts: readonly OverlayPart[], named: readonly MutableArea[]): void {
  for (const { offset, size, digest } of named) {
    const part = parts.find((each) => each.offset === offset && each.bytes.length === size);
    const found = part && digestOf(part.bytes);
    if (found === digest) continue;
    throw new IntegrityError(
      'customize.pristine',
      `the original contents on the medium do not restore the area at byte ${offset}`,
      { expected: digest, found: found ?? 'nothing', hint: 'repair the ISO with "sealift repair"' },
    );
  }
}

/**
 * Contents that a proof names: the archive of now or the one that it carries, and arguments (`recallText`).
 */
async function recallProven(areas: FoundAreas, { areas: digests }: Proof): Promise<Recalled> {
  const { embed } = areas;
  const isBuilt = (archive: Uint8Array): boolean =>
    archive.length <= embed.bytes.length && isNamed([fillEmbed(areas, archive)], digests);
  for (const archive of await listBuiltArchives(embed.bytes)) {
    if (!isBuilt(archive)) continue;
    const text = await recallText(areas, archive, digests);
    if (text === undefined) continue;
    const built = { archive, kargs: text };
    return { built, bare: built };
  }
  return {};
}

/** The arguments of now, those that the archive names, or the default ones of the base. */
async function recallText(
  { kargs, now }: FoundAreas,
  archive: Uint8Array,
  digests: Proof['areas'],
): Promise<string | undefined> {
  const [first] = kargs?.areas ?? [];
  if (!kargs || !first) return '';
  const places = now.filter(({ kind }) => kind === 'kernel-arguments');
  if (isNamed(places, digests)) return readKargText({ kargs, now });
  const texts = [await readBuiltKargs(archive), kargs.default];
  return texts.find((text) => text !== undefined && isNamed(fillKargs(kargs, text), digests));
}

/** @param parts of one kind */
function isNamed(parts: readonly AreaBytes[], digests: Proof['areas']): boolean {
  const [first] = parts;
  if (!first || isFileArea(first.kind)) return false;
  return digestOf(Buffer.concat(parts.map(({ bytes }) => bytes))) === digests[first.kind];
}

/** True for an ISO that sealift did not make, or of which nothing says so. */
export const isOfOthers = ({ provenBy }: Medium): boolean => provenBy === undefined;

/** Without values of a site, or the one of now on ISOs of other makers. */
export const ownArchiveOf = (medium: Medium): Uint8Array =>
  (isOfOthers(medium) ? undefined : medium.areas.bare?.archive) ?? medium.areas.embed.bytes;

/** As index or proof names it, `minimal-iso`, `coreos-live`, or `other` for an ISO without CoreOS's areas. */
export type Product = string;

/** By index or proof, else by files. A minimal ISO is a live ISO of CoreOS without its root file system. */
export async function recognizeProduct(
  iso: Pick<IsoImage, 'find'>,
  { index, proof }: Known,
  areas: MediumAreas | undefined,
): Promise<Product> {
  const named = index?.product ?? proof?.product;
  if (named !== undefined) return named;
  if (!areas) return 'other';
  return (await iso.find(ROOTFS_PATH)) ? 'coreos-live' : 'minimal-iso';
}
