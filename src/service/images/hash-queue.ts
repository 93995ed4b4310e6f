import { createHash, type Hash } from 'node:crypto';
import { digestFromHex, type Digest } from '../../base/digest.ts';
import { groupBy } from '../../base/lists.ts';
import type { VirtualBase, VirtualIso } from '../../media/serve/virtual.ts';

/*
 * Owns the computation of SHA-256 of whole images, in the background: one base is read at a time, and the images of
 * that base that wait are hashed together while it is read once. Bytes that are hashed are limited a second, so that
 * downloads have disk and processor.
 */

export type HashJob = {
  /** Identity of the image: two jobs of one name are one. */
  readonly name: string;
  readonly tenant: string;
  readonly base: Pick<VirtualBase, 'size' | 'digest' | 'fill'>;
  readonly image: VirtualIso;
  /** False once the ISO below is gone: the job is dropped. */
  readonly isWanted: () => boolean;
  /** Called with the digest of all of its bytes; must not fail. The image may be dropped meanwhile. */
  readonly done: (digest: Digest, isDropped: () => boolean) => Promise<void>;
};

/** Progress of a job that is not done. */
export type HashProgress = {
  /** Bytes that are hashed; 0 while it waits. */
  readonly hashed: number;
  /** False while other images are computed first. */
  readonly isRunning: boolean;
};

export type HashQueue = {
  /** Adds a job unless it is known, or its tenant has too many of them. */
  readonly add: (job: HashJob) => HashProgress;
  /** Drops the jobs of images that are gone. */
  readonly drop: (isGone: (name: string) => boolean) => void;
  /** Resolves once no job is left. */
  readonly idle: () => Promise<void>;
};

export type HashClock = {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

export type HashQueueOptions = {
  /** Bytes a second, summed over the images that are hashed together. */
  readonly rate: number;
  readonly clock: HashClock;
  /** Ends all work; what is not done is lost. */
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

/** Bytes that are read and hashed in one go: less than a millisecond. */
const PIECE = 128 << 10;
/** Images that are hashed in one reading. */
const MOST_TOGETHER = 8;
/** Jobs of one tenant; who asks again later gets a place then. */
const MOST_OF_TENANT = 16;
/** Jobs of all tenants. */
const MOST = 1024;
/** Pieces between two looks whether an image is still wanted. */
const LOOK = 128;

const WAITING: HashProgress = { hashed: 0, isRunning: false };

type Running = { readonly job: HashJob; readonly hash: Hash; hashed: number };

export function createHashQueue(options: HashQueueOptions): HashQueue {
  const waiting = new Map<string, HashJob>();
  const running = new Map<string, Running>();
  const pace = createPace(options);
  let working: Promise<void> | undefined;
  const turns = new Map<string, number>();
  const work = async (): Promise<void> => {
    await options.clock.sleep(0, options.signal); // for the images that are asked for at the same time
    for (let turn = 1; !options.signal.aborted; turn += 1) {
      const together = chooseTogether([...waiting.values()], turns);
      if (together.length === 0) break;
      for (const job of together) {
        waiting.delete(job.name);
        turns.set(job.tenant, turn);
        running.set(job.name, { job, hash: createHash('sha256'), hashed: 0 });
      }
      await readOnce(running, { ...options, pace }).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        if (!options.signal.aborted)
          options.warn(`the SHA-256 of an image is not known: ${reason}`);
      });
      running.clear();
    }
  };
  return {
    add(job) {
      const known = running.get(job.name);
      if (known) return { hashed: known.hashed, isRunning: true };
      if (!waiting.has(job.name) && hasRoom(waiting, job) && !options.signal.aborted) {
        waiting.set(job.name, job);
        working ??= work()
          .catch(() => undefined) // the signal ended its first wait
          .finally(() => {
            working = undefined;
            waiting.clear();
            turns.clear();
          });
      }
      return WAITING;
    },
    drop(isGone) {
      for (const jobs of [waiting, running]) {
        for (const name of jobs.keys()) if (isGone(name)) jobs.delete(name);
      }
    },
    idle: async () => working,
  };
}

