import { createHash } from 'node:crypto';
import { type Digest, digestOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { formatUuid, markUuid } from '../../base/uuid.ts';
import { BLOCK_SIZE, type GptPartition } from '../boot/gpt.ts';
import { bytesExtent, fillGaps, type Extent, type Layout } from '../extent.ts';
import type { MetalImage } from './metal.ts';
import { TABLE_BLOCKS, writeTables, type DiskTables } from './table.ts';

/*
 * Lays out a disk image: the start of a metal image, an empty root partition, and two partitions that are ISO
 * images. Every byte is known from the layouts of both ISOs; none of their blobs is read.
 */

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** Blocks: 64 KiB. */
const ALIGNMENT = 128;
const COMPACT_ROOT = 64 * 1024;

/** Type of the partitions that hold ISO images, as openshift/appliance gives it. */
const ISO_TYPE = '8da63339-0007-60c0-c436-083ac8230908';
const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4';

/** Bytes: of everything up to the end of partition 3, and of the two ISO images. */
export type DiskContents = {
  readonly end: number;
  readonly recovery: number;
  readonly data: number;
};

/** Blocks of 512 bytes; `last` is inclusive, as the table has it. */
export type BlockRange = { readonly first: number; readonly last: number };

/** Places of the partitions behind the boot file system. */
export type DiskPlan = {
  /** Bytes of the whole image: whole GiB. */
  readonly size: number;
  readonly root: BlockRange;
  readonly recovery: BlockRange;
  readonly data: BlockRange;
};

/**
 * Places the partitions as openshift/appliance does: from the end of the disk backwards, starts rounded down to
 * 64 KiB, 1 MiB free at the end. The size counts in GiB and the root partition of a disk of a given size in GB,
 * so such a disk has unused blocks in front of root.
 *
 * @param gib size of the disk; absent: the smallest whole number of GiB, with a root partition of 64 KiB
 * @throws ConfigError `disk-image.too-small`
 */
export function planDisk(contents: DiskContents, gib?: number): DiskPlan {
  const { end, recovery, data } = contents;
  const sum = end + MIB + recovery + data;
  const smallest = Math.floor(sum / GIB) + 1;
  if (gib !== undefined) {
    const root = Math.max(gib * 1e9 - sum, COMPACT_ROOT);
    const plan = placePartitions(contents, { size: gib * GIB, root });
    if (plan.root.first * BLOCK_SIZE >= end) return plan;
    throw new ConfigError(
      'disk-image.too-small',
      `a disk of ${gib} GiB has no room for its contents`,
      {
        expected: `at least ${smallest} GiB`,
        found: `${gib} GiB`,
        hint: 'name a larger size, or leave it out for the smallest image',
      },
    );
  }
  const plan = placePartitions(contents, { size: smallest * GIB, root: COMPACT_ROOT });
  if (plan.root.first * BLOCK_SIZE >= end) return plan;
  // The last GiB has no room for the bytes that alignment takes.
  return placePartitions(contents, { size: (smallest + 1) * GIB, root: COMPACT_ROOT });
}

function placePartitions(
  { recovery, data }: DiskContents,
  { size, root }: { readonly size: number; readonly root: number },
): DiskPlan {
  const dataEnd = (size - MIB) / BLOCK_SIZE;
  const dataStart = startBefore(dataEnd, data);
  const recoveryEnd = dataStart - ALIGNMENT;
  const recoveryStart = startBefore(recoveryEnd, recovery);
  const rootEnd = recoveryStart - ALIGNMENT;
  return {
    size,
    root: { first: startBefore(rootEnd, root), last: rootEnd - 1 },
    recovery: { first: recoveryStart, last: recoveryEnd - 1 },
    data: { first: dataStart, last: dataEnd - 1 },
  };
}

/** The last aligned block from which so many bytes end before `limit`. */
const startBefore = (limit: number, bytes: number): number =>
  Math.floor((limit - Math.ceil(bytes / BLOCK_SIZE)) / ALIGNMENT) * ALIGNMENT;

/** Bytes of a run that is either all zeros, and left out of the result, or one extent. */
const PIECE = MIB;

/** A run of bytes of a file that is not all zeros. */
export type DiskPiece = ByteRange & { readonly digest: Digest };

/** Reads a range of a file once and lists the runs that are not all zeros; offsets are those in the file. */
export async function scanPieces(
  { read }: Pick<RandomAccess, 'read'>,
  range: ByteRange,
  signal: AbortSignal,
): Promise<readonly DiskPiece[]> {
  const pieces: DiskPiece[] = [];
  const buffer = Buffer.alloc(PIECE);
  const end = range.offset + range.size;
  for (let offset = range.offset; offset < end; offset += PIECE) {
    signal.throwIfAborted();
    const bytes = await read(offset, Math.min(PIECE, end - offset), buffer);
    if (bytes.equals(ZEROS.subarray(0, bytes.length))) continue;
    pieces.push({ offset, size: bytes.length, digest: digestOf(bytes) });
  }
  return pieces;
}

const ZEROS = Buffer.alloc(PIECE);

/** A file whose runs go to the disk, shifted by `shift` bytes. */
export type DiskSource = {
  readonly file: Digest;
  readonly pieces: readonly DiskPiece[];
  readonly shift: number;
};

/** Everything that decides the tables, besides the sizes of the two ISO images. */
export type TableParts = {
  readonly metal: Pick<MetalImage, 'head' | 'end'>;
  /** GiB; absent: as small as possible. */
  readonly gib?: number;
  /** Digests that decide the contents; the GUIDs of the new partitions are made from them. */
  readonly madeFrom: readonly string[];
};

export type DiskParts = TableParts & {
  /** The metal image without its tables and boot file system, and the boot file system as edited. */
  readonly sources: readonly DiskSource[];
  /** ISO images, with the file that is the base of each, if it has one. */
  readonly recovery: IsoPart;
  readonly data: IsoPart;
};

type IsoPart = { readonly layout: Layout; readonly base?: Digest };

/**
 * Places the partitions and writes their tables.
 *
 * @throws ConfigError `disk-image.too-small`
 */
export function planTables(
  { metal: { head, end }, gib, madeFrom }: TableParts,
  isos: Omit<DiskContents, 'end'>,
): DiskTables & { readonly plan: DiskPlan } {
  const plan = planDisk({ end, ...isos }, gib);
  const partitions = listPartitions(plan, madeFrom);
  return { plan, ...writeTables(head, partitions, plan.size / BLOCK_SIZE) };
}

/** Every byte of a disk image. Same parts, same layout. */
export function layOutDisk(parts: DiskParts): Layout & { readonly plan: DiskPlan } {
  const { recovery, data, sources } = parts;
  const sizes = { recovery: recovery.layout.size, data: data.layout.size };
  const { plan, primary, backup } = planTables(parts, sizes);
  const { size } = plan;
  const extents = [
    bytesExtent(0, primary),
    ...sources.flatMap(shiftPieces),
    ...shiftIso(recovery, plan.recovery),
    ...shiftIso(data, plan.data),
    bytesExtent(size - backup.length, backup),
  ];
  extents.sort((a, b) => a.offset - b.offset);
  return { size, plan, extents: fillGaps(extents, size) };
}

/** Number, name and type of the partitions behind the boot file system. */
const ADDED = [
  { number: 4, name: 'root', type: LINUX, of: 'root' },
  { number: 5, name: 'agentboot', type: ISO_TYPE, of: 'recovery' },
  { number: 6, name: 'agentdata', type: ISO_TYPE, of: 'data' },
] as const;

function listPartitions(plan: DiskPlan, madeFrom: readonly string[]): readonly GptPartition[] {
  return ADDED.map(({ number, name, type, of }) => ({
    number,
    name,
    type,
    id: nameGuid([...madeFrom, name]),
    firstBlock: plan[of].first,
    lastBlock: plan[of].last,
  }));
}

/** RFC 9562, 5.8: a GUID whose bits are those of a digest. */
function nameGuid(words: readonly string[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(words)).digest().subarray(0, 16);
  return formatUuid(markUuid(bytes, 8));
}

const shiftPieces = ({ file, pieces, shift }: DiskSource): readonly Extent[] =>
  pieces.map(({ offset, size, digest }) => ({
    offset: offset + shift,
    size,
    digest,
    source: { kind: 'base', from: { file, offset } },
    paths: [],
  }));

/** Moves an ISO to its partition; the bytes of its base are still read from their offsets in the base. */
function shiftIso({ layout, base }: IsoPart, { first }: BlockRange): readonly Extent[] {
  const shift = first * BLOCK_SIZE;
  return layout.extents
    .filter(({ source }) => source.kind !== 'zero')
    .map((extent) => ({
      ...extent,
      offset: extent.offset + shift,
      ...(extent.source.kind === 'base' &&
        base !== undefined && {
          source: { kind: 'base', from: { file: base, offset: extent.offset } } as const,
        }),
    }));
}

/** Bytes of the tables at the start of a disk. */
export const TABLES_SIZE = TABLE_BLOCKS * BLOCK_SIZE;

/** Bytes of their copy at the end of a disk, which has no protective MBR. */
export const BACKUP_TABLES_SIZE = TABLES_SIZE - BLOCK_SIZE;
