import { digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { encodeInitrd, parseIgnition } from '../ignition/index.ts';
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

/** Encodes the archive that the build of an installation ISO embeds: the config alone. */
export const encodeInstallation = (config: Uint8Array): Uint8Array =>
  encodeInitrd([{ name: CONFIG_MEMBER, mode: 0o100644, data: config }]);

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
