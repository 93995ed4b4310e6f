import { availableParallelism } from 'node:os';
import { digestOf, type Digest } from '../base/digest.ts';
import { isBroken } from '../base/disk/disk-errors.ts';
import { IntegrityError } from '../base/errors.ts';
import { append, maxOf, sumSizes } from '../base/lists.ts';
import type { RandomAccess } from '../base/random-access.ts';
import { createHasher, type Hasher, type HashStream, type Slice } from '../pour/index.ts';
import type { IndexExtent } from './media-index.ts';

export type DamagedExtent = {
  readonly extent: IndexExtent;
  /** Digest of the bytes on the medium. */
  readonly found?: Digest;
  /** Reason why the bytes cannot be read, as a sentence without its subject. */
  readonly unreadable?: string;
};

type VerifyExtentsOptions = {
  readonly signal: AbortSignal;
  /** Called for every piece with the bytes hashed so far. */
  readonly onProgress: (bytes: number) => void;
};

/** Bytes that are read at a time. */
const PIECE = 4 * 1024 * 1024;
/** Number of pieces in a lane: one is read while the others are hashed. */
const PIECES = 4;
/** Number of lanes, which read at different places; more cost more time on a slow disk than they gain. */
const MAX_LANES = 4;
/** Largest extent that is hashed together with its neighbours, without a thread. */
const LARGEST_BATCHED = 256 * 1024;
/** Largest sum of extents that need no thread: to start one takes as long as to hash as many bytes. */
const LARGEST_ALONE = 16 * 1024 * 1024;

/**
 * Reports damaged extents by offset. Reads roughly from front to end; large extents are hashed in threads.
 * Memory: 16 MiB a lane, 64 MiB at most, regardless of the size of the file.
 */
export async function verifyExtents(
  file: Pick<RandomAccess, 'read' | 'size'>,
  extents: readonly IndexExtent[],
  { signal, onProgress }: VerifyExtentsOptions,
): Promise<DamagedExtent[]> {
  const count = Math.min(MAX_LANES, availableParallelism());
  const memory = new SharedArrayBuffer(count * PIECES * PIECE);
  const hasher = createHasher(memory);
  const batched = sumSizes(extents) <= LARGEST_ALONE ? PIECE : LARGEST_BATCHED;
  const tasks = planTasks(extents, batched)[Symbol.iterator]();
  const damaged: DamagedExtent[] = [];
  const failure = new AbortController();
  let bytes = 0;
  const shared = {
    file,
    memory,
    batched,
    signal: AbortSignal.any([signal, failure.signal]),
    onBytes(size: number) {
      bytes += size;
      onProgress(bytes);
    },
  };
  try {
    const lanes = Array.from({ length: count }, async (_, number) => {
      const lane = { ...shared, start: number * PIECES * PIECE, open: openerOf(hasher, number) };
      try {
        for (const task of tasks) append(damaged, await verifyTask(lane, task));
      } catch (error) {
        failure.abort(error);
        throw error;
      }
    });
    await Promise.allSettled(lanes); // no lane may read after the file is closed
    shared.signal.throwIfAborted();
  } finally {
    await hasher.close();
  }
  return damaged.sort((a, b) => a.extent.offset - b.extent.offset);
}

type Lane = {
  readonly file: Pick<RandomAccess, 'read' | 'size'>;
  readonly memory: SharedArrayBuffer;
  /** Largest extent that is hashed without a thread. */
  readonly batched: number;
  /** Offset of the lane's pieces in the shared memory. */
  readonly start: number;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
  readonly open: () => HashStream;
};

/**
 * The first lane uses the thread that a pour reserves for the digest of the whole ISO, which is free here.
 */
const openerOf = (hasher: Hasher, lane: number): (() => HashStream) =>
  lane === 0 ? () => hasher.openAlone() : () => hasher.open();

/** One extent, or small ones that are read together. */
type Task = readonly [IndexExtent, ...IndexExtent[]];

/** Plans tasks by offset, so that the lanes move through the file together. */
function* planTasks(extents: readonly IndexExtent[], batched: number): Generator<Task, undefined> {
  let batch: [IndexExtent, ...IndexExtent[]] | undefined;
  for (const extent of extents.toSorted((a, b) => a.offset - b.offset)) {
    if (extent.digest === undefined) continue;
    if (batch && extent.size <= batched && endOf(extent) <= batch[0].offset + PIECE) {
      batch.push(extent);
      continue;
    }
    if (batch) yield batch;
    batch = extent.size <= batched ? [extent] : undefined;
    if (!batch) yield [extent];
  }
  if (batch) yield batch;
}

const endOf = ({ offset, size }: IndexExtent): number => offset + size;

async function verifyTask(lane: Lane, task: Task): Promise<DamagedExtent[]> {
  const [first] = task;
  try {
    if (first.size <= lane.batched) return await verifySmall(lane, task);
    const found = await hashLarge(lane, first);
    return found === first.digest ? [] : [{ extent: first, found }];
  } catch (error) {
    const unreadable = describeUnreadable(error);
    if (unreadable === undefined) throw error;
    if (task.length === 1) return [{ extent: first, unreadable }];
    const damaged: DamagedExtent[] = [];
    for (const extent of task) append(damaged, await verifyTask(lane, [extent]));
    return damaged;
  }
}

async function verifySmall(lane: Lane, task: Task): Promise<DamagedExtent[]> {
  lane.signal.throwIfAborted();
  const { offset } = task[0];
  const size = maxOf(task.map(endOf)) - offset;
  const window = await readPiece(lane, { start: lane.start, size }, offset);
  const damaged: DamagedExtent[] = [];
  for (const extent of task) {
    const at = extent.offset - offset;
    const found = digestOf(window.subarray(at, at + extent.size));
    if (found !== extent.digest) damaged.push({ extent, found });
    lane.onBytes(extent.size);
  }
  return damaged;
}

async function hashLarge(lane: Lane, { offset, size }: IndexExtent): Promise<Digest> {
  const stream = lane.open();
  const hashing: Promise<void>[] = [];
  let isDone = false;
  try {
    for (let at = 0, turn = 0; at < size; at += PIECE, turn = (turn + 1) % PIECES) {
      await hashing[turn];
      lane.signal.throwIfAborted();
      const slice = { start: lane.start + turn * PIECE, size: Math.min(PIECE, size - at) };
      await readPiece(lane, slice, offset + at);
      const hashed = stream.update(slice).then(() => {
        lane.onBytes(slice.size);
      });
      hashed.catch(() => undefined); // awaited, and thrown, up to one read later
      hashing[turn] = hashed;
    }
    await Promise.all(hashing);
    isDone = true;
    return await stream.digest();
  } finally {
    await Promise.allSettled(hashing); // the next extent uses the same memory
    if (!isDone) stream.close();
  }
}

/** Signals that the file ends before the expected bytes. */
class EndOfFile extends Error {}

async function readPiece(
  { file, memory }: Lane,
  { start, size }: Slice,
  position: number,
): Promise<Buffer> {
  if (position + size > file.size) {
    throw new EndOfFile(`cannot be read: the file ends at byte ${file.size}`);
  }
  return file.read(position, size, Buffer.from(memory, start, size));
}

/** A worn disc or stick answers EIO for lost sectors and can read the sectors after them. */
function describeUnreadable(error: unknown): string | undefined {
  if (error instanceof EndOfFile) return error.message;
  if (error instanceof IntegrityError) return `cannot be read: ${error.message}`; // truncated meanwhile
  return isBroken(error) ? 'cannot be read: the device reports a read error' : undefined;
}
