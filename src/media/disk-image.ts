import type { ByteRange, RandomAccess } from '../base/random-access.ts';
import { requireInside } from '../base/random-access.ts';
import { digestOf } from '../base/digest.ts';
import { formatReadableJson } from '../base/text/json.ts';
import {
  BLOCK_SIZE,
  readPartitionTables,
  SYSTEM_AREA_SIZE,
  type DiskSource,
  type DiskTables,
  type IsoImage,
} from '../iso/index.ts';
import { decodeJson, requireDecoded } from '../shape/decode.ts';
import { COUNT, DIGEST, LEFT_OUT, list, oneOf, record, type TypeOf } from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';
import { DEPLOYED_DISK_PATH } from './media-index.ts';
import { IntegrityError } from '../base/errors.ts';

/* A disk image as a medium: its two ISO images are read as media of their own. */

/** Path on the data ISO of the list of everything in front of the root partition. */
export const DISK_PATH = '/sealift/disk.json';

/** Offsets are those on the disk; what is between the extents, up to `end`, is zeros. */
const DISK = record(
  {
    format: oneOf(1),
    /** Bytes: end of the boot file system. */
    end: COUNT,
    /** The first has the partition tables. */
    extents: list(record({ offset: COUNT, size: COUNT, digest: DIGEST }, LEFT_OUT)),
    /** Digest of the copy of the tables at the end of the disk. */
    backup: DIGEST,
  },
  LEFT_OUT,
);

export type DiskList = TypeOf<typeof DISK>;

/** Renders the list. Its size does not depend on the bytes of the tables. */
export function describeDisk(
  { end, sources }: { readonly end: number; readonly sources: readonly DiskSource[] },
  { primary, backup }: DiskTables,
): Uint8Array {
  const tables = { offset: 0, size: primary.length, digest: digestOf(primary) };
  const extents = sources.flatMap(({ pieces, shift }) =>
    pieces.map(({ offset, size, digest }) => ({ offset: offset + shift, size, digest })),
  );
  const described = { format: 1, end, extents: [tables, ...extents], backup: digestOf(backup) };
  return Buffer.from(formatReadableJson(described));
}

/** @throws IntegrityError `disk-image.malformed-list` */
export const parseDiskList = (bytes: Uint8Array): DiskList =>
  requireDecoded(
    decodeJson(DISK, bytes),
    ([first]) =>
      new IntegrityError(
        'disk-image.malformed-list',
        `${DISK_PATH}: ${describeFinding(first, 'it')}`,
      ),
  );

/** A partition of a disk image that is an ISO image. */
export type IsoPartition = ByteRange & { readonly name: string; readonly access: RandomAccess };

export type DiskImage = { readonly recovery: IsoPartition; readonly data: IsoPartition };

/** Undefined for everything else: an ISO, a delta, the disk of an installed host that lost its partitions. */
export async function openDisk(image: RandomAccess): Promise<DiskImage | undefined> {
  if (image.size < SYSTEM_AREA_SIZE) return undefined;
  const { gpt } = readPartitionTables(await image.read(0, SYSTEM_AREA_SIZE));
  const find = (name: string): IsoPartition | undefined => {
    const found = gpt?.partitions.find((one) => one.name === name);
    if (!found) return undefined;
    const offset = found.firstBlock * BLOCK_SIZE;
    const size = (found.lastBlock + 1 - found.firstBlock) * BLOCK_SIZE;
    return { name, offset, size, access: viewRange(image, { offset, size }, `partition ${name}`) };
  };
  const [recovery, data] = [find('agentboot'), find('agentdata')];
  return recovery && data && { recovery, data };
}

const QCOW2_MAGIC = Buffer.from('QFI\xfb', 'latin1');

/**
 * Refuses a disk in the format of QEMU, whose clusters are in any order: no structure of a medium is at its offset.
 *
 * @throws IntegrityError `disk-image.qcow2`
 */
export async function refuseQcow2({ path, size, read }: RandomAccess): Promise<void> {
  if (size < QCOW2_MAGIC.length || !(await read(0, QCOW2_MAGIC.length)).equals(QCOW2_MAGIC)) return;
  throw new IntegrityError(
    'disk-image.qcow2',
    `${path} is a qcow2 copy of a disk, which is not read`,
    {
      expected: 'a raw disk image, or an ISO',
      found: 'a file in the format of QEMU',
      hint: `name the raw image, which "qemu-img compare RAW ${path}" compares with the copy and "qemu-img convert -O raw ${path} RAW" makes of it`,
    },
  );
}

/** The disk image on a deployment ISO; undefined on other media. */
export async function findCarriedDisk(
  iso: Pick<IsoImage, 'path' | 'fileSize' | 'find' | 'readBytes'>,
): Promise<RandomAccess | undefined> {
  const file = await iso.find(DEPLOYED_DISK_PATH);
  const [first] = file?.kind === 'file' ? file.extents : [];
  if (file?.kind !== 'file' || !first) return undefined;
  const { path, fileSize: size, readBytes: read } = iso;
  const image = { path, size, read, close: () => Promise.resolve() };
  return viewRange(image, { offset: first.offset, size: file.size }, DEPLOYED_DISK_PATH);
}

/** A part of an image as an image, as far as it is there; closing it leaves the whole open. It may be longer than its ISO. */
function viewRange(image: RandomAccess, { offset, size }: ByteRange, name: string): RandomAccess {
  const present = Math.max(0, Math.min(size, image.size - offset));
  return {
    path: `${image.path} (${name})`,
    size: present,
    isDevice: true,
    read(from, length, buffer) {
      requireInside({ offset: from, size: length }, present);
      return image.read(offset + from, length, buffer);
    },
    close: () => Promise.resolve(),
  };
}

/** Says why a partition is not whole on the disk; undefined if it is. */
export function describeMisplaced(
  { name, offset, size }: Omit<IsoPartition, 'access'>,
  diskSize: number,
): string | undefined {
  if (size <= 0) return `the last block of partition ${name} is in front of its first`;
  const end = `the disk ends at byte ${diskSize}`;
  if (offset >= diskSize) return `partition ${name} begins at byte ${offset}, and ${end}`;
  if (offset + size > diskSize)
    return `partition ${name} ends at byte ${offset + size}, and ${end}`;
  return undefined;
}
