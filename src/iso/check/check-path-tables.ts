import { IntegrityError } from '../../base/errors.ts';
import type { FoundTree } from './check-directories.ts';
import type { FoundDirectories, FoundDirectory } from './found-directories.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { IsoImage } from '../open-iso.ts';
import { decodePathTable, type ByteOrder, type PathTableRecord } from '../volume/path-table.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { explainReading } from '../reading-context.ts';
import { damage, damageOf, type StructureProblem } from './structure-problem.ts';
import type { PrimaryVolumeDescriptor } from '../volume/volume-descriptor.ts';

/** ECMA-119 9.4: the largest record that a directory has in a table. */
const MAX_RECORD_SIZE = 264;
/** Parent numbers have 16 bits; a directory behind this one cannot be named as a parent. */
const MAX_PARENT = 65_535;

type Table = ByteRange & { readonly name: string; readonly byteOrder: ByteOrder };

/**
 * Checks the path tables of one tree against its directories (ECMA-119 9.4), each copy on its own, and
 * adds their extents to `found`.
 */
export async function* checkPathTables(
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

/** Of the records so far, by their sector, from 1. A parent stands before its directories. */
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
      yield `record ${number} names sector ${record.extent}, where no directory is`;
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
