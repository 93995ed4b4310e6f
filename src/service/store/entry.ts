import { IntegrityError } from '../../base/errors.ts';
import { untilAborted, withTimeLimit } from '../../base/wait.ts';
import { readCustomisation } from '../../media/customize/read.ts';
import { readIndex } from '../../media/media-index.ts';
import type { VirtualBase } from '../../media/serve/virtual.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import type { OpenBases } from './open-bases.ts';
import { useRelease, type Release } from './release.ts';
import { explainPlace, type Candidate } from './places.ts';

/** An ISO that is open, or that could not be opened. */
export type Entry = {
  /** Settles when it was opened, or when nobody should wait for that any longer. */
  settled: Promise<unknown>;
  release?: Release | undefined;
  isOpening: boolean;
  /** Since when it cannot be read, by `performance.now()`. */
  failedAt?: number;
  /** The last that was said of it. */
  warning?: string;
  readonly isCurrent: Candidate['isCurrent'];
  /** Its server may be away for a while. */
  readonly isElsewhere: boolean;
};

export const createEntry = ({ isCurrent, place }: Candidate): Entry => ({
  settled: Promise.resolve(),
  isOpening: false,
  isCurrent,
  isElsewhere: isElsewhere(place),
});

/** Whether nobody could read yet what it is. */
export const isAway = ({ isElsewhere, release, isOpening, failedAt }: Entry): boolean =>
  !release && (isOpening || (isElsewhere && failedAt !== undefined));

/** Milliseconds that requests wait for an ISO which is being opened: a server elsewhere may be away. */
const OPENING = 5000;

type Opening = {
  readonly signal: AbortSignal;
  /** Told of each new reason why it is not served. */
  readonly warn: (message: string) => void;
  readonly bases: OpenBases;
};

/** Opens the ISO of an entry, for the first time or again: what it had is used until then. */
export function beginOpening(entry: Entry, candidate: Candidate, options: Opening): void {
  entry.isOpening = true;
  const warn = (warning: string): void => {
    if (entry.warning !== warning) options.warn(warning);
    entry.warning = warning;
  };
  const opening = openEntry(entry, candidate, { ...options, warn })
    .then(async () => {
      if (!entry.release) warn(`${candidate.place} is not an ISO of sealift: it is not served`);
      else if (await isLeaking(entry.release)) {
        warn(
          `${candidate.place} is customised, and every customer gets what is in it: ` +
            'sealift customize --reset takes that away',
        );
      }
    })
    .catch((error: unknown) => {
      entry.failedAt = performance.now();
      warn(`${candidate.place} is not served: ${explainPlace(error)}`);
    })
    .finally(() => {
      entry.isOpening = false;
    });
  const waiting = withTimeLimit(OPENING, options.signal, (limit) => untilAborted(opening, limit));
  entry.settled = waiting.catch((error: unknown) => {
    if (entry.isOpening) return; // it is waited for no longer
    throw error;
  });
  entry.settled.catch(() => undefined); // those who wait for it hear why
}

async function openEntry(
  entry: Entry,
  candidate: Candidate,
  { bases, warn }: Opening,
): Promise<void> {
  const base = bases.add(await candidate.open(), () => {
    if (!entry.isElsewhere) return;
    entry.failedAt ??= performance.now();
    warn(`${candidate.place} cannot be read: it is tried again every few seconds`);
  });
  const before = entry.release;
  let other: VirtualBase | undefined = base;
  try {
    entry.release = await describe(base, candidate);
    delete entry.failedAt;
    if (entry.release) other = before?.base;
  } finally {
    if (other) bases.retire(other);
  }
}

async function describe(base: VirtualBase, { named }: Candidate): Promise<Release | undefined> {
  const index = await useRelease({ base }, readIndex);
  if (!index) return named && { ...named, base, isOwn: false };
  const { version, architecture } = index.release;
  return { version, architecture, base, isOwn: true };
}

/** An ISO that is not of sealift is served with what somebody has embedded into it: nobody knows what it had before. */
async function isLeaking(release: Release): Promise<boolean> {
  if (release.isOwn) return false;
  try {
    return (await useRelease(release, readCustomisation)).customised;
  } catch (error) {
    if (error instanceof IntegrityError) return false; // it has no areas, or they are none: downloads say so
    throw error;
  }
}
