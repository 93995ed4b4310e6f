import { IntegrityError } from '../../base/errors.ts';
import { readRecords, FILE_FLAG, type DirectoryRecord } from '../directory/record.ts';
import { decodeSharingProtocol, encodeRockRidge } from '../directory/rock-ridge.ts';
import type { SystemUseEntry } from '../directory/system-use.ts';
import { SECTOR_SIZE } from '../extent.ts';
import { locateExtent, type IsoDirectory, type IsoNode } from './node.ts';
import type { IsoImage } from './open.ts';
import type { StructureSource } from './source.ts';
import { readEntries } from './tree.ts';

/** Sectors of a file's data, in order; more than one if the file has several extents. */
export type FileSection = { readonly sector: number; readonly size: number };

/** Content of a directory record of the base ISO, without its place. */
type BaseEntry = {
  /** Rock Ridge name; the root's is empty. */
  readonly name: string;
  /** ISO 9660 identifier, bytes as latin1. */
  readonly identifier: string;
  readonly flags: number;
  readonly recordedAt: Date | undefined;
  /** All system use entries except those about relocated directories. */
  readonly entries: readonly SystemUseEntry[];
};

export type BaseFile = BaseEntry & {
  readonly kind: 'file';
  readonly sections: readonly FileSection[];
};

export type BaseDirectory = BaseEntry & {
  readonly kind: 'directory';
  readonly children: readonly BaseNode[];
};

export type BaseNode = BaseFile | BaseDirectory;

/** Entries about relocation (RRIP 4.1.5), obsolete (RR) or specific to one recording (PD, SP). */
const DROPPED = ['CL', 'PL', 'RE', 'RR', 'PD', 'SP'];
/** Directory into which other programs relocate deep directories; empty after they are put back. */
const RELOCATION_DIRECTORY = 'rr_moved';

type GrowingDirectory = BaseDirectory & { readonly children: BaseNode[] };

/** The whole directory tree as Rock Ridge describes it: relocated directories are at their real places. */
export async function readBaseTree(iso: IsoImage): Promise<BaseDirectory> {
  const own = await readRootEntries(iso.structure, iso.root);
  const skip = decodeSharingProtocol(own);
  if (skip === undefined) {
    throw new IntegrityError('iso.no-rock-ridge', `${iso.path} has no Rock Ridge names`, {
      hint: 'use a CoreOS live ISO as base',
    });
  }
  const root: GrowingDirectory = { ...describe(iso.root, own), kind: 'directory', children: [] };
  const directories = new Map([['', root]]);
  for await (const { path, node } of iso.walk()) {
    const area = node.records[0]?.systemUse.subarray(skip) ?? new Uint8Array(0);
    const entry = describe(node, await readEntries(iso.structure, area));
    const parent = directories.get(path.slice(0, path.lastIndexOf('/')));
    if (node.kind === 'directory') {
      const directory: GrowingDirectory = { ...entry, kind: 'directory', children: [] };
      directories.set(path, directory);
      parent?.children.push(directory);
    } else {
      parent?.children.push({ ...entry, kind: 'file', sections: node.records.map(sectionOf) });
    }
  }
  return { ...root, identifier: '\0', children: root.children.filter(isNotForRelocation) };
}

/** The root's attributes are only in its own record: the volume descriptor has no room for them. */
async function readRootEntries(
  image: StructureSource,
  root: IsoDirectory,
): Promise<readonly SystemUseEntry[]> {
  const records = readRecords(image, root.extent);
  for await (const [first] of records) {
    if (first) return readEntries(image, first.record.systemUse);
  }
  return [];
}

const isNotForRelocation = (node: BaseNode): boolean =>
  node.kind === 'file' || node.name !== RELOCATION_DIRECTORY || node.children.length > 0;

/** Describes an entry. The name of a relocated directory is in another record than its attributes. */
function describe(node: IsoNode, entries: readonly SystemUseEntry[]): BaseEntry {
  const preserved = entries.filter(({ signature }) => !DROPPED.includes(signature));
  const [record] = node.records;
  const isNamed = node.name === '' || preserved.some(({ signature }) => signature === 'NM');
  return {
    name: node.name,
    identifier: Buffer.from(node.isoIdentifier).toString('latin1'),
    flags: (record?.flags ?? 0) & ~FILE_FLAG.multiExtent,
    recordedAt: record?.recordedAt,
    entries: isNamed ? preserved : [...preserved, ...encodeNameOnly(node.name)],
  };
}

const encodeNameOnly = (name: string): SystemUseEntry[] =>
  encodeRockRidge({ mode: 0, links: 0, uid: 0, gid: 0, name }).filter(
    ({ signature }) => signature === 'NM',
  );

const sectionOf = (record: DirectoryRecord): FileSection => {
  const { offset, size } = locateExtent(record);
  return { sector: offset / SECTOR_SIZE, size };
};
