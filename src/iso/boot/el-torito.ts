import { IntegrityError } from '../../base/errors.ts';
import { requireBytes, viewOf } from '../extent.ts';

/** El Torito 2.0, platform ids; EFI is UEFI 2.x 13.3.2.1. */
type BootPlatform = 'bios' | 'powerpc' | 'mac' | 'efi' | 'unknown';

export type BootEntry = {
  readonly platform: BootPlatform;
  readonly bootable: boolean;
  /** 0 no emulation, 1 to 3 floppies, 4 hard disk. */
  readonly mediaType: number;
  readonly loadSegment: number;
  /** Virtual sectors of 512 bytes that the firmware loads. */
  readonly loadSectors: number;
  /** Sector of the image. */
  readonly sector: number;
};

export type BootCatalog = {
  /** Manufacturer, from the validation entry. */
  readonly id: string;
  readonly entries: readonly BootEntry[];
};

const ENTRY_SIZE = 32;
const PLATFORMS: Readonly<Record<number, BootPlatform>> = {
  0: 'bios',
  1: 'powerpc',
  2: 'mac',
  0xef: 'efi',
};
const SECTION = 0x90;
const LAST_SECTION = 0x91;
const BOOTABLE = 0x88;

export function decodeBootCatalog(bytes: Uint8Array): BootCatalog {
  requireBytes(bytes, { at: 0, size: 2 * ENTRY_SIZE });
  const validation = bytes.subarray(0, ENTRY_SIZE);
  checkValidation(validation);
  const initial = decodeEntry(bytes.subarray(ENTRY_SIZE, 2 * ENTRY_SIZE), validation[1] ?? 0);
  return {
    id: Buffer.from(validation.subarray(4, 28))
      .toString('latin1')
      .replace(/[ \0]+$/, ''),
    entries: [initial, ...decodeSections(bytes)],
  };
}

function decodeSections(bytes: Uint8Array): BootEntry[] {
  const entries: BootEntry[] = [];
  let at = 2 * ENTRY_SIZE;
  for (let isLast = false; !isLast && at + ENTRY_SIZE <= bytes.length;) {
    const kind = bytes[at];
    if (kind !== SECTION && kind !== LAST_SECTION) break;
    const platform = bytes[at + 1] ?? 0;
    const count = viewOf(bytes, { at: at + 2, size: 2 }).getUint16(0, true);
    at += ENTRY_SIZE;
    for (let index = 0; index < count; index += 1) {
      requireBytes(bytes, { at, size: ENTRY_SIZE });
      entries.push(decodeEntry(bytes.subarray(at, at + ENTRY_SIZE), platform));
      at = skipExtensions(bytes, at);
    }
    isLast = kind === LAST_SECTION;
  }
  return entries;
}

/** Section entry extensions (type 0x44) carry vendor data of the entry before them. */
function skipExtensions(bytes: Uint8Array, entryAt: number): number {
  let at = entryAt + ENTRY_SIZE;
  while (bytes[at] === 0x44 && at + ENTRY_SIZE <= bytes.length) at += ENTRY_SIZE;
  return at;
}

function decodeEntry(entry: Uint8Array, platform: number): BootEntry {
  const view = viewOf(entry, { at: 0, size: ENTRY_SIZE });
  return {
    platform: PLATFORMS[platform] ?? 'unknown',
    bootable: entry[0] === BOOTABLE,
    mediaType: (entry[1] ?? 0) & 15,
    loadSegment: view.getUint16(2, true),
    loadSectors: view.getUint16(6, true),
    sector: view.getUint32(8, true),
  };
}

function checkValidation(validation: Uint8Array): void {
  const key = Buffer.from(validation.subarray(30, 32)).toString('hex');
  const sum = sumOfWords(validation);
  if (validation[0] === 1 && key === '55aa' && sum === 0) return;
  throw new IntegrityError(
    'iso.boot-catalog',
    `validation entry of the boot catalog has header ${validation[0] ?? 0}, key ${key} and sum ${sum}, not 1, 55aa and 0`,
  );
}

/** The words of a correct validation entry add up to 0 modulo 65536. */
function sumOfWords(entry: Uint8Array): number {
  const view = viewOf(entry, { at: 0, size: ENTRY_SIZE });
  let sum = 0;
  for (let at = 0; at < ENTRY_SIZE; at += 2) sum += view.getUint16(at, true);
  return sum & 0xffff;
}
