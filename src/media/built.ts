import { dirname } from 'node:path';
import { digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { decodeInitrd, encodeInitrd, parseResolved } from '../ignition/index.ts';
import type { KargAreas } from '../iso/index.ts';
import { hasInstallation } from '../openshift/installation/ignition.ts';
import type { AreaValues } from './area-values.ts';
import { CONFIG_MEMBER, decodeEmbedded } from './areas.ts';
import { BUILT_PATH } from './media-index.ts';

/*
 * Owns the areas of a medium as its build left them. A medium that was built with values carries a copy of
 * them beside the config without values; an installation ISO without an index carries it inside the archive
 * that replaced the built one, where its proof tells whether it is right.
 */

/** Path of the built archive in an initrd that replaced it; the live system does not read it. */
export const BUILT_MEMBER = 'sealift/built-ignition.img';

/** Kernel arguments of a base that had others than its default ones: only the build knows them. */
const KARGS_MEMBER = 'sealift/built-kargs';

/** Finds the arguments that only a build knows: those of its base, if they are not its default ones. */
export const findBuiltKargs = (kargs: KargAreas | undefined): string | undefined =>
  kargs && kargs.text !== kargs.default ? kargs.text : undefined;

/** @param kargs from `findBuiltKargs` */
export const encodeInstallation = (config: Uint8Array, kargs?: string): Uint8Array =>
  encodeInitrd([
    { name: CONFIG_MEMBER, mode: 0o100644, data: config },
    ...(kargs === undefined
      ? []
      : [
          { name: dirname(KARGS_MEMBER), mode: 0o040755, data: new Uint8Array() },
          { name: KARGS_MEMBER, mode: 0o100644, data: Buffer.from(kargs) },
        ]),
  ]);

/** Undefined if the kernel arguments are those of the release. */
export async function readBuiltKargs(archive: Uint8Array): Promise<string | undefined> {
  return textOf((await readMembers(archive)).get(KARGS_MEMBER));
}

/**
 * Candidates: the archive of now, the one that it carries, and the one that its config was built as, if
 * another program added networks alone.
 */
export async function listBuiltArchives(area: Uint8Array): Promise<readonly Uint8Array[]> {
  const members = await readMembers(area);
  const [carried, config] = [members.get(BUILT_MEMBER), members.get(CONFIG_MEMBER)];
  const kargs = textOf(members.get(KARGS_MEMBER));
  return [
    trimZeros(area),
    ...(carried ? [carried] : []),
    ...(config ? [encodeInstallation(config, kargs)] : []),
  ];
}

/** The trailer of an archive may end in zeros, at most eight with its padding. */
const trimZeros = (bytes: Uint8Array): Uint8Array =>
  bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 9);

const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('utf8');

async function readMembers(archive: Uint8Array): Promise<ReadonlyMap<string, Uint8Array>> {
  try {
    return await decodeInitrd(archive);
  } catch (error) {
    if (error instanceof IntegrityError) return new Map();
    throw error;
  }
}

const KIND = 'sealift built 1';

/** Formats the content of `/sealift/built.img`: a line with sizes and a digest, the archive, the arguments. */
export function encodeBuilt({ archive, kargs }: AreaValues): Uint8Array {
  const text = Buffer.from(kargs);
  const body = Buffer.concat([archive, text]);
  const head = `${KIND} ${hexOf(digestOf(body))} ${archive.length} ${text.length}\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** @returns undefined for zeros: the copy was dropped */
export function decodeBuilt(bytes: Uint8Array): AreaValues | undefined {
  if (bytes.every((byte) => byte === 0)) return undefined;
  const content = Buffer.from(bytes);
  const end = content.indexOf('\n');
  const [, hex, first, second] =
    /^sealift built 1 ([0-9a-f]{64}) (\d{1,9}) (\d{1,6})$/.exec(
      content.toString('latin1', 0, Math.max(0, end)),
    ) ?? [];
  const body = content.subarray(end + 1);
  const [size, textSize] = [Number(first), Number(second)];
  const kargs = body.toString('utf8', size);
  const isRight = body.length === size + textSize && !/\p{Cc}/u.test(kargs);
  if (hex === undefined || !isRight || hexOf(digestOf(body)) !== hex) {
    throw new IntegrityError('customize.built', `${BUILT_PATH} is damaged`, {
      hint: 'repair the ISO with "sealift repair"',
    });
  }
  return { archive: body.subarray(0, size), kargs };
}

export async function holdsInstallation(bytes: Uint8Array): Promise<boolean> {
  try {
    const { config } = await decodeEmbedded(bytes);
    const name = 'the embedded Ignition config';
    return config !== undefined && hasInstallation(parseResolved(config, name));
  } catch (error) {
    if (error instanceof IntegrityError) return false;
    throw error;
  }
}
