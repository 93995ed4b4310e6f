import { dirname } from 'node:path';
import { digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { type CpioMember, decodeInitrd, parseResolved } from '../ignition/index.ts';
import type { KargAreas } from '../iso/index.ts';
import { hasInstallation } from '../openshift/installation/ignition.ts';
import type { AreaValues } from './area-values.ts';
import { decodeEmbedded } from './areas.ts';
import { BUILT_PATH } from './media-index.ts';

/*
 * Owns the areas of a medium as its build left them. A medium that was built with values carries a copy of
 * them beside the config without values; an installation ISO without an index carries it inside the archive
 * that replaced the built one, where its proof tells whether it is right.
 */

/** Path of the built archive in an initrd that replaced it; the live system does not read it. */
export const BUILT_MEMBER = 'sealift/built-ignition.img';

/**
 * Path of the kernel arguments in a built archive whose base had others than its default ones: only the
 * build knows them.
 */
const KARGS_MEMBER = 'sealift/built-kargs';

/** Lists the members that a built archive has beside its config. */
export const listBuiltMembers = (kargs: KargAreas | undefined): readonly CpioMember[] =>
  !kargs || kargs.text === kargs.default
    ? []
    : [
        { name: dirname(KARGS_MEMBER), mode: 0o040755, data: new Uint8Array() },
        { name: KARGS_MEMBER, mode: 0o100644, data: Buffer.from(kargs.text) },
      ];

/** Reads the kernel arguments out of a built archive; undefined if they are those of the release. */
export async function readBuiltKargs(archive: Uint8Array): Promise<string | undefined> {
  const bytes = await readMember(archive, KARGS_MEMBER);
  return bytes && Buffer.from(bytes).toString('utf8');
}

/** Reads the built archive out of the one that replaced it; undefined if another program wrote that. */
export const readCarried = (archive: Uint8Array): Promise<Uint8Array | undefined> =>
  readMember(archive, BUILT_MEMBER);

async function readMember(archive: Uint8Array, name: string): Promise<Uint8Array | undefined> {
  try {
    return (await decodeInitrd(archive)).get(name);
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
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

/**
 * @returns undefined for zeros: the copy was dropped
 * @throws IntegrityError `customize.built`
 */
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
  if (hex === undefined || body.length !== size + textSize || hexOf(digestOf(body)) !== hex) {
    throw new IntegrityError('customize.built', `${BUILT_PATH} is damaged`, {
      hint: 'repair the ISO with "sealift repair"',
    });
  }
  return { archive: body.subarray(0, size), kargs: body.toString('utf8', size) };
}

/** True if an area holds the config of an installation ISO. */
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
