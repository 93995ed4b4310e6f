import type { Digest } from '../../../base/digest.ts';
import { IntegrityError } from '../../../base/errors.ts';
import { findFirst } from '../../../base/lists.ts';
import type { ByteRange } from '../../../base/random-access.ts';
import { SECTOR_SIZE } from '../../../iso/index.ts';
import type { DeltaExtent } from '../file.ts';

/** Source of bytes: the old ISO, the delta, the output of its patches, or zeros. Offsets are bytes. */
export type Origin =
  | { readonly kind: 'old'; readonly offset: number }
  | { readonly kind: 'delta' | 'patched'; readonly offset: number }
  | { readonly kind: 'zeros' };

/** A run of bytes of the new ISO that must still be written. */
export type Move = ByteRange & { readonly from: Origin };

/** May be repeated until a later step overwrites the bytes that it reads, which the runner ensures. */
export type InPlaceStep =
  /** Copies bytes of the old ISO aside before they are overwritten. */
  | { readonly kind: 'save'; readonly offset: number; readonly size: number; readonly slot: number }
  | (ByteRange & { readonly kind: 'write'; readonly from: Origin | Slot })
  /** Overwrites the first sector with a marker: the ISO is incomplete and does not boot. */
  | (ByteRange & { readonly kind: 'close' })
  /** Writes nothing: all bytes except the boot structures are on the disk. */
  | { readonly kind: 'ready' };

type Slot = { readonly kind: 'slot'; readonly offset: number };

export type OldIso = {
  /** Bytes. */
  readonly size: number;
  /** Extents by offset; the rest is zeros. */
  readonly extents: readonly DeltaExtent[];
};

/** ISO that results from the delta. */
export type NewIso = OldIso & {
  /** Extents that the old ISO lacks, with their places. */
  readonly carried: readonly (ByteRange & {
    readonly digest: Digest;
    /** Patched extents are made before any step runs. */
    readonly in: 'delta' | 'patched';
  })[];
  /** Parts of the areas that a customised old ISO gave it; absent in journals of earlier versions. */
  readonly values?: readonly string[];
};

/** Limit on the bytes of one step; a saved run takes this much room, regardless of its size. */
export const LARGEST_MOVE = 4 * 1024 * 1024;

/** A disk writes it entirely or not at all. The first block of a medium makes it bootable, and is last. */
const BLOCK_SIZE = 512;

/** Slots aside are reused in turn, so that few saved bytes must be synced at once. */
const SLOTS = 8;

type Task = Move & { blockers: number; slot?: number; isDone: boolean };

/**
 * Orders moves so that no source is overwritten before it is copied. Circles, and runs that overlap their own
 * target, are saved aside first. The boot structures are written last and are absent meanwhile.
 *
 * @param moves with targets that do not overlap
 * @param boot from 0 on: the bytes that make a medium bootable
 */
export function planSteps(moves: readonly Move[], boot: ByteRange): readonly InPlaceStep[] {
  const tasks = moves.flatMap(cut);
  const plan = createPlan(tasks);
  const isLast = (task: Task): boolean => task.offset < boot.size;
  const last = tasks.filter(isLast);
  for (const task of [...last, ...plan.findReaders(boot)]) plan.save(task);
  const first = Math.min(boot.size, SECTOR_SIZE);
  plan.steps.push(
    { kind: 'close', offset: 0, size: first },
    { kind: 'write', offset: first, size: boot.size - first, from: { kind: 'zeros' } },
  );
  plan.writeAll(tasks.filter((task) => !isLast(task)));
  plan.steps.push({ kind: 'ready' });
  for (const task of last.toSorted((a, b) => b.offset - a.offset)) plan.write(task);
  return plan.steps.flatMap((step, number) =>
    number === plan.steps.length - 1 ? splitFirstBlock(step) : [step],
  );
}

