import { Readable } from 'node:stream';
import { IntegrityError } from '../../base/errors.ts';
import { openRandomAccess, type ByteRange, type RandomAccess } from '../../base/random-access.ts';
import { decodeBootCatalog, type BootEntry } from '../boot/el-torito.ts';
import { SECTOR_SIZE } from '../extent.ts';
import {
  decodeVolumeDescriptor,
  type PrimaryVolumeDescriptor,
  type SupplementaryVolumeDescriptor,
  type VolumeDescriptor,
} from '../volume/descriptor.ts';
import type { IsoFile, IsoNode } from './node.ts';
import { whileReading, createStructureSource, type StructureSource } from './source.ts';
import { openTree, type IsoTree } from './tree.ts';

/** An open ISO 9660 image; close it. Bytes are read on demand. */
export type IsoImage = Pick<IsoTree, 'root' | 'hasRockRidge' | 'children' | 'find' | 'walk'> & {
  readonly path: string;
  /** Bytes. */
  readonly fileSize: number;
  readonly volume: PrimaryVolumeDescriptor;
  /** All descriptors up to and including the terminator, in order. */
  readonly descriptors: readonly VolumeDescriptor[];
  /** The second tree, with names in UCS-2, if there is one. */
  readonly joliet: SupplementaryVolumeDescriptor | undefined;
  /** Sector of the El Torito boot catalog. */
  readonly bootCatalog: number | undefined;
  readonly bootEntries: readonly BootEntry[];
  /**
   * A whole file in memory.
   *
   * @throws IntegrityError `iso.file-too-large` if it has more than `limit` bytes, default 16 MiB
   */
  readonly readFile: (file: IsoNode, limit?: number) => Promise<Uint8Array>;
  /** For callers that read directories themselves; its budget covers all reads of this image. */
  readonly structure: StructureSource;
  /** A file, or these bytes of it, in pieces of at most 1 MiB. */
  readonly stream: (file: IsoNode, range?: ByteRange) => Readable;
  /** @throws IntegrityError `iso.out-of-bounds` */
  readonly readBytes: RandomAccess['read'];
  readonly close: () => Promise<void>;
};

/** ECMA-119 6.2.1: after the System Area. */
const FIRST_DESCRIPTOR = 16;
const MAX_DESCRIPTORS = 64;
const DEFAULT_LIMIT = 16 * 1024 * 1024;
const PIECE_SIZE = 1024 * 1024;

/**
 * Opens an ISO 9660 image, with Rock Ridge or without: a path, or an open file. The open
 * file is closed with the image, and stays open if this throws.
 *
 * @throws IntegrityError `iso.not-iso9660`, `iso.truncated`, `iso.unsupported`, `iso.out-of-bounds`,
 * `iso.malformed-record`, `iso.boot-catalog`; errors of the file system as they are
 */
export async function openIso(from: string | RandomAccess): Promise<IsoImage> {
  const image = typeof from === 'string' ? await openRandomAccess(from) : from;
  try {
    return await whileReading(`ISO image ${image.path}`, () => createImage(image));
  } catch (error) {
    if (typeof from === 'string') await image.close();
    throw error;
  }
}

async function createImage(image: RandomAccess): Promise<IsoImage> {
  const descriptors = await readDescriptors(image);
  const volume = findPrimary(descriptors);
  requireWholeVolume(volume, image);
  const bootCatalog = descriptors.find(
    (descriptor) => descriptor.kind === 'boot-record',
  )?.bootCatalog;
  const structure = createStructureSource(image);
  const tree = await openTree(structure, volume);
  return {
    ...tree,
    structure,
    path: image.path,
    fileSize: image.size,
    volume,
    descriptors,
    joliet: findJoliet(descriptors),
    bootCatalog,
    bootEntries: bootCatalog === undefined ? [] : await readBootEntries(image, bootCatalog),
    readFile: (node, limit) => readWholeFile(image, requireFile(node), limit ?? DEFAULT_LIMIT),
    stream: (node, range) =>
      Readable.from(readPieces(image, requireFile(node), range), { objectMode: false }),
    readBytes: image.read,
    close: image.close,
  };
}

