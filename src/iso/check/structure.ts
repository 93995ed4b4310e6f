import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { BLOCK_SIZE, type Gpt } from '../boot/gpt.ts';
import {
  locateBackupGpt,
  readBackupGpt,
  readPartitionTables,
  SYSTEM_AREA_SIZE,
  type MbrPartition,
} from '../boot/hybrid.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { IsoImage } from '../read/open.ts';
import { explainReading } from '../read/source.ts';
import type { PrimaryVolumeDescriptor } from '../volume/descriptor.ts';
import { decodePathTable, type ByteOrder, type PathTableRecord } from '../volume/path-table.ts';
import { type FoundTree, checkDirectories } from './directories.ts';
import {
  damage,
  oddity,
  type StructureProblem,
  type FoundDirectories,
  type FoundDirectory,
  damageOf,
  findUnequalInDescriptor,
  createFoundDirectories,
  createUsedExtents,
} from './found.ts';

/**
 * Finds all problems in the structure of an image, one at a time: volume descriptors, directories of the
 * primary and the Joliet tree, path tables, overlaps, El Torito, MBR and GPT. Reads the structure only, never a
 * file.
 */
export async function* checkStructure(iso: IsoImage): AsyncGenerator<StructureProblem> {
  yield* checkDescriptors(iso);
  const extents = createUsedExtents();
  const descriptors = (16 + iso.descriptors.length) * SECTOR_SIZE;
  extents.add({ offset: 0, size: descriptors }, 'volume descriptors');
  const trees = [
    { volume: iso.volume, isJoliet: false },
    ...(iso.joliet ? [{ volume: iso.joliet, isJoliet: true }] : []),
  ];
  for (const tree of trees) {
    const found: FoundTree = { directories: createFoundDirectories(), extents };
    extents.beginTree(found.directories);
    yield* checkDirectories(iso, tree, found);
    yield* checkPathTables(iso, tree.volume, found);
  }
  yield* extents.overlaps();
  yield* checkBoot(iso);
}

function* checkDescriptors(iso: IsoImage): Generator<StructureProblem> {
  for (const [index, descriptor] of iso.descriptors.entries()) {
    if (descriptor.kind !== 'primary' && descriptor.kind !== 'supplementary') continue;
    for (const at of findUnequalInDescriptor(descriptor.raw)) {
      yield damage(
        `both byte orders of the number at byte ${at} of volume descriptor ${index + 1} differ`,
        { range: { offset: (16 + index) * SECTOR_SIZE + at, size: 4 } },
      );
    }
    const { volumeSpaceSize } = descriptor.volume;
    if (volumeSpaceSize * SECTOR_SIZE > iso.fileSize) {
      yield damage(
        `volume descriptor ${index + 1} states ${volumeSpaceSize} sectors, but the image has ${iso.fileSize / SECTOR_SIZE}`,
      );
    }
  }
}

type Table = ByteRange & { readonly name: string; readonly byteOrder: ByteOrder };

/** Checks each copy of the path tables of one tree (ECMA-119 9.4), and adds their extents to `found`. */
async function* checkPathTables(
  iso: IsoImage,
  volume: PrimaryVolumeDescriptor,
  found: FoundTree,
): AsyncGenerator<StructureProblem> {
  for (const table of tablesOf(volume)) {
    const range = { offset: table.offset, size: table.size };
    found.extents.add(range, table.name);
    try {
      const records = await readTable(iso, table, found.directories.count());
      for (const problem of compareTable(records, found.directories)) {
        yield damage(`${table.name}: ${problem}`, { range });
      }
    } catch (error) {
      yield damageOf(explainReading(table.name, error), { range });
    }
  }
}

function tablesOf(volume: PrimaryVolumeDescriptor): Table[] {
  const size = volume.pathTableSize;
  const tables = [
    { name: 'type L path table', sector: volume.lPathTable, byteOrder: 'little' },
    { name: 'type M path table', sector: volume.mPathTable, byteOrder: 'big' },
    { name: 'optional type L path table', sector: volume.optionalLPathTable, byteOrder: 'little' },
    { name: 'optional type M path table', sector: volume.optionalMPathTable, byteOrder: 'big' },
  ] as const;
  return tables
    .filter(({ name, sector }) => sector !== 0 || !name.startsWith('optional'))
    .map(({ name, sector, byteOrder }) => ({
      name,
      offset: sector * SECTOR_SIZE,
      size,
      byteOrder,
    }));
}

/** ECMA-119 9.4: the largest record that a directory has in a table. */
const MAX_RECORD_SIZE = 264;

async function readTable(
  iso: IsoImage,
  table: Table,
  directories: number,
): Promise<Iterable<PathTableRecord>> {
  const limit = directories * MAX_RECORD_SIZE;
  if (table.size > limit) {
    throw new IntegrityError(
      'iso.malformed-path-table',
      `it has ${table.size} bytes, more than ${directories} directories can take: ${limit}`,
    );
  }
  return decodePathTable(await iso.readBytes(table.offset, table.size), table.byteOrder);
}

/** Numbers of the records so far, by sector, from 1. A parent precedes its directories. */
type Numbers = Map<number, number>;

