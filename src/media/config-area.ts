import { digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { CONFIG_AREA_PATH } from './media-index.ts';

/*
 * Owns the form of the area that holds the configuration image of a site, an ISO of its own inside the medium.
 *
 * | bytes of the area | what |
 * |---|---|
 * | from 0 | the image as its installer wrote it, then zeros |
 * | last 2048 | `sealift config image 1 SHA256 SIZE`, a line feed and zeros |
 *
 * Nothing in the image says where it ends or whether it is whole, so its size and digest are in the last
 * sector, which no part of the image reaches. An area without an image is zeros: it has no label, and nothing
 * on the live system notices it.
 */

/**
 * Bytes of the area. The nine recorded images of an installer have 16 to 18 KB of files; packed, these make an
 * ISO of 64 to 80 KiB, or of 380 KiB with the padding of xorriso. Manifests pack to about a ninth, so the rest
 * of 1 MiB has room for some 5 MiB of them; MachineConfigs with files in base64 pack to three quarters.
 */
export const CONFIG_AREA_SIZE = 2 ** 20;

/** Bytes at the end that hold size and digest of the image. */
const SEAL_SIZE = 2048;

export type HeldConfigImage = {
  readonly image: Uint8Array;
  /** True if a digest covers the image; another program may have written it without one. */
  readonly isProven: boolean;
};

/** @throws IntegrityError `config-image.too-large` */
export function encodeConfigArea(image: Uint8Array, size: number): Uint8Array {
  const room = size - SEAL_SIZE;
  if (image.length > room) {
    throw new IntegrityError(
      'config-image.too-large',
      `the configuration image has ${image.length} bytes, but its area has room for ${room}`,
      {
        expected: `at most ${room} bytes`,
        found: `${image.length} bytes`,
        hint: 'leave out large manifests, or attach the image to the hosts beside the medium',
      },
    );
  }
  const area = Buffer.alloc(size);
  area.set(image);
  area.write(`sealift config image 1 ${hexOf(digestOf(image))} ${image.length}\n`, room);
  return area;
}

/**
 * Undefined if the area has no image.
 *
 * @throws IntegrityError `config-image.area` if the image does not have the digest that the area names
 */
export function decodeConfigArea(area: Uint8Array): HeldConfigImage | undefined {
  if (isEmptyArea(area)) return undefined;
  const room = area.length - SEAL_SIZE;
  const seal = Buffer.from(area.subarray(Math.max(0, room))).toString('latin1');
  const [, hex, size] = /^sealift config image 1 ([0-9a-f]{64}) (\d{1,9})\n\0*$/.exec(seal) ?? [];
  if (hex === undefined) return { image: area, isProven: false };
  const image = area.subarray(0, Number(size));
  const isWhole = hexOf(digestOf(image)) === hex && isEmptyArea(area.subarray(image.length, room));
  if (isWhole) return { image, isProven: true };
  throw new IntegrityError(
    'config-image.area',
    `${CONFIG_AREA_PATH} does not have the bytes of the configuration image that was put there`,
    { hint: 'put the image there again with "sealift customize --site"' },
  );
}

export const isEmptyArea = (area: Uint8Array): boolean => area.every((byte) => byte === 0);
