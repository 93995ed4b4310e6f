import { isError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { ROOT_ENTRY } from '../directory/claims.ts';
import {
  compareIdentifiers,
  checkDirectorySize,
  readRecords,
  type PlacedRecord,
  FILE_FLAG,
  type DirectoryRecord,
} from '../directory/record.ts';
import {
  decodeRockRidge,
  decodeSharingProtocol,
  type PosixAttributes,
} from '../directory/rock-ridge.ts';
import { decodeSystemUse, isContinuation } from '../directory/system-use.ts';
import { SECTOR_SIZE } from '../extent.ts';
import { formatIdentifier, isFileName, locateExtent } from '../read/node.ts';
import type { IsoImage } from '../read/open.ts';
import { readEntries } from '../read/tree.ts';
import type { PrimaryVolumeDescriptor } from '../volume/descriptor.ts';
import {
  findUnequalInEntries,
  findUnequalInRecord,
  damage,
  damageOf,
  oddity,
  type StructureProblem,
  type Where,
  type FoundDirectories,
  type FoundDirectory,
  type UsedExtents,
} from './found.ts';

/** Findings of the walk through one tree, besides problems. */
export type FoundTree = {
  readonly directories: FoundDirectories;
  readonly extents: UsedExtents;
};

/** A directory whose records are not checked yet. */
type WaitingDirectory = FoundDirectory & { readonly extent: ByteRange };

type OpenDirectory = WaitingDirectory & { readonly path: string; readonly number: number };

export type TreeToCheck = {
  readonly volume: PrimaryVolumeDescriptor;
  readonly isJoliet: boolean;
};

type Walk = TreeToCheck & {
  readonly iso: IsoImage;
  readonly found: FoundTree;
  readonly waiting: WaitingDirectory[];
  /** Bytes before the system use entries of each record; undefined without such entries. */
  skip: number | undefined;
};

/**
 * Checks every directory record of one tree (ECMA-119 9.1, 9.3; RRIP 4.1) and adds what it finds to `found`.
 */
export async function* checkDirectories(
  iso: IsoImage,
  tree: TreeToCheck,
  found: FoundTree,
): AsyncGenerator<StructureProblem> {
  const { rootRecord } = tree.volume;
  const root: WaitingDirectory = {
    ...ROOT_ENTRY,
    identifier: toLatin1(rootRecord.identifier),
    extent: locateExtent(rootRecord),
    sector: rootRecord.extent,
    parentSector: rootRecord.extent,
  };
  const walk: Walk = { ...tree, iso, found, waiting: [root], skip: undefined };
  for (let next = walk.waiting.pop(); next; next = walk.waiting.pop()) {
    const { extent } = next;
    const path = found.directories.pathOf(next);
    try {
      checkDirectorySize(extent);
      const number = found.directories.add(next, extent);
      found.extents.add(extent, next);
      yield* checkDirectory(walk, { ...next, path, number });
    } catch (error) {
      yield damageOf(error, { path, range: extent });
    }
  }
}

/** Copies the bytes: a view would hold the whole block of the image in memory. */
const toLatin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

async function* checkDirectory(
  walk: Walk,
  directory: OpenDirectory,
): AsyncGenerator<StructureProblem> {
  let index = 0;
  let last: DirectoryRecord | undefined;
  let isOrdered = true;
  for await (const some of readRecords(walk.iso.structure, directory.extent)) {
    for (const placed of some) {
      if (index < 2) {
        if (index === 0 && directory.path === '/') walk.skip = findSkip(walk, placed);
        yield* checkSelfOrParent(directory, { placed, index });
      } else {
        const read = await readChecked(walk, placed);
        yield* checkEntry(walk, directory, { placed, ...read });
        isOrdered &&= walk.isJoliet || isInOrder(last, placed.record);
        last = placed.record;
      }
      index += 1;
    }
  }
  if (index < 2)
    yield damage(`directory has ${index} records, not at least 2`, directoryAt(directory));
  if (!isOrdered)
    yield oddity('records are not in the order of ECMA-119 9.3', directoryAt(directory));
}

const isInOrder = (last: DirectoryRecord | undefined, next: DirectoryRecord): boolean =>
  !last || compareIdentifiers(last.identifier, next.identifier) <= 0;

const directoryAt = ({ path, extent }: OpenDirectory): { path: string; range: ByteRange } => ({
  path,
  range: extent,
});

/** Bytes to skip, from SP in the root's own record; a Joliet tree has no system use entries. */
const findSkip = ({ isJoliet }: TreeToCheck, { record }: PlacedRecord): number | undefined =>
  isJoliet ? undefined : decodeSharingProtocol(decodeSystemUse(record.systemUse));

function* checkSelfOrParent(
  directory: OpenDirectory,
  { placed, index }: { placed: PlacedRecord; index: number },
): Generator<StructureProblem> {
  const { record } = placed;
  const where = { path: directory.path, range: rangeOf(placed) };
  yield* checkByteOrders(placed, directory.path);
  const misnamed = findMisnamed(record, index, where);
  if (misnamed) yield misnamed;
  if (misnamed && isError(misnamed)) return;
  const expected = index === 0 ? directory.sector : directory.parentSector;
  if (record.extent !== expected) {
    // genisoimage -D: below the eighth level the parent's record is the directory again.
    const report = index === 0 ? damage : oddity;
    yield report(`${NAMES[index] ?? ''} is at sector ${record.extent}, not ${expected}`, where);
  }
  if (index === 0 && record.size !== directory.extent.size) {
    yield damage(
      `its own record has ${record.size} bytes, but its parent's has ${directory.extent.size}`,
      where,
    );
  }
}

const NAMES = ['the directory itself', 'its parent'];

function findMisnamed(
  { identifier }: DirectoryRecord,
  index: number,
  where: Where,
): StructureProblem | undefined {
  const name = identifier.length === 1 ? identifier[0] : undefined;
  if (name === index) return undefined;
  // genisoimage on big-endian machines, where the live ISOs of s390x are made.
  return index === 1 && name === 0
    ? oddity('the record of its parent has the name of the directory itself', where)
    : damage(`record ${index + 1} is not the record of ${NAMES[index] ?? ''}`, where);
}

type CheckedRecord = {
  readonly attributes: Partial<PosixAttributes>;
  readonly problems: readonly StructureProblem[];
};

function* checkEntry(
  walk: Walk,
  directory: OpenDirectory,
  { placed, attributes, problems }: CheckedRecord & { readonly placed: PlacedRecord },
): Generator<StructureProblem> {
  const { record } = placed;
  const name = attributes.name ?? nameOf(walk, record.identifier);
  const path = `${directory.path === '/' ? '' : directory.path}/${name}`;
  yield* checkByteOrders(placed, path);
  yield* problems.map((problem) => ({ ...problem, path }));
  if (!isFileName(name)) {
    const problem = `${JSON.stringify(name.slice(0, 255))} is not a valid file name`;
    yield damage(problem, { path, range: rangeOf(placed) });
  }
  // The record of a relocated directory's old place has no data of its own.
  if (attributes.childLink !== undefined) return;
  const extent = locateExtent(record);
  yield* checkExtent(walk, record, { path, range: extent });
  const entry = { name, parent: directory.number };
  if ((record.flags & FILE_FLAG.directory) === 0) {
    walk.found.extents.add(extent, entry);
    return;
  }
  const { identifier, extent: sector } = record;
  const parentSector = directory.sector;
  walk.waiting.push({ ...entry, identifier: toLatin1(identifier), extent, sector, parentSector });
}

function* checkExtent(
  walk: Walk,
  record: DirectoryRecord,
  { path, range }: Required<Where>,
): Generator<StructureProblem> {
  const volumeSize = walk.volume.volumeSpaceSize * SECTOR_SIZE;
  if (range.size > 0 && range.offset + range.size > volumeSize) {
    const end = range.offset + range.size;
    yield damage(`extent ends at byte ${end}, but the volume at ${volumeSize}`, { path, range });
  }
  const isLast = (record.flags & FILE_FLAG.multiExtent) === 0;
  if (!isLast && range.size % SECTOR_SIZE !== 0) {
    yield damage(
      `extent of ${range.size} bytes is followed by another, but does not fill its sectors`,
      { path, range },
    );
  }
}

function* checkByteOrders(placed: PlacedRecord, path: string): Generator<StructureProblem> {
  for (const at of findUnequalInRecord(placed.raw)) {
    yield damage(`both byte orders of the number at byte ${at} of the directory record differ`, {
      path,
      range: rangeOf(placed),
    });
  }
}

/** The Rock Ridge attributes of a record; faults in them do not hide the file. */
async function readChecked(walk: Walk, placed: PlacedRecord): Promise<CheckedRecord> {
  if (walk.skip === undefined) return { attributes: {}, problems: [] };
  const range = rangeOf(placed);
  try {
    const area = placed.record.systemUse.subarray(walk.skip);
    const own = decodeSystemUse(area);
    const continuations = own.filter(isContinuation);
    const all = continuations.length === 0 ? own : await readEntries(walk.iso.structure, area);
    const problems = findUnequalInEntries([...all, ...continuations]).map((signature) =>
      damage(`both byte orders of a number in system use entry ${signature} differ`, { range }),
    );
    return { attributes: decodeRockRidge(all), problems };
  } catch (error) {
    return { attributes: {}, problems: [damageOf(error, { range })] };
  }
}

const rangeOf = ({ offset, raw }: PlacedRecord): ByteRange => ({ offset, size: raw.length });

const nameOf = ({ isJoliet }: TreeToCheck, identifier: Uint8Array): string =>
  isJoliet
    ? new TextDecoder('utf-16be').decode(identifier).replace(/;\d*$/, '')
    : formatIdentifier(identifier);
