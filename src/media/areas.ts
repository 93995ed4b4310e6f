import { digestOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { RandomAccess, ByteRange } from '../base/random-access.ts';
import { decodeInitrd, encodeInitrd } from '../ignition/index.ts';
import {
  editKargs,
  type EmbedArea,
  encodeKargs,
  findEmbedArea,
  type IsoImage,
  type KargAreas,
  type KargEdits,
  type KargsFiller,
  type LocatedAreas,
  locateKargAreas,
  parseReplacement,
  type ReadableIso,
  readKargAreas,
  requireMenuWords,
} from '../iso/index.ts';
import type { Keyfile } from '../nmstate/index.ts';
import { type IndexExtent, type MediaIndex, PRISTINE_IGNITION_PATH } from './media-index.ts';

/*
 * The room reads, verifies, compares, changes and serves media. An ISO comes in, as a file, a device or
 * ranges of a remote one; a description, a verdict, a changed ISO or its bytes leave. A build takes the
 * index and the registry tree of its new medium from here. The room must not know configuration files,
 * sites, the stages of a build or commands.
 *
 * This file owns the areas of a medium that may change after the build, the embed area and the kernel
 * arguments, and the bytes that replace them.
 */

/** Bytes that replace as many bytes of an ISO. Lists of parts are sorted by offset and do not overlap. */
export type OverlayPart = { readonly offset: number; readonly bytes: Uint8Array };

/** Areas of a live ISO of CoreOS that may be changed, and their contents. */
export type LiveAreas = {
  readonly embed: EmbedArea & { readonly bytes: Uint8Array };
  /** Absent on images older than the areas for kernel arguments. */
  readonly kargs?: KargAreas;
};

export type Embedded = {
  /** JSON text. */
  readonly config?: string;
  /** Network profiles that the initramfs copies into the system. */
  readonly keyfiles: readonly Keyfile[];
  /** Files that other tools embedded, by their paths in the initramfs. */
  readonly others?: ReadonlyMap<string, Uint8Array>;
};

/** Offsets of the kernel arguments, and the bytes that end them there. */
export type KargPlaces = {
  readonly size: number;
  readonly areas: readonly (KargsFiller & {
    readonly offset: number;
    /** Path of the file that holds them, if known. */
    readonly path?: string | undefined;
  })[];
};

/** Closing the result closes the image. */
export const overlayAccess = (
  image: RandomAccess,
  parts: readonly OverlayPart[],
): RandomAccess => ({
  ...image,
  read: overlayRead(image.read, parts),
});

export const overlayRead =
  (read: RandomAccess['read'], parts: readonly OverlayPart[]): RandomAccess['read'] =>
  async (offset, size, buffer) => {
    const bytes = await read(offset, size, buffer);
    applyParts(bytes, offset, parts);
    return bytes;
  };

/** Replaces the bytes that parts cover; `bytes` begin at `offset` of the image. */
export function applyParts(bytes: Uint8Array, offset: number, parts: readonly OverlayPart[]): void {
  for (const part of parts) {
    const from = Math.max(offset, part.offset);
    const to = Math.min(offset + bytes.length, part.offset + part.bytes.length);
    if (from >= to) continue;
    bytes.set(part.bytes.subarray(from - part.offset, to - part.offset), from - offset);
  }
}

export const sortParts = (parts: readonly OverlayPart[]): readonly OverlayPart[] =>
  parts.toSorted((a, b) => a.offset - b.offset);

/** Path of the Ignition config in the initrd. */
export const CONFIG_MEMBER = 'config.ign';
const NETWORK = 'etc/coreos-firstboot-network';

/** An image older than the areas for kernel arguments has the embed area alone. */
export async function readLiveAreas(iso: ReadableIso): Promise<LiveAreas> {
  const area = await findEmbedArea(iso);
  const embed = { ...area, bytes: await iso.readBytes(area.offset, area.size) };
  return { embed, ...withoutUndefined({ kargs: await readOptionalKargs(iso) }) };
}

/** Undefined on an image older than these areas. */
export const readOptionalKargs = (iso: ReadableIso): Promise<KargAreas | undefined> =>
  unlessMissing(() => readKargAreas(iso));

/** The areas may differ; undefined on an image older than these areas. */
export const locateOptionalKargs = (iso: ReadableIso): Promise<LocatedAreas | undefined> =>
  unlessMissing(() => locateKargAreas(iso));

async function unlessMissing<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof IntegrityError && error.code === 'kargs.no-areas') return undefined;
    throw error;
  }
}