/** Splits a step into the bytes after the first block, and that block. */
function splitFirstBlock(step: InPlaceStep): readonly InPlaceStep[] {
  if (step.kind !== 'write' || step.offset > 0 || step.size <= BLOCK_SIZE) return [step];
  const { from } = step;
  const rest = from.kind === 'zeros' ? from : { ...from, offset: from.offset + BLOCK_SIZE };
  return [
    { kind: 'write', offset: BLOCK_SIZE, size: step.size - BLOCK_SIZE, from: rest },
    { ...step, size: BLOCK_SIZE },
  ];
}

function cut({ offset, size, from }: Move): readonly Task[] {
  return Array.from({ length: Math.ceil(size / LARGEST_MOVE) }, (_, number): Task => {
    const at = number * LARGEST_MOVE;
    const origin = from.kind === 'zeros' ? from : { ...from, offset: from.offset + at };
    const piece = Math.min(LARGEST_MOVE, size - at);
    return { offset: offset + at, size: piece, from: origin, blockers: 0, isDone: false };
  });
}

type Reader = Task & { readonly from: Extract<Origin, { readonly kind: 'old' }> };

const isReader = (task: Task): task is Reader => task.from.kind === 'old';

type Plan = {
  readonly steps: InPlaceStep[];
  /** Finds tasks that read these bytes of the old ISO and are neither done nor saved. */
  readonly findReaders: (range: ByteRange) => readonly Task[];
  readonly save: (task: Task) => void;
  readonly write: (task: Task) => void;
  readonly writeAll: (tasks: readonly Task[]) => void;
};

function createPlan(tasks: readonly Task[]): Plan {
  const steps: InPlaceStep[] = [];
  const findReaders = createReaderLookup(tasks);
  const slots = createSlots();
  const queue = createQueue();
  const save: Plan['save'] = (task) => {
    if (!isReader(task) || task.slot !== undefined) return;
    task.slot = slots.take();
    steps.push({ kind: 'save', offset: task.from.offset, size: task.size, slot: task.slot });
    queue.release(task);
  };
  const write: Plan['write'] = (task) => {
    const { offset, size, from } = task;
    if (from.kind === 'old' && rangesOverlap(task, { offset: from.offset, size })) save(task);
    const { slot } = task;
    const source = slot === undefined ? from : ({ kind: 'slot', offset: slot } as const);
    steps.push({ kind: 'write', offset, size, from: source });
    task.isDone = true;
    if (slot !== undefined) slots.give(slot);
    queue.release(task);
  };
  const findOthers = (task: Task): readonly Task[] =>
    findReaders(task).filter((reader) => reader !== task);
  return {
    steps,
    findReaders,
    save,
    write,
    writeAll(all) {
      for (const task of all) queue.add(task, findOthers(task));
      queue.drain(write);
      for (const task of all) {
        if (task.isDone) continue;
        for (const reader of findOthers(task)) save(reader); // a circle
        queue.drain(write);
      }
    },
  };
}

/**
 * Two families of runs without overlaps meet at most as often as they have members. Few blobs are in an ISO
 * twice; a delta that copies one to a thousand places is not ours: each target would wait for a thousand
 * readers.
 */
const MOST_MEETINGS = { each: 20, besides: 100_000 };

function createReaderLookup(tasks: readonly Task[]): Plan['findReaders'] {
  const readers = tasks.filter(isReader).sort((a, b) => a.from.offset - b.from.offset);
  let end = 0;
  const ends = readers.map(({ from, size }) => (end = Math.max(end, from.offset + size)));
  let left = MOST_MEETINGS.each * tasks.length + MOST_MEETINGS.besides;
  return ({ offset, size }) => {
    const found: Task[] = [];
    for (let at = findFirst(ends, (value) => value > offset); at < readers.length; at++) {
      const task = readers[at];
      if (!task || task.from.offset >= offset + size) break;
      if (--left < 0) throw repeats();
      const isOpen = task.slot === undefined && !task.isDone;
      if (isOpen && task.from.offset + task.size > offset) found.push(task);
    }
    return found;
  };
}

