import { IntegrityError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import {
  createClaims,
  ROOT_ENTRY,
  type DirectoryClaims,
  type DirectoryEntry,
} from '../directory/claims.ts';
import {
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
import {
  decodeSystemUse,
  isContinuation,
  readSystemUse,
  type Continuation,
  type SystemUseEntry,
} from '../directory/system-use.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { PrimaryVolumeDescriptor } from '../volume/descriptor.ts';
import { cacheChildren } from './cache-children.ts';
import { type IsoDirectory, type IsoNode, createNode, formatIdentifier } from './node.ts';
import { explainReading, whileReading, type StructureSource } from './source.ts';

/**
 * The directory tree of a volume. Directories are read on demand; `find` caches the last ones that it passed.
 */
export type IsoTree = {
  readonly root: IsoDirectory;
  readonly hasRockRidge: boolean;
  readonly children: (directory: IsoDirectory) => Promise<IsoNode[]>;
  readonly find: (path: string) => Promise<IsoNode | undefined>;
  readonly walk: () => AsyncGenerator<{ path: string; node: IsoNode }>;
};

/** @throws IntegrityError if the root directory cannot be read */
export async function openTree(
  image: StructureSource,
  volume: PrimaryVolumeDescriptor,
): Promise<IsoTree> {
  const own = await readOwnRecord(image, volume.rootRecord.extent);
  const entries = await readEntries(image, own.systemUse);
  const skip = decodeSharingProtocol(entries);
  const reader: Reader = { image, skip };
  const attributes = skip === undefined ? {} : decodeRockRidge(entries);
  const root = createNode([volume.rootRecord], { ...attributes, name: 'root' });
  if (root.kind !== 'directory') {
    throw new IntegrityError('iso.malformed-record', 'root directory record is not a directory');
  }
  const children = (directory: IsoDirectory): Promise<IsoNode[]> => readNodes(reader, directory);
  const cached = cacheChildren(children, KEPT_NODES);
  const tree = { root, children: cached, claims: createClaims({ isRepeatable: true }) };
  return {
    root: { ...root, name: '' },
    hasRockRidge: attributes.mode !== undefined,
    children,
    find: (path) => findNode(tree, path),
    walk: () => walkNodes(reader, root),
  };
}

/** About 20 MB. */
const KEPT_NODES = 20_000;

type Children = (directory: IsoDirectory) => Promise<IsoNode[]>;

/** `skip` is undefined on a volume without system use entries. */
type Reader = { readonly image: StructureSource; readonly skip: number | undefined };

async function readNodes(reader: Reader, directory: Place): Promise<IsoNode[]> {
  const all: IsoNode[] = [];
  for await (const nodes of streamNodes(reader, directory)) append(all, nodes);
  return all;
}

/** The nodes of a few sectors at a time: all nodes of a large directory take 50 MB. */
async function* streamNodes(reader: Reader, directory: Place): AsyncGenerator<Nodes> {
  let pending: DirectoryRecord[] = [];
  for await (const some of readRecords(reader.image, directory.extent)) {
    const nodes: IsoNode[] = [];
    for (const { record } of some) {
      if (isSelfOrParent(record) || (record.flags & FILE_FLAG.associated) !== 0) continue;
      pending.push(record);
      if ((record.flags & FILE_FLAG.multiExtent) !== 0) continue;
      append(nodes, decodeNode(reader, pending) ?? (await readNode(reader, pending)));
      pending = [];
    }
    yield nodes;
  }
  if (pending.length > 0) {
    throw new IntegrityError(
      'iso.malformed-record',
      `file "${formatIdentifier(pending[0]?.identifier ?? new Uint8Array(0))}" lacks its last extent`,
    );
  }
}

type Records = readonly DirectoryRecord[];

/** The nodes of a record: empty for a directory that is here only because its real place is too deep. */
type Nodes = readonly IsoNode[];

/**
 * Undefined if more must be read. Most records need no other read, and a wait costs more than decoding them.
 */
function decodeNode(reader: Reader, records: Records): Nodes | undefined {
  try {
    const attributes = records[0] && decodeAttributes(reader, records[0]);
    if (attributes?.childLink !== undefined) return undefined;
    return attributes && toNodes(records, attributes);
  } catch (error) {
    throw explainReading(describeRecord(records), error);
  }
}

function readNode(reader: Reader, records: Records): Promise<Nodes> {
  return whileReading(describeRecord(records), async () => {
    const [first] = records;
    if (!first) return [];
    const attributes = await readAttributes(reader, first);
    const { childLink, isRelocated, name = formatIdentifier(first.identifier) } = attributes;
    if (childLink === undefined || isRelocated) return toNodes(records, attributes);
    const real = await readOwnRecord(reader.image, childLink);
    const own = await readAttributes(reader, real);
    return [createNode([{ ...real, identifier: first.identifier }], { ...own, name })];
  });
}

function toNodes([first, ...others]: Records, attributes: Partial<PosixAttributes>): Nodes {
  if (!first || attributes.isRelocated) return [];
  requireOneIdentifier(first, others);
  return [createNode([first, ...others], attributes)];
}

const describeRecord = ([first]: Records): string =>
  `directory record of "${first ? formatIdentifier(first.identifier) : ''}"`;

function requireOneIdentifier(first: DirectoryRecord, others: readonly DirectoryRecord[]): void {
  const odd = others.find((record) => Buffer.compare(record.identifier, first.identifier) !== 0);
  if (!odd) return;
  const [name, other] = [formatIdentifier(first.identifier), formatIdentifier(odd.identifier)];
  throw new IntegrityError(
    'iso.malformed-record',
    `file "${name}" should have a further extent, but the next record is of "${other}"`,
  );
}

/** Undefined if its system use entries continue elsewhere. */
function decodeAttributes(
  { image, skip }: Reader,
  record: DirectoryRecord,
): Partial<PosixAttributes> | undefined {
  if (skip === undefined) return {};
  const entries = decodeSystemUse(record.systemUse.subarray(skip));
  if (entries.some(isContinuation)) return undefined;
  image.budget.take('system use entries', entries.length);
  return decodeRockRidge(entries);
}

async function readAttributes(
  reader: Reader,
  record: DirectoryRecord,
): Promise<Partial<PosixAttributes>> {
  if (reader.skip === undefined) return {};
  return decodeRockRidge(await readEntries(reader.image, record.systemUse.subarray(reader.skip)));
}

/** System use entries with those in continuation areas. */
export async function readEntries(
  { readContinued, budget }: StructureSource,
  area: Uint8Array,
): Promise<SystemUseEntry[]> {
  const entries = await readSystemUse(area, async ({ sector, offset, size }: Continuation) => {
    // Linux reads one sector, too (fs/isofs/rock.c, rock_continue).
    if (offset + size > SECTOR_SIZE) {
      throw new IntegrityError(
        'iso.malformed-entry',
        `continuation area at sector ${sector} ends at its byte ${offset + size}, past ${SECTOR_SIZE}`,
      );
    }
    return (await readContinued(sector)).subarray(offset, offset + size);
  });
  budget.take('system use entries', entries.length);
  return entries;
}

/** ECMA-119 6.8.2.2: the first record of a directory is its own. */
async function readOwnRecord(image: StructureSource, sector: number): Promise<DirectoryRecord> {
  return whileReading(`directory at sector ${sector}`, async () => {
    const extent = { offset: sector * SECTOR_SIZE, size: SECTOR_SIZE };
    const records: IteratorResult<readonly PlacedRecord[]> = await readRecords(
      image,
      extent,
    ).next();
    const record = records.done ? undefined : records.value[0]?.record;
    if (record && isSelfOrParent(record)) return record;
    throw new IntegrityError('iso.malformed-record', 'it does not begin with its own record');
  });
}

const isSelfOrParent = ({ identifier }: DirectoryRecord): boolean =>
  identifier.length === 1 && (identifier[0] === 0 || identifier[0] === 1);

type Tree = {
  readonly root: IsoDirectory;
  readonly children: Children;
  readonly claims: DirectoryClaims;
};

/** Finds a node component by component: by the exact name first, then by the ISO 9660 name in either case. */
async function findNode({ root, children, claims }: Tree, path: string) {
  const enter = (entry: DirectoryEntry, { extent }: IsoDirectory): number => {
    checkDirectorySize(extent);
    return claims.claim(entry, extent);
  };
  let node: IsoNode = root;
  let parent = enter(ROOT_ENTRY, node);
  for (const part of path.split('/').filter((text) => text !== '')) {
    if (node.kind !== 'directory') return undefined;
    const next = findNamed(await children(node), part);
    if (!next) return undefined;
    node = next;
    if (node.kind === 'directory') parent = enter({ parent, name: node.name }, node);
  }
  return node;
}

function findNamed(nodes: readonly IsoNode[], name: string): IsoNode | undefined {
  const isoName = name.toUpperCase();
  return (
    nodes.find((child) => child.name === name) ??
    nodes.find((child) => formatIdentifier(child.isoIdentifier).toUpperCase() === isoName)
  );
}

type Place = Pick<IsoDirectory, 'extent'>;

/** Least cost of a path in the budget. */
const LEAST_PATH = 200;

/**
 * Everything below the root, a directory before its contents. A directory that is reached a second time, or
 * overlaps another, is refused: the tree would be endless.
 */
async function* walkNodes(
  reader: Reader,
  root: IsoDirectory,
): AsyncGenerator<{ path: string; node: IsoNode }> {
  const claims = createClaims();
  const waiting: (Place & DirectoryEntry)[] = [{ ...ROOT_ENTRY, extent: root.extent }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { extent } = next;
    checkDirectorySize(extent);
    const parent = claims.claim(next, extent);
    const path = claims.pathOf(next);
    const prefix = path === '/' ? path : `${path}/`;
    const directories: typeof waiting = [];
    const nodes = streamNodes(reader, { extent });
    const step = () => whileReading(`directory ${path}`, () => nodes.next());
    for (let some = await step(); !some.done; some = await step()) {
      for (const node of some.value) {
        const entry = { path: prefix + node.name, node };
        reader.image.budget.take('characters of paths', Math.max(LEAST_PATH, entry.path.length));
        yield entry;
        const { name } = node;
        if (node.kind === 'directory') directories.push({ parent, name, extent: node.extent });
      }
    }
    for (const directory of directories.reverse()) waiting.push(directory);
  }
}