function* compareTable(
  records: Iterable<PathTableRecord>,
  directories: FoundDirectories,
): Generator<string> {
  const numbers: Numbers = new Map();
  let count = 0;
  for (const record of records) {
    const number = ++count;
    const directory = directories.find(record.extent);
    if (!directory) {
      yield `record ${number} names sector ${record.extent}, which has no directory`;
    } else if (numbers.has(record.extent)) {
      yield `record ${number} names directory ${directories.pathOf(directory)} again`;
    } else {
      numbers.set(record.extent, number);
      const what = `record ${number} of directory`;
      for (const problem of compareRecord(record, directory, numbers)) {
        yield `${what} ${directories.pathOf(directory)} ${problem}`;
      }
    }
  }
  if (count !== directories.count()) {
    yield `it has ${count} records for ${directories.count()} directories`;
  }
}

/** Parent numbers have 16 bits; a directory after this one cannot be named as a parent. */
const MAX_PARENT = 65_535;

function* compareRecord(
  { identifier, parent }: PathTableRecord,
  directory: FoundDirectory,
  numbers: Numbers,
): Generator<string> {
  const found = Buffer.from(identifier).toString('latin1');
  if (found !== directory.identifier) {
    yield `has identifier ${JSON.stringify(found)}, not ${JSON.stringify(directory.identifier)}`;
  }
  const expected = numbers.get(directory.parentSector);
  if (parent === expected || (expected ?? 0) > MAX_PARENT) return;
  yield `has parent ${parent}, not ${expected ?? 'one before it'}`;
}

/** Checks that everything firmware boots from is inside the image: El Torito, MBR, both copies of the GPT. */
async function* checkBoot(iso: IsoImage): AsyncGenerator<StructureProblem> {
  yield* checkBootEntries(iso);
  const { mbr, gpt } = readPartitionTables(await iso.readBytes(0, SYSTEM_AREA_SIZE));
  for (const partition of mbr ?? []) yield* checkMbrPartition(partition, iso.fileSize);
  if (gpt) yield* checkGpt(iso, gpt);
}

function* checkBootEntries(iso: IsoImage): Generator<StructureProblem> {
  const { volumeSpaceSize } = iso.volume;
  for (const [index, { sector, loadSectors, platform }] of iso.bootEntries.entries()) {
    const size = loadSectors * BLOCK_SIZE;
    const end = sector + Math.max(1, Math.ceil(size / SECTOR_SIZE));
    if (sector > 0 && end <= volumeSpaceSize) continue;
    yield damage(
      `boot entry ${index + 1} (${platform}) ends at sector ${end}, but the volume at ${volumeSpaceSize}`,
      { range: { offset: sector * SECTOR_SIZE, size } },
    );
  }
}

/** Firmware that finds a protective MBR reads the GPT; the partition's size may be "to the end of the disk". */
const PROTECTIVE = 0xee;

function* checkMbrPartition(
  partition: MbrPartition,
  fileSize: number,
): Generator<StructureProblem> {
  const end = (partition.start + partition.blocks) * BLOCK_SIZE;
  if (end <= fileSize || partition.type === PROTECTIVE) return;
  yield damage(
    `MBR partition ${partition.number} ends at byte ${end}, but the image has ${fileSize} bytes`,
    { range: { offset: 446 + (partition.number - 1) * 16, size: 16 } },
  );
}

async function* checkGpt(iso: IsoImage, gpt: Gpt): AsyncGenerator<StructureProblem> {
  const range = { offset: gpt.block * BLOCK_SIZE, size: BLOCK_SIZE };
  if (gpt.block !== 1)
    yield damage(`GPT header at block 1 states that it is at ${gpt.block}`, { range });
  yield* checkCrcs('primary', gpt);
  for (const { number, firstBlock, lastBlock } of gpt.partitions) {
    const end = (lastBlock + 1) * BLOCK_SIZE;
    if (firstBlock <= lastBlock && end <= iso.fileSize) continue;
    yield damage(
      `GPT partition ${number} is bytes ${firstBlock * BLOCK_SIZE} to ${end} of an image of ${iso.fileSize}`,
      { range },
    );
  }
  yield* checkBackup(iso, gpt);
}

async function* checkBackup(iso: IsoImage, gpt: Gpt): AsyncGenerator<StructureProblem> {
  const located = locateBackupGpt(gpt, iso.fileSize);
  if (!located) {
    yield damage(`backup GPT at block ${gpt.otherBlock} is outside of the image`);
    return;
  }
  const backup = readBackupGpt(gpt, await iso.readBytes(located.offset, located.size));
  if (!backup) {
    yield damage(`there is no backup GPT at block ${gpt.otherBlock}`, { range: located });
    return;
  }
  yield* checkCrcs('backup', backup);
  if (JSON.stringify(backup.partitions) !== JSON.stringify(gpt.partitions)) {
    yield damage('primary and backup GPT list different partitions', { range: located });
  }
  if (located.offset + located.size !== iso.fileSize) {
    yield oddity(`backup GPT ends at ${located.offset + located.size}, not at the image's end`, {
      range: located,
    });
  }
}

function* checkCrcs(name: string, gpt: Gpt): Generator<StructureProblem> {
  const header = { offset: gpt.block * BLOCK_SIZE, size: BLOCK_SIZE };
  const entries = {
    offset: gpt.entriesBlock * BLOCK_SIZE,
    size: gpt.entryCount * gpt.entrySize,
  };
  if (!gpt.headerCrcOk) {
    yield damage(`CRC of the ${name} GPT header does not match its bytes`, { range: header });
  }
  if (!gpt.entriesCrcOk) {
    yield damage(`CRC of the ${name} GPT entries does not match their bytes`, { range: entries });
  }
}