const repeats = (): IntegrityError =>
  new IntegrityError('delta.malformed', 'the delta copies the same bytes to too many places', {
    hint: 'copy it again from where it was made',
  });

function createQueue(): {
  readonly add: (task: Task, readers: readonly Task[]) => void;
  readonly release: (reader: Task) => void;
  readonly drain: (work: (task: Task) => void) => void;
} {
  const ready: Task[] = [];
  const waiting = new Map<Task, Task[]>();
  let next = 0;
  return {
    add(task, readers) {
      task.blockers = readers.length;
      for (const reader of readers) {
        const list = waiting.get(reader) ?? [];
        list.push(task);
        waiting.set(reader, list);
      }
      if (readers.length === 0) ready.push(task);
    },
    release(reader) {
      for (const task of waiting.get(reader) ?? []) {
        task.blockers -= 1;
        if (task.blockers === 0) ready.push(task);
      }
      waiting.delete(reader);
    },
    drain(work) {
      for (; next < ready.length; next++) {
        const task = ready[next];
        if (task) work(task);
      }
    },
  };
}

function createSlots(): { readonly take: () => number; readonly give: (slot: number) => void } {
  const free: number[] = [];
  let count = 0;
  return {
    take() {
      const slot = free.length >= SLOTS ? free.shift() : undefined;
      return slot ?? count++ * LARGEST_MOVE;
    },
    give(slot) {
      free.push(slot);
    },
  };
}

export const rangesOverlap = (a: ByteRange, b: ByteRange): boolean =>
  a.offset < b.offset + b.size && b.offset < a.offset + a.size;

/** By offset and without gaps. */
export function listMoves(old: OldIso, now: NewIso): readonly Move[] {
  const places = new Map(old.extents.map(({ digest, offset }) => [digest, offset] as const));
  const atPlace = new Map(old.extents.map(({ digest, offset }) => [offset, digest] as const));
  const carried = new Map(now.carried.map((extent) => [extent.digest, extent] as const));
  const moves: Move[] = [];
  let end = 0;
  const fill = (offset: number): void => {
    if (offset > end) moves.push({ offset: end, size: offset - end, from: { kind: 'zeros' } });
  };
  for (const { offset, size, digest } of now.extents) {
    fill(offset);
    end = offset + size;
    const place = atPlace.get(offset) === digest ? offset : places.get(digest);
    const made = carried.get(digest);
    if (place !== undefined) moves.push({ offset, size, from: { kind: 'old', offset: place } });
    else if (made) moves.push({ offset, size, from: { kind: made.in, offset: made.offset } });
    else throw new Error(`no source has the extent at byte ${offset}`);
  }
  fill(now.size);
  return moves;
}

/** Leaves out bytes that are already in place, and zeros between the files of both ISOs. */
export function leaveOut(moves: readonly Move[], old: OldIso, boot: ByteRange): readonly Move[] {
  return moves.flatMap((move) => {
    const { from, offset, size } = move;
    if (from.kind === 'old' && from.offset === offset && offset >= boot.size) return [];
    return from.kind === 'zeros' ? listUsed({ offset, size }, old) : [move];
  });
}

/** Lists the parts of a run that are not known to be zeros on the old ISO. */
function listUsed({ offset, size }: ByteRange, old: OldIso): readonly Move[] {
  const end = offset + size;
  const used: Move[] = [];
  const add = (from: number, to: number): void => {
    const start = Math.max(from, offset);
    const stop = Math.min(to, end);
    if (start < stop) used.push({ offset: start, size: stop - start, from: { kind: 'zeros' } });
  };
  const first = findFirst(old.extents, (extent) => extent.offset + extent.size > offset);
  for (let at = first; at < old.extents.length; at++) {
    const extent = old.extents[at];
    if (!extent || extent.offset >= end) break;
    add(extent.offset, extent.offset + extent.size);
  }
  add(old.size, end);
  return used;
}
