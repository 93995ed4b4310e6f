import { IntegrityError } from '../base/errors.ts';
import { cacheChildren } from './directory/directory-cache.ts';
import { readRecords, type PlacedRecord } from './directory/directory-extent.ts';
import { FILE_FLAG, type DirectoryRecord } from './directory/directory-record.ts';
import { SECTOR_SIZE } from './extent.ts';
import { createNode, formatIdentifier, type IsoDirectory, type IsoNode } from './iso-node.ts';
import type { RandomAccess } from './random-access.ts';
import { explainReading, whileReading } from './reading-context.ts';
import {
  decodeRockRidge,
  decodeSharingProtocol,
  type PosixAttributes,
} from './directory/rock-ridge.ts';
import { readSystemUse, type Continuation, type SystemUseEntry } from './directory/system-use.ts';
import type { PrimaryVolumeDescriptor } from './volume/volume-descriptor.ts';

/**
 * The directory tree of a volume. Directories are read when they are asked for; `find` keeps those it
 * came through lately.
 */
export type IsoTree = {
  readonly root: IsoDirectory;
  readonly hasRockRidge: boolean;
  readonly children: (directory: IsoDirectory) => Promise<IsoNode[]>;
  readonly find: (path: string) => Promise<IsoNode | undefined>;
  readonly walk: () => AsyncGenerator<{ path: string; node: IsoNode }>;
};

/**
 * @throws IntegrityError when the root directory cannot be read
 */
export async function openTree(
  image: RandomAccess,
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
  return {
    root: { ...root, name: '' },
    hasRockRidge: attributes.mode !== undefined,
    children,
    find: (path) => findNode(cached, root, path),
    walk: () => walkNodes(children, root),
  };
}

/** About 20 MB. */
const KEPT_NODES = 20_000;

type Children = (directory: IsoDirectory) => Promise<IsoNode[]>;

/** `skip` is undefined on a volume without system use entries. */
type Reader = { readonly image: RandomAccess; readonly skip: number | undefined };

async function readNodes(reader: Reader, directory: IsoDirectory): Promise<IsoNode[]> {
  const nodes: IsoNode[] = [];
  let pending: DirectoryRecord[] = [];
  for await (const { record } of readRecords(reader.image, directory.extent)) {
    if (isSelfOrParent(record) || (record.flags & FILE_FLAG.associated) !== 0) continue;
    pending.push(record);
    if ((record.flags & FILE_FLAG.multiExtent) !== 0) continue;
    const node = await readNode(reader, pending);
    pending = [];
    if (node) nodes.push(node);
  }
  if (pending.length > 0) {
    throw new IntegrityError(
      'iso.malformed-record',
      `file "${formatIdentifier(pending[0]?.identifier ?? new Uint8Array(0))}" lacks its last extent`,
    );
  }
  return nodes;
}

/** Undefined for a directory that stands here only because its own place is too deep. */
async function readNode(
  reader: Reader,
  records: readonly DirectoryRecord[],
): Promise<IsoNode | undefined> {
  const [first, ...others] = records;
  if (!first) return undefined;
  requireOneIdentifier(first, others);
  const what = `directory record of "${formatIdentifier(first.identifier)}"`;
  return whileReading(what, async () => {
    const attributes = await readAttributes(reader, first);
    if (attributes.isRelocated) return undefined;
    if (attributes.childLink === undefined) return createNode([first, ...others], attributes);
    const real = await readOwnRecord(reader.image, attributes.childLink);
    const own = await readAttributes(reader, real);
    const name = attributes.name ?? formatIdentifier(first.identifier);
    return createNode([{ ...real, identifier: first.identifier }], { ...own, name });
  });
}

