import { hexOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { untilAborted, withTimeLimit } from '../../base/wait.ts';
import type { IsoImage } from '../../iso/index.ts';
import { readCustomisation } from '../../media/customize/read.ts';
import { type MediaIndex, readIndex } from '../../media/media-index.ts';
import { useMedium } from '../../media/open.ts';
import type { VirtualBase } from '../../media/serve/virtual.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { explainPlace, type Candidate } from './places.ts';

/* Owns the open ISOs of the store. */

export type OpenBases = {
  /** @returns the same base, with its reads recorded */
  readonly add: (base: VirtualBase, onFailure: () => void) => VirtualBase;
  /** Closes it after a while without reads, so that its downloads can finish. */
  readonly retire: (base: VirtualBase) => void;
  readonly close: () => Promise<void>;
};

/** A release with an ISO in the store. */
export type Release = {
  readonly version: string;
  /** Architecture in RPM's spelling, which assisted-service uses as well. */
  readonly architecture: string;
  readonly base: VirtualBase;
  /** True for an ISO of sealift, which has its registry; false for a live ISO of CoreOS. */
  readonly isOwn: boolean;
  /** Contents by its index; absent on a live ISO of CoreOS. */
  readonly contents?: ReleaseContents;
  /** True if a server holds it: who reads all of it uses the network. */
  readonly isElsewhere: boolean;
  /** Milliseconds since 1970 when this process opened it. */
  readonly openedAt: number;
};

/** The small part of an index. */
export type ReleaseContents = Pick<MediaIndex, 'digest' | 'mutable'> & {
  /** Release image by digest. */
  readonly reference: string;
  readonly images: number;
  readonly operators: readonly { readonly name: string; readonly versions: readonly string[] }[];
};

/** An ISO that is open, or that could not be opened. */
export type Entry = {
  /** Settles when it is open, or when requests should no longer wait for it. */
  settled: Promise<unknown>;
  release?: Release | undefined;
  isOpening: boolean;
  /** Time of the first failed read, by `performance.now()`. */
  failedAt?: number;
  /** Last warning about it. */
  warning?: string;
  readonly isCurrent: Candidate['isCurrent'];
  /** True if a server holds it, which may be unreachable for a while. */
  readonly isElsewhere: boolean;
};

type Opening = {
  readonly signal: AbortSignal;
  /** Called with each new reason why it is not served. */
  readonly warn: (message: string) => void;
  readonly bases: OpenBases;
};

/** Milliseconds; a client that takes no byte for so long has already lost its connection. */
const IDLE = 300_000;

export function createOpenBases(idle = IDLE): OpenBases {
  const open = new Set<VirtualBase>();
  const usedAt = new Map<VirtualBase, number>();
  const retired = new Set<VirtualBase>();
  const closeIdle = (): void => {
    for (const base of retired) {
      if (performance.now() - (usedAt.get(base) ?? 0) < idle) continue;
      retired.delete(base);
      usedAt.delete(base);
      open.delete(base);
      base.close().catch(() => undefined); // there are no readers left
    }
  };
  return {
    add(base, onFailure) {
      const noted: VirtualBase = {
        ...base,
        fill(bytes, offset, signal) {
          usedAt.set(noted, performance.now());
          const filling = base.fill(bytes, offset, signal);
          filling?.catch(() => {
            if (!signal.aborted) onFailure();
          });
          return filling;
        },
      };
      open.add(noted);
      closeIdle();
      return noted;
    },
    retire(base) {
      usedAt.set(base, performance.now());
      retired.add(base);
      closeIdle();
    },
    async close() {
      for (const base of open) await base.close();
    },
  };
}

/** Calls a function with the files of an ISO, which stays open. */
export const useRelease = <Result>(
  { base }: Pick<Release, 'base'>,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> =>
  useMedium(
    {
      path: base.name,
      size: base.size,
      async read(offset, size, buffer = Buffer.allocUnsafe(size)) {
        const bytes = buffer.subarray(0, size);
        await base.fill(bytes, offset, new AbortController().signal);
        return bytes;
      },
      close: () => Promise.resolve(),
    },
    work,
  );

/** Short digest that identifies the bytes of a release in URLs. */
export const shortDigest = ({ base }: Release): string => hexOf(base.digest).slice(0, 12);

export const createEntry = ({ isCurrent, place }: Candidate): Entry => ({
  settled: Promise.resolve(),
  isOpening: false,
  isCurrent,
  isElsewhere: isElsewhere(place),
});

/** True if its release is still unknown because it could not be read yet. */
export const isAway = ({ isElsewhere, release, isOpening, failedAt }: Entry): boolean =>
  !release && (isOpening || (isElsewhere && failedAt !== undefined));

/** Milliseconds that requests wait for an ISO that is being opened: a remote server may be unreachable. */
const OPENING = 5000;

/** Opens the ISO of an entry, for the first time or again: the previous ISO is used until then. */
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
          `${candidate.place} is customised, and every customer gets the values in it: ` +
            'remove them with "sealift customize --reset"',
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
    if (entry.isOpening) return; // the wait is over
    throw error;
  });
  entry.settled.catch(() => undefined); // requests that wait for it get the reason
}

async function openEntry(
  entry: Entry,
  candidate: Candidate,
  { bases, warn }: Opening,
): Promise<void> {
  const base = bases.add(await candidate.open(), () => {
    if (!entry.isElsewhere) return;
    entry.failedAt ??= performance.now();
    warn(`${candidate.place} cannot be read: sealift tries again every few seconds`);
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

async function describe(
  base: VirtualBase,
  { named, place }: Candidate,
): Promise<Release | undefined> {
  const index = await useRelease({ base }, readIndex);
  const about = { base, isElsewhere: isElsewhere(place), openedAt: Date.now() };
  if (!index) return named && { ...named, ...about, isOwn: false };
  const { version, architecture } = index.release;
  return { ...about, version, architecture, isOwn: true, contents: describeContents(index) };
}

const describeContents = ({
  digest,
  mutable,
  release,
  images,
  catalogs = [],
}: MediaIndex): ReleaseContents => ({
  ...withoutUndefined({ digest, mutable }),
  reference: release.reference,
  images: images.length,
  operators: catalogs.flatMap(({ packages }) =>
    packages.map(({ name, bundles }) => ({
      name,
      versions: bundles.map((bundle) => bundle.version ?? bundle.name),
    })),
  ),
});

/** True for a foreign ISO with embedded values: they would be served, as its original is unknown. */
async function isLeaking(release: Release): Promise<boolean> {
  if (release.isOwn) return false;
  try {
    return (await useRelease(release, readCustomisation)).customised;
  } catch (error) {
    if (error instanceof IntegrityError) return false; // it has no valid areas: downloads report that
    throw error;
  }
}