/** @throws IntegrityError if the bytes are not an initrd */
export async function decodeEmbedded(bytes: Uint8Array): Promise<Embedded> {
  const keyfiles: Keyfile[] = [];
  const others = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [name, data] of await decodeInitrd(bytes)) {
    const content = Buffer.from(data).toString('utf8');
    if (name === CONFIG_MEMBER) config = content;
    else if (name.startsWith(`${NETWORK}/`)) {
      keyfiles.push({ name: name.slice(NETWORK.length + 1), content });
    } else others.set(name, data);
  }
  return { keyfiles, others, ...(config !== undefined && { config }) };
}

/** Encodes the initrd. No bytes without contents: CoreOS embeds no empty archive. */
export function encodeEmbedded({ config, keyfiles, others = new Map() }: Embedded): Uint8Array {
  const files = new Map<string, Uint8Array>([
    ...others,
    ...(config === undefined ? [] : [[CONFIG_MEMBER, Buffer.from(config)] as const]),
    ...keyfiles.map(({ name, content }) => [`${NETWORK}/${name}`, Buffer.from(content)] as const),
  ]);
  // The kernel does not create directories that the archive does not name.
  const paths = new Set([...files.keys()].toSorted().flatMap(listPaths));
  const members = [...paths].map((name) => {
    const data = files.get(name);
    return { name, mode: data ? 0o100600 : 0o040755, data: data ?? new Uint8Array() };
  });
  return members.length === 0 ? new Uint8Array() : encodeInitrd(members);
}

/** Lists `a`, `a/b` and `a/b/c` for `a/b/c`. */
const listPaths = (path: string): readonly string[] =>
  path.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/'));

/** Plans the bytes of the whole area: the archive, followed by zeros. */
export function planEmbedPart({ offset, size }: ByteRange, archive: Uint8Array): OverlayPart {
  if (archive.length > size) {
    throw new IntegrityError(
      'customize.too-large',
      `the compressed Ignition config takes ${archive.length} bytes, but its area has ${size}`,
      {
        expected: `at most ${size}`,
        found: String(archive.length),
        hint: 'embed less, or build the ISO with a larger area',
      },
    );
  }
  const bytes = new Uint8Array(size);
  bytes.set(archive);
  return { offset, bytes };
}

/** Every area holds the same arguments. */
export const planKargParts = ({ areas, size }: KargPlaces, text: string): readonly OverlayPart[] =>
  areas.map((area) => ({ offset: area.offset, bytes: encodeKargs(text, size, area) }));

export function planEditedKargs(
  places: KargPlaces & { readonly default: string },
  edits: KargEdits,
): readonly OverlayPart[] {
  const { append = [], replace = [] } = edits;
  requireMenu(places, [...append, ...replace.map((text) => parseReplacement(text).now)]);
  return planKargParts(places, editKargs(places.default, edits));
}

/** Reads the archive that the embed area of our medium has without site values; undefined on other images. */
export async function readBareArchive(
  iso: Pick<IsoImage, 'find' | 'readFile'>,
): Promise<Uint8Array | undefined> {
  const node = await iso.find(PRISTINE_IGNITION_PATH);
  return node?.kind === 'file' ? iso.readFile(node, LIMIT) : undefined;
}

/** Refuses arguments that a boot menu would change. Boot images of s390x have no menu. */
export function requireMenu({ areas }: KargPlaces, append: readonly string[]): void {
  const isMenu = ({ path = 'grub.cfg' }): boolean => /\.cfg$/i.test(path);
  if (areas.some(isMenu)) requireMenuWords(append);
}

/** Far larger than any Ignition config that a machine boots with. */
const LIMIT = 64 * 1024 * 1024;

/** The digests are those without site values. */
export const withPristineDigests = ({
  extents,
}: Pick<MediaIndex, 'extents'>): readonly IndexExtent[] =>
  extents.map((extent) => {
    const { offset, size, paths, pristine } = extent;
    return pristine ? { offset, size, paths, digest: pristine } : extent;
  });

/**
 * Computes the medium digest, which identifies every byte of our medium without reading its payload: the
 * digest of its index. If an area has changed, it is the SHA-256 of a text: the digest of the index and those
 * of all areas in the order of the index, as `sha256:` and 64 hex digits, joined by line feeds. Undefined if
 * the index has no digest.
 */
export async function identifyIso(
  { digest, mutable = [] }: Pick<MediaIndex, 'digest' | 'mutable'>,
  read: RandomAccess['read'],
): Promise<Digest | undefined> {
  const found: Digest[] = [];
  for (const { offset, size } of mutable) found.push(digestOf(await read(offset, size)));
  const isPristine = mutable.every((area, at) => area.digest === found[at]);
  return digest === undefined || isPristine ? digest : digestOf([digest, ...found].join('\n'));
}