async function readDescriptors(image: RandomAccess): Promise<VolumeDescriptor[]> {
  if (image.size < (FIRST_DESCRIPTOR + 1) * SECTOR_SIZE) {
    throw new IntegrityError(
      'iso.not-iso9660',
      `file has ${image.size} bytes, too few for a volume descriptor`,
    );
  }
  const descriptors: VolumeDescriptor[] = [];
  for (let index = 0; index < MAX_DESCRIPTORS; index += 1) {
    const descriptor = await whileReading(`volume descriptor ${index + 1}`, async () => {
      const at = (FIRST_DESCRIPTOR + index) * SECTOR_SIZE;
      return decodeVolumeDescriptor(await image.read(at, SECTOR_SIZE));
    });
    descriptors.push(descriptor);
    if (descriptor.kind === 'terminator') return descriptors;
  }
  throw new IntegrityError(
    'iso.not-iso9660',
    `no terminator among the first ${MAX_DESCRIPTORS} volume descriptors`,
  );
}

function findPrimary(descriptors: readonly VolumeDescriptor[]): PrimaryVolumeDescriptor {
  const primary = descriptors.find((descriptor) => descriptor.kind === 'primary');
  if (primary) return primary.volume;
  const kinds = descriptors.map(({ kind }) => kind).join(', ');
  throw new IntegrityError(
    'iso.not-iso9660',
    `no primary volume descriptor, only descriptors of kind ${kinds}`,
  );
}

function findJoliet(
  descriptors: readonly VolumeDescriptor[],
): SupplementaryVolumeDescriptor | undefined {
  for (const descriptor of descriptors) {
    if (descriptor.kind === 'supplementary' && descriptor.volume.isJoliet) return descriptor.volume;
  }
  return undefined;
}

function requireWholeVolume(volume: PrimaryVolumeDescriptor, image: RandomAccess): void {
  if (volume.logicalBlockSize !== SECTOR_SIZE) {
    throw new IntegrityError(
      'iso.unsupported',
      `logical blocks have ${volume.logicalBlockSize} bytes, not ${SECTOR_SIZE}`,
      { expected: String(SECTOR_SIZE), found: String(volume.logicalBlockSize) },
    );
  }
  const expected = volume.volumeSpaceSize * SECTOR_SIZE;
  if (image.size >= expected) return;
  throw new IntegrityError(
    'iso.truncated',
    `ISO image is incomplete: its volume has ${expected} bytes, but the file only ${image.size}`,
    { expected: String(expected), found: String(image.size), hint: 'copy or download it again' },
  );
}

/** One sector holds 64 catalog entries, more than any firmware reads. */
function readBootEntries(image: RandomAccess, sector: number): Promise<readonly BootEntry[]> {
  return whileReading(`boot catalog at sector ${sector}`, async () => {
    return decodeBootCatalog(await image.read(sector * SECTOR_SIZE, SECTOR_SIZE)).entries;
  });
}

function requireFile(node: IsoNode): IsoFile {
  if (node.kind === 'file') return node;
  throw new IntegrityError('iso.not-a-file', `"${node.name}" is a ${node.kind}, not a file`);
}

async function readWholeFile(
  image: RandomAccess,
  file: IsoFile,
  limit: number,
): Promise<Uint8Array> {
  if (file.size > limit) {
    throw new IntegrityError(
      'iso.file-too-large',
      `file "${file.name}" has ${file.size} bytes, more than ${limit}`,
      { expected: `at most ${limit}`, found: String(file.size) },
    );
  }
  const bytes = Buffer.allocUnsafe(file.size);
  let at = 0;
  for await (const piece of readPieces(image, file, undefined)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

async function* readPieces(
  image: RandomAccess,
  file: IsoFile,
  range: ByteRange = { offset: 0, size: file.size },
): AsyncGenerator<Uint8Array> {
  const end = Math.min(range.offset + range.size, file.size);
  let start = 0;
  for (const extent of file.extents) {
    const from = Math.max(range.offset, start);
    const to = Math.min(end, start + extent.size);
    for (let at = from; at < to; at += PIECE_SIZE) {
      const size = Math.min(PIECE_SIZE, to - at);
      const offset = extent.offset + at - start;
      yield await whileReading(`file "${file.name}"`, () => image.read(offset, size));
    }
    start += extent.size;
  }
}
