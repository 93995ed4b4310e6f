import type { BootCatalog, BootEntry } from '../src/iso/boot/el-torito.ts';

type BootPlatform = BootEntry['platform'];

/** As of El Torito 2.0. */
const PLATFORMS = new Map<BootPlatform, number>([
  ['bios', 0],
  ['powerpc', 1],
  ['mac', 2],
  ['efi', 0xef],
]);
const ENTRY_SIZE = 32;

/** Validation and initial entry, then one section an entry, as every El Torito writer does. */
export function encodeBootCatalog(catalog: BootCatalog): Uint8Array {
  const [initial, ...others] = catalog.entries;
  if (!initial) throw new RangeError('boot catalog has no entry');
  const sections = others.flatMap((entry, index) => [
    encodeSection(entry.platform, index + 1 === others.length),
    encodeEntry(entry),
  ]);
  return Buffer.concat([
    encodeValidation(catalog.id, initial.platform),
    encodeEntry(initial),
    ...sections,
  ]);
}

function encodeEntry(entry: BootEntry): Uint8Array {
  const bytes = new Uint8Array(ENTRY_SIZE);
  const view = new DataView(bytes.buffer);
  bytes[0] = entry.bootable ? 0x88 : 0;
  bytes[1] = entry.mediaType;
  view.setUint16(2, entry.loadSegment, true);
  view.setUint16(6, entry.loadSectors, true);
  view.setUint32(8, entry.sector, true);
  return bytes;
}

function encodeSection(platform: BootPlatform, isLast: boolean): Uint8Array {
  const bytes = new Uint8Array(ENTRY_SIZE);
  bytes[0] = isLast ? 0x91 : 0x90;
  bytes[1] = numberOfPlatform(platform);
  bytes[2] = 1;
  return bytes;
}

function encodeValidation(id: string, platform: BootPlatform): Uint8Array {
  const bytes = new Uint8Array(ENTRY_SIZE);
  bytes[0] = 1;
  bytes[1] = numberOfPlatform(platform);
  bytes.set(Buffer.from(id.slice(0, 24), 'latin1'), 4);
  bytes.set([0x55, 0xaa], 30);
  const view = new DataView(bytes.buffer);
  let sum = 0;
  for (let at = 0; at < ENTRY_SIZE; at += 2) sum += view.getUint16(at, true);
  view.setUint16(28, (0x10000 - (sum & 0xffff)) & 0xffff, true);
  return bytes;
}

function numberOfPlatform(platform: BootPlatform): number {
  const number = PLATFORMS.get(platform);
  if (number === undefined) throw new RangeError(`boot platform "${platform}" has no number`);
  return number;
}