function requireOneIdentifier(first: DirectoryRecord, others: readonly DirectoryRecord[]): void {
  const odd = others.find((record) => Buffer.compare(record.identifier, first.identifier) !== 0);
  if (!odd) return;
  const [name, other] = [formatIdentifier(first.identifier), formatIdentifier(odd.identifier)];
  throw new IntegrityError(
    'iso.malformed-record',
    `file "${name}" should have a further extent, but the next record is of "${other}"`,
  );
}

async function readAttributes(
  reader: Reader,
  record: DirectoryRecord,
): Promise<Partial<PosixAttributes>> {
  if (reader.skip === undefined) return {};
  return decodeRockRidge(await readEntries(reader.image, record.systemUse.subarray(reader.skip)));
}

/** System use entries with those in continuation areas. */
export function readEntries(
  image: Pick<RandomAccess, 'read'>,
  area: Uint8Array,
): Promise<SystemUseEntry[]> {
  return readSystemUse(area, ({ sector, offset, size }: Continuation) => {
    if (size > 16 * SECTOR_SIZE) {
      throw new IntegrityError(
        'iso.malformed-entry',
        `continuation area at sector ${sector} has ${size} bytes, more than ${16 * SECTOR_SIZE}`,
      );
    }
    return image.read(sector * SECTOR_SIZE + offset, size);
  });
}

/** ECMA-119 6.8.2.2: the first record of a directory is its own. */
async function readOwnRecord(image: RandomAccess, sector: number): Promise<DirectoryRecord> {
  return whileReading(`directory at sector ${sector}`, async () => {
    const extent = { offset: sector * SECTOR_SIZE, size: SECTOR_SIZE };
    const first: IteratorResult<PlacedRecord> = await readRecords(image, extent).next();
    const record = first.done ? undefined : first.value.record;
    if (record && isSelfOrParent(record)) return record;
    throw new IntegrityError('iso.malformed-record', 'it does not begin with its own record');
  });
}

const isSelfOrParent = ({ identifier }: DirectoryRecord): boolean =>
  identifier.length === 1 && (identifier[0] === 0 || identifier[0] === 1);

/** Component by component: the exact name first, then the ISO 9660 name in either case. */
async function findNode(
  children: Children,
  root: IsoDirectory,
  path: string,
): Promise<IsoNode | undefined> {
  let node: IsoNode = root;
  for (const part of path.split('/').filter((text) => text !== '')) {
    if (node.kind !== 'directory') return undefined;
    const nodes: IsoNode[] = await children(node);
    const isoName = part.toUpperCase();
    const next: IsoNode | undefined =
      nodes.find((child) => child.name === part) ??
      nodes.find((child) => formatIdentifier(child.isoIdentifier).toUpperCase() === isoName);
    if (!next) return undefined;
    node = next;
  }
  return node;
}

/**
 * Everything below the root, a directory before what is in it. A directory that is met a second time
 * is refused: it is its own ancestor, or the tree would have no end that one could wait for.
 */
async function* walkNodes(
  children: Children,
  root: IsoDirectory,
): AsyncGenerator<{ path: string; node: IsoNode }> {
  const seen = new Map<number, string>();
  const waiting: { path: string; directory: IsoDirectory }[] = [{ path: '', directory: root }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { path, directory } = next;
    const name = path === '' ? '/' : path;
    const before = seen.get(directory.extent.offset);
    if (before !== undefined) throw createLoopError(name, before);
    seen.set(directory.extent.offset, name);
    const nodes = await children(directory).catch((error: unknown) => {
      throw explainReading(`directory ${name}`, error);
    });
    const directories: typeof waiting = [];
    for (const node of nodes) {
      const entry = { path: `${path}/${node.name}`, node };
      yield entry;
      if (node.kind === 'directory') directories.push({ path: entry.path, directory: node });
    }
    for (const directory of directories.reverse()) waiting.push(directory);
  }
}

function createLoopError(path: string, before: string): IntegrityError {
  return new IntegrityError(
    'iso.looping-directory',
    `directory ${path} is the same extent as directory ${before}`,
  );
}
