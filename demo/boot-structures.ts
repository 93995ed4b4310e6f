import { open, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { encodeBootCatalog } from './boot-catalog.ts';
import { growHybrid, SYSTEM_AREA_SIZE, sizeOfImage } from '../src/iso/boot/hybrid.ts';
import { openIso } from '../src/iso/read/open.ts';
import { encodeTerminator } from '../src/iso/volume/descriptor.ts';
import { encodeBootProgram, fillBootInfo } from './boot-program.ts';

const SECTOR = 2048;
const BLOCK = 512;
const BLOCKS_OF_SECTOR = SECTOR / BLOCK;

/** Files of the tree that the boot structures name. */
export const BOOT_FILES = {
  catalog: '/isolinux/boot.cat',
  bios: '/isolinux/isolinux.bin',
  efi: '/images/efiboot.img',
} as const;

type Place = { readonly sector: number; readonly size: number };
type Places = Readonly<Record<keyof typeof BOOT_FILES, Place>> & { readonly fileSize: number };

/**
 * Makes an ISO with `BOOT_FILES` bootable as that of RHCOS is, in place: El Torito for BIOS and UEFI, and
 * what `isohybrid --uefi` adds, an MBR and both copies of a GPT with the EFI system partition. What is
 * started are stand-ins, which say that there is no kernel.
 */
export async function addBootStructures(path: string): Promise<void> {
  const places = await locate(path);
  const file = await open(path, 'r+');
  try {
    await writeElTorito(file, places);
    await writePartitionTables(file, places);
  } finally {
    await file.close();
  }
}

async function locate(path: string): Promise<Places> {
  const iso = await openIso(path);
  try {
    const find = async (name: string): Promise<Place> => {
      const node = await iso.find(name);
      const [extent] = node?.kind === 'file' ? node.extents : [];
      if (!extent) throw new Error(`${path} has no file ${name}`);
      return { sector: extent.offset / SECTOR, size: extent.size };
    };
    const { catalog, bios, efi } = BOOT_FILES;
    return {
      fileSize: iso.fileSize,
      catalog: await find(catalog),
      bios: await find(bios),
      efi: await find(efi),
    };
  } finally {
    await iso.close();
  }
}

/** El Torito 2.0: the boot record stands in sector 17, and the terminator moves behind it. */
async function writeElTorito(
  file: FileHandle,
  { catalog, bios, efi }: Omit<Places, 'fileSize'>,
): Promise<void> {
  const record = Buffer.alloc(SECTOR);
  record.write('CD001\u0001EL TORITO SPECIFICATION', 1, 'latin1');
  record.writeUInt32LE(catalog.sector, 71);
  await write(file, record, 17 * SECTOR);
  await write(file, encodeTerminator(), 18 * SECTOR);
  const entry = { bootable: true, mediaType: 0, loadSegment: 0 };
  const entries = encodeBootCatalog({
    id: '',
    entries: [
      { ...entry, platform: 'bios', loadSectors: BLOCKS_OF_SECTOR, sector: bios.sector },
      { ...entry, platform: 'efi', loadSectors: efi.size / BLOCK, sector: efi.sector },
    ],
  });
  await write(file, entries, catalog.sector * SECTOR);
  const program = Buffer.alloc(bios.size);
  await file.read(program, 0, bios.size, bios.sector * SECTOR);
  await write(file, fillBootInfo(program, bios.sector), bios.sector * SECTOR);
}

async function writePartitionTables(file: FileHandle, places: Places): Promise<void> {
  const area = encodeSystemArea(places);
  const size = sizeOfImage(area, places.fileSize);
  const { systemArea, tail } = growHybrid(area, places.fileSize, size);
  await write(file, systemArea, 0);
  await file.truncate(size);
  if (tail) await write(file, tail.bytes, tail.offset);
}

const write = (file: FileHandle, bytes: Uint8Array, offset: number): Promise<unknown> =>
  file.write(bytes, 0, bytes.length, offset);

/** MBR and primary GPT for the image as it is; they grow with it. */
function encodeSystemArea({ efi, fileSize }: Places): Uint8Array {
  const area = Buffer.alloc(SYSTEM_AREA_SIZE);
  const blocks = Math.floor(fileSize / BLOCK);
  const esp = { first: efi.sector * BLOCKS_OF_SECTOR, count: efi.size / BLOCK };
  encodeBootProgram('sealift demo: this disk has no kernel').copy(area);
  area.set(encodeMbrEntry({ active: 0x80, type: 0, first: 0, count: blocks }), 446);
  area.set(encodeMbrEntry({ active: 0, type: 0xef, ...esp }), 462);
  area.writeUInt16LE(0xaa55, 510);
  const partitions = [
    encodeGptEntry({ id: 1, name: 'ISOHybrid ISO', first: 0, last: blocks - 1 }),
    encodeGptEntry({
      id: 2,
      name: 'ISOHybrid',
      type: ESP,
      first: esp.first,
      last: esp.first + esp.count - 1,
    }),
  ];
  area.set(Buffer.concat(partitions), ENTRIES * BLOCK);
  encodeGptHeader(area, blocks).copy(area, BLOCK);
  return area;
}

type MbrEntry = {
  readonly active: number;
  readonly type: number;
  readonly first: number;
  readonly count: number;
};

/** Addresses by cylinder are those of no place: firmware of today reads the blocks. */
function encodeMbrEntry({ active, type, first, count }: MbrEntry): Buffer {
  const entry = Buffer.from([active, 0xfe, 0xff, 0xff, type, 0xfe, 0xff, 0xff]);
  const blocks = Buffer.alloc(8);
  blocks.writeUInt32LE(first);
  blocks.writeUInt32LE(count, 4);
  return Buffer.concat([entry, blocks]);
}

/** UEFI 2.10, 5.3: the first block of the entries, their number, and their size. */
const [ENTRIES, ENTRY_COUNT, ENTRY_SIZE] = [2, 128, 128];
const BASIC_DATA = 'a2a0d0ebe5b9334487c068b6b72699c7';
const ESP = '28732ac11ff8d211ba4b00a0c93ec93b';

type GptEntry = {
  /** Stands for a GUID: the demo is the same at every run. */
  readonly id: number;
  readonly name: string;
  /** As bytes. */
  readonly type?: string;
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
};

function encodeGptEntry({ id, name, type = BASIC_DATA, first, last }: GptEntry): Buffer {
  const entry = Buffer.alloc(ENTRY_SIZE);
  entry.write(type, 0, 'hex');
  entry.fill(id, 16, 32);
  entry.writeBigUInt64LE(BigInt(first), 32);
  entry.writeBigUInt64LE(BigInt(last), 40);
  entry.write(name, 56, 'utf16le');
  return entry;
}

function encodeGptHeader(area: Buffer, blocks: number): Buffer {
  const entriesEnd = ENTRIES + (ENTRY_COUNT * ENTRY_SIZE) / BLOCK;
  const header = Buffer.alloc(92);
  header.write('EFI PART', 'latin1');
  header.writeUInt32LE(0x10000, 8);
  header.writeUInt32LE(header.length, 12);
  header.writeBigUInt64LE(1n, 24);
  header.writeBigUInt64LE(BigInt(blocks - 1), 32);
  header.writeBigUInt64LE(BigInt(entriesEnd), 40);
  header.writeBigUInt64LE(BigInt(blocks - 1), 48);
  header.fill(0xd5, 56, 72);
  header.writeBigUInt64LE(BigInt(ENTRIES), 72);
  header.writeUInt32LE(ENTRY_COUNT, 80);
  header.writeUInt32LE(ENTRY_SIZE, 84);
  header.writeUInt32LE(crc32(area.subarray(ENTRIES * BLOCK, entriesEnd * BLOCK)), 88);
  header.writeUInt32LE(crc32(header), 16);
  return header;
}
