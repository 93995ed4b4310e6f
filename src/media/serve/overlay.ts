import { link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest, hexOf, openSealedBytes, sealBytes } from '../../base/digest.ts';
import { nameAside } from '../../base/disk/aside.ts';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { readOwnFile, writeNewFile } from '../../base/disk/open-file.ts';
import { DiskError, isErrno } from '../../base/errors.ts';
import type { OverlayPart } from '../areas.ts';

/* Overlays of ISOs, stored encrypted so that they are served again unchanged. */

/** A stored overlay, held in memory while it is served. */
export type PackedOverlay = {
  /** Digest of the packed bytes: equal overlays have equal digests. */
  readonly digest: Digest;
  /** All of it, as it is stored. */
  readonly packed: Buffer;
  /** Later parts cover earlier ones. */
  readonly parts: readonly PackedPart[];
};

export type PackedPart = {
  readonly offset: number;
  /** Bytes of the ISO that the part covers. */
  readonly size: number;
  /** First bytes of the part; the rest are zeros. */
  readonly bytes: Uint8Array;
};

export type OverlayPlace = {
  /** Directory of all overlays; created when the first is stored. */
  readonly directory: string;
  /** Any text that identifies the overlay, such as id and revision of an InfraEnv with the ISO's digest. */
  readonly name: string;
  /** Prefix of the file name, before the digest of the name; used by cleanup. */
  readonly label?: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
};

/**
 * Encrypted, unless one of that name exists: an overlay that was served is served again unchanged. It is on
 * the disk when this resolves; a kill leaves all of it or nothing.
 *
 * @returns the stored overlay, which may be an earlier one
 * @throws DiskError `disk.full`, `disk.not-writable`, `disk.broken`, `overlay.unreadable`
 */
export async function storeOverlay(
  place: OverlayPlace,
  parts: readonly OverlayPart[],
): Promise<PackedOverlay> {
  const packed = packOverlay(parts);
  try {
    if (await createWhole(place, sealBytes(packed, place.key, place.name))) {
      return parsePackedOverlay(packed);
    }
  } catch (error) {
    throw explainWriteError(error, pathOf(place));
  }
  const first = await openStoredOverlay(place);
  if (first) return first;
  return storeOverlay(place, parts); // removed in between
}

/**
 * Undefined if the overlay does not exist.
 *
 * @throws DiskError `overlay.unreadable` for another key, another name, or changed bytes; `file.foreign`
 */
export async function openStoredOverlay(place: OverlayPlace): Promise<PackedOverlay | undefined> {
  const path = pathOf(place);
  const sealed = await readOwnFile(path);
  if (!sealed) return undefined;
  const packed = openSealedBytes(sealed, place.key, place.name);
  if (packed) return parsePackedOverlay(packed);
  throw new DiskError('overlay.unreadable', `the key does not open the overlay "${path}"`, {
    hint: 'use the key that it was stored with',
  });
}

export async function removeStoredOverlay(place: Omit<OverlayPlace, 'key'>): Promise<void> {
  await rm(pathOf(place), { force: true });
}

/** The name is digested because it may hold any characters, and secrets. */
const pathOf = ({ directory, name, label = '' }: Omit<OverlayPlace, 'key'>): string =>
  join(directory, `${label}${hexOf(digestOf(name))}`);

/** Creates a file by a link, which appears with the whole content and fails if the name is taken. */
async function createWhole(place: OverlayPlace, sealed: Buffer): Promise<boolean> {
  const { directory } = place;
  await makeDirectory(directory, 0o700);
  const path = pathOf(place);
  const aside = await nameAside(path);
  try {
    await writeNewFile(aside, sealed);
    await link(aside, path);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(aside, { force: true });
  }
  await syncDirectory(directory);
  return true;
}

/**
 * A line of JSON, `[[offset, size, stored], ...]`, then the stored bytes of all parts. Zeros at the end of a
 * part are not stored, because an embed area of 1 MiB is mostly zeros.
 */
export function packOverlay(parts: readonly OverlayPart[]): Buffer {
  const stored = parts.map(({ bytes }) => bytes.subarray(0, findEnd(bytes)));
  const head = parts.map(({ offset, bytes }, index) => [
    offset,
    bytes.length,
    stored[index]?.length,
  ]);
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...stored]);
}

const ZEROS = Buffer.alloc(4096);

/** Offset after the last byte that is not zero. */
function findEnd(bytes: Uint8Array): number {
  let end = bytes.length;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  while (end >= ZEROS.length && buffer.subarray(end - ZEROS.length, end).equals(ZEROS)) {
    end -= ZEROS.length;
  }
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return end;
}

/** Parses an overlay. Its bytes are trusted: `storeOverlay` encrypted them. */
export function parsePackedOverlay(packed: Buffer): PackedOverlay {
  const line = packed.indexOf('\n');
  const head = JSON.parse(packed.toString('utf8', 0, line)) as [number, number, number][];
  let at = line + 1;
  const parts = head.map(([offset, size, stored]) => {
    const bytes = packed.subarray(at, at + stored);
    at += stored;
    return { offset, size, bytes };
  });
  return { digest: digestOf(packed), packed, parts };
}
