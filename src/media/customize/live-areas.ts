import { IntegrityError } from '../../base/errors.ts';
import { decodeInitrd, encodeInitrd } from '../../ignition/initrd.ts';
import { findEmbedArea, type EmbedArea, type ReadableIso } from '../../iso/coreos/embed-area.ts';
import { readKargAreas, type KargAreas } from '../../iso/coreos/kargs.ts';
import { encodeKargs, type KargsFiller } from '../../iso/coreos/kargs.ts';
import { editKargs } from '../../iso/coreos/kargs.ts';
import { requireMenuWords } from '../../iso/coreos/kargs.ts';
import type { ByteRange } from '../../base/random-access.ts';
import type { CustomValues, Keyfile } from '../../openshift/agent/values.ts';
import type { OverlayPart } from './overlay.ts';

/** The places of a live ISO of CoreOS that are there to be changed, and what is in them. */
export type LiveAreas = {
  readonly embed: EmbedArea & { readonly bytes: Uint8Array };
  /** Absent on images from before there were any. */
  readonly kargs?: KargAreas;
};

/** What the embed area holds. */
export type Embedded = {
  /** JSON text. */
  readonly config?: string;
  /** Network profiles that the initramfs takes over. */
  readonly keyfiles: readonly Keyfile[];
  /** Files that other tools put there, by their paths in the initramfs. */
  readonly others?: ReadonlyMap<string, Uint8Array>;
};

const CONFIG = 'config.ign';
const NETWORK = 'etc/coreos-firstboot-network';

/** @throws IntegrityError `iso.no-embed-area`, `kargs.areas-differ` and the like */
export async function readLiveAreas(iso: ReadableIso): Promise<LiveAreas> {
  const area = await findEmbedArea(iso);
  const embed = { ...area, bytes: await iso.readBytes(area.offset, area.size) };
  try {
    return { embed, kargs: await readKargAreas(iso) };
  } catch (error) {
    if (error instanceof IntegrityError && error.code === 'kargs.no-areas') return { embed };
    throw error;
  }
}

/** @throws IntegrityError where the bytes are no initrd */
export async function decodeEmbedded(bytes: Uint8Array): Promise<Embedded> {
  const keyfiles: Keyfile[] = [];
  const others = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [name, data] of await decodeInitrd(bytes)) {
    const content = Buffer.from(data).toString('utf8');
    if (name === CONFIG) config = content;
    else if (name.startsWith(`${NETWORK}/`)) {
      keyfiles.push({ name: name.slice(NETWORK.length + 1), content });
    } else others.set(name, data);
  }
  return { keyfiles, others, ...(config !== undefined && { config }) };
}

/** The initrd for an embed area; empty where there is nothing to embed: CoreOS embeds no empty archive. */
export function encodeEmbedded({ config, keyfiles, others = new Map() }: Embedded): Uint8Array {
  const files = new Map<string, Uint8Array>([
    ...others,
    ...(config === undefined ? [] : [[CONFIG, Buffer.from(config)] as const]),
    ...keyfiles.map(({ name, content }) => [`${NETWORK}/${name}`, Buffer.from(content)] as const),
  ]);
  // The kernel makes no directory that the archive does not name.
  const paths = new Set([...files.keys()].toSorted().flatMap(listPaths));
  const members = [...paths].map((name) => {
    const data = files.get(name);
    return { name, mode: data ? 0o100600 : 0o040755, data: data ?? new Uint8Array() };
  });
  return members.length === 0 ? new Uint8Array() : encodeInitrd(members);
}

/** `a`, `a/b` and `a/b/c` of `a/b/c`. */
const listPaths = (path: string): readonly string[] =>
  path.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/'));

/** The whole area: the archive, and zeros behind it. */
export function planEmbedPart({ offset, size }: ByteRange, archive: Uint8Array): OverlayPart {
  if (archive.length > size) {
    throw new IntegrityError(
      'customize.too-large',
      `compressed Ignition config takes ${archive.length} bytes, but its area has ${size}`,
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

/** Where kernel arguments stand, and what ends them there. */
export type KargPlaces = {
  readonly size: number;
  readonly areas: readonly (KargsFiller & {
    readonly offset: number;
    /** Of its file, where that is known. */
    readonly path?: string | undefined;
  })[];
};

/**
 * The same arguments in every area.
 *
 * @throws UsageError `kargs.too-large`
 */
export const planKargParts = ({ areas, size }: KargPlaces, text: string): readonly OverlayPart[] =>
  areas.map((area) => ({ offset: area.offset, bytes: encodeKargs(text, size, area) }));

/**
 * The default arguments without some and with others, in every area.
 *
 * @throws UsageError `kargs.special`, `kargs.too-large`
 */
export function planEditedKargs(
  places: KargPlaces & { readonly default: string },
  { append = [], remove = [] }: NonNullable<CustomValues['kargs']>,
): readonly OverlayPart[] {
  // Boot images of s390x have no menu.
  const isMenu = ({ path = 'grub.cfg' }): boolean => /\.cfg$/i.test(path);
  if (places.areas.some(isMenu)) requireMenuWords(append);
  return planKargParts(places, editKargs(places.default, { append, remove }));
}
