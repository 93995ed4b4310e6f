import { type Digest, digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { parseIgnition } from '../ignition/index.ts';
import type { KargAreas, ReadableIso } from '../iso/index.ts';
import { locateKargAreas } from '../iso/index.ts';
import { hasInstallation } from '../openshift/installation/ignition.ts';
import {
  readBareArchive,
  decodeEmbedded,
  encodeEmbedded,
  type OverlayPart,
  planEmbedPart,
  planKargParts,
  readLiveAreas,
  sortParts,
} from './areas.ts';
import { BUILT_PATH, PRISTINE_IGNITION_PATH } from './media-index.ts';
import { readProof } from './proof.ts';

/*
 * Owns the areas of a medium as its build left them. A medium that was built with values carries a copy of
 * them beside the config without values; an installation ISO without an index carries it inside the archive
 * that replaced the built one, where its proof tells whether it is right.
 */

/** The built areas: the archive of the embed area, and the kernel arguments. */
export type BuiltAreas = { readonly archive: Uint8Array; readonly kargs: string };

/** Path of the built archive in an initrd that replaced it; the live system does not read it. */
export const BUILT_MEMBER = 'sealift/built-ignition.img';

const KIND = 'sealift built 1';
const LARGEST = 64 * 1024 * 1024;

/** Formats the content of `/sealift/built.img`: a line with sizes and a digest, the archive, the arguments. */
export function encodeBuilt({ archive, kargs }: BuiltAreas): Uint8Array {
  const text = Buffer.from(kargs);
  const body = Buffer.concat([archive, text]);
  const head = `${KIND} ${hexOf(digestOf(body))} ${archive.length} ${text.length}\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/**
 * @returns undefined for zeros: the copy was dropped
 * @throws IntegrityError `customize.built`
 */
export function decodeBuilt(bytes: Uint8Array): BuiltAreas | undefined {
  if (bytes.every((byte) => byte === 0)) return undefined;
  const content = Buffer.from(bytes);
  const end = content.indexOf('\n');
  const [, hex, first, second] =
    /^sealift built 1 ([0-9a-f]{64}) (\d{1,9}) (\d{1,6})$/.exec(
      content.toString('latin1', 0, Math.max(0, end)),
    ) ?? [];
  const body = content.subarray(end + 1);
  const [size, textSize] = [Number(first), Number(second)];
  if (hex === undefined || body.length !== size + textSize || hexOf(digestOf(body)) !== hex) {
    throw new IntegrityError('customize.built', `${BUILT_PATH} is damaged`, {
      hint: 'repair the ISO with "sealift repair"',
    });
  }
  return { archive: body.subarray(0, size), kargs: body.toString('utf8', size) };
}

type Readable = ReadableIso & { readonly fileSize?: number };

/**
 * Reads the areas as the build left them. `bare` if the medium was built without values, `dropped` if its
 * copy was removed or replaced by another program; `unknown` on ISOs of other makers.
 *
 * @throws IntegrityError `customize.built`, `proof.damaged`
 */
export async function readBuilt(
  iso: Readable,
): Promise<BuiltAreas | 'bare' | 'dropped' | 'unknown'> {
  const node = await iso.find(BUILT_PATH);
  if (node?.kind === 'file') return decodeBuilt(await iso.readFile(node, LARGEST)) ?? 'dropped';
  if ((await iso.find(PRISTINE_IGNITION_PATH)) !== undefined) return 'bare';
  return readProvenBuilt(iso);
}

async function readProvenBuilt(iso: Readable): Promise<BuiltAreas | 'dropped' | 'unknown'> {
  const { fileSize: size = Infinity } = iso;
  const proof = await readProof({ read: iso.readBytes, size });
  const wanted = proof?.areas.ignition;
  if (wanted === undefined) return 'unknown';
  const { embed, kargs } = await readLiveAreas(iso);
  const text = kargs ? findBuiltArguments(kargs, proof?.areas['kernel-arguments']) : '';
  if (text === undefined) return 'dropped';
  const isBuilt = (archive: Uint8Array): boolean =>
    archive.length <= embed.size && digestOf(planEmbedPart(embed, archive).bytes) === wanted;
  const now = trimZeros(embed.bytes);
  if (isBuilt(now)) return { archive: now, kargs: text };
  const kept = await readCarried(embed.bytes);
  return kept && isBuilt(kept) ? { archive: kept, kargs: text } : 'dropped';
}

/** The arguments that the proof was made of: those of now, or the defaults of the base. */
const findBuiltArguments = (kargs: KargAreas, wanted: Digest | undefined): string | undefined =>
  [kargs.text, kargs.default].find((text) => {
    const parts = sortParts(planKargParts(kargs, text));
    return digestOf(Buffer.concat(parts.map(({ bytes }) => bytes))) === wanted;
  });

/** The built archive inside the archive that replaced it; undefined if another program wrote that. */
async function readCarried(bytes: Uint8Array): Promise<Uint8Array | undefined> {
  try {
    return (await decodeEmbedded(bytes)).others?.get(BUILT_MEMBER);
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
    throw error;
  }
}

/** The trailer of an archive may end in zeros, at most eight with its padding. */
const trimZeros = (bytes: Uint8Array): Uint8Array =>
  bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 9);

/**
 * Reads the archive that values of a site are added to: without values of any site, or of an installation
 * ISO as its build left it. Undefined on ISOs of other makers.
 */
export async function readPristineArchive(iso: Readable): Promise<Uint8Array | undefined> {
  const bare = await readBareArchive(iso);
  if (bare) return bare;
  const built = await readBuilt(iso);
  return typeof built === 'object' ? built.archive : undefined;
}

/** True if an area holds the config of an installation ISO. */
export async function holdsInstallation(bytes: Uint8Array): Promise<boolean> {
  try {
    const { config } = await decodeEmbedded(bytes);
    const name = 'the embedded Ignition config';
    return config !== undefined && hasInstallation(parseIgnition(config, name));
  } catch (error) {
    if (error instanceof IntegrityError) return false;
    throw error;
  }
}

/**
 * Plans the removal of the copy of the built areas: zeros for its file, or the archive without it. Empty for
 * a medium without a copy.
 *
 * @throws IntegrityError `customize.built` if the file is something else
 */
export async function planDropped(iso: ReadableIso): Promise<readonly OverlayPart[]> {
  const node = await iso.find(BUILT_PATH);
  if (node?.kind === 'file') {
    decodeBuilt(await iso.readFile(node, LARGEST));
    const [{ offset } = { offset: 0 }] = node.extents;
    return [{ offset, bytes: new Uint8Array(node.size) }];
  }
  const { embed } = await readLiveAreas(iso);
  const embedded = await decodeEmbedded(embed.bytes);
  if (!embedded.others?.has(BUILT_MEMBER)) return [];
  const others = new Map([...embedded.others].filter(([name]) => name !== BUILT_MEMBER));
  return [planEmbedPart(embed, encodeEmbedded({ ...embedded, others }))];
}

/** The parts that give the areas their built contents. */
export async function planBuilt(
  iso: ReadableIso,
  { archive, kargs }: BuiltAreas,
): Promise<readonly OverlayPart[]> {
  const { embed } = await readLiveAreas(iso);
  const places = await locateKargAreas(iso).catch(() => undefined);
  return sortParts([
    planEmbedPart(embed, archive),
    ...(places ? planKargParts(places, kargs) : []),
  ]);
}