const hasRoom = (waiting: ReadonlyMap<string, HashJob>, { tenant }: HashJob): boolean =>
  waiting.size < MOST &&
  [...waiting.values()].filter((each) => each.tenant === tenant).length < MOST_OF_TENANT;

/**
 * Chooses the next images, all of one base. Each tenant's first comes before any tenant's second, and that of the
 * tenant whose turn is longest ago comes first.
 */
function chooseTogether(
  waiting: readonly HashJob[],
  turns: ReadonlyMap<string, number>,
): readonly HashJob[] {
  const ranked = [...groupBy(waiting, ({ tenant }) => tenant)].flatMap(([tenant, jobs]) =>
    jobs.map((job, rank) => ({ job, rank, turn: turns.get(tenant) ?? 0 })),
  );
  const fair = ranked.sort((a, b) => a.rank - b.rank || a.turn - b.turn).map(({ job }) => job);
  const [first] = fair;
  return fair.filter(({ base }) => base.digest === first?.base.digest).slice(0, MOST_TOGETHER);
}

type Reading = HashQueueOptions & {
  readonly pace: (bytes: number) => Promise<void>;
};

/** Reads a base once, and hashes all images that run. */
async function readOnce(running: Map<string, Running>, { pace, signal }: Reading): Promise<void> {
  const buffers = { base: Buffer.allocUnsafe(PIECE), own: Buffer.allocUnsafe(PIECE) };
  for (let offset = 0, pieces = 0; running.size > 0; offset += PIECE, pieces += 1) {
    if (pieces % LOOK === 0) dropUnwanted(running);
    await pace(PIECE * running.size);
    const piece = { buffers, offset, isRead: false };
    for (const [name, each] of running) {
      signal.throwIfAborted();
      await hashPiece(each, piece, signal);
      if (each.hashed < each.job.image.size) continue;
      await each.job.done(digestFromHex(each.hash.digest('hex')), () => !running.has(name));
      running.delete(name); // until then it is not begun again
    }
  }
}

function dropUnwanted(running: Map<string, Running>): void {
  for (const [name, { job }] of running) if (!job.isWanted()) running.delete(name);
}

type Piece = {
  readonly buffers: { readonly base: Buffer; readonly own: Buffer };
  readonly offset: number;
  /** True once the bytes of the base are in their buffer. */
  isRead: boolean;
};

/** Hashes the piece of an image: that of the base, unless the image differs there. */
async function hashPiece(each: Running, piece: Piece, signal: AbortSignal): Promise<void> {
  const { base, image } = each.job;
  const { offset, buffers } = piece;
  const size = Math.min(PIECE, image.size - offset);
  const end = offset + size;
  const isOwn =
    end > base.size ||
    image.changed.some((part) => part.offset < end && part.offset + part.size > offset);
  if (isOwn) {
    await image.fill(buffers.own.subarray(0, size), offset, signal);
  } else if (!piece.isRead) {
    await base.fill(buffers.base.subarray(0, Math.min(PIECE, base.size - offset)), offset, signal);
    piece.isRead = true;
  }
  each.hash.update((isOwn ? buffers.own : buffers.base).subarray(0, size));
  each.hashed += size;
}

/** Milliseconds of work that may be ahead: a timer is late by some. */
const AHEAD = 50;
/** Shortest wait in milliseconds: a timer for each piece would take longer than the piece. */
const SHORTEST = 5;

/** Creates a wait before so many bytes. It lets other work run in any case. */
function createPace({ rate, clock, signal }: HashQueueOptions): (bytes: number) => Promise<void> {
  let free = 0;
  return async (bytes) => {
    const now = clock.now();
    free = Math.max(free, now - AHEAD) + (bytes / rate) * 1000;
    if (free - now >= SHORTEST) await clock.sleep(free - now, signal);
    else await new Promise(setImmediate);
  };
}
