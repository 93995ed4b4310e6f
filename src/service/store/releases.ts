import pLimit from 'p-limit';
import type { PartCache } from '../../base/store/part-cache.ts';
import type { SourceHost } from '../../outputs/read/open.ts';
import {
  beginOpening,
  createEntry,
  isAway,
  type Entry,
  createOpenBases,
  shortDigest,
  type Release,
} from './entry.ts';
import { explainPlace, listCandidates, type Candidate } from './places.ts';

/** Releases that are served: a request matches a version exactly. */
export type Releases = {
  readonly list: () => Promise<readonly Release[]>;
  /** @param named ISO of that version, by `shortDigest`, if it is in the store */
  readonly find: (
    version: string,
    architecture: string,
    named?: string,
  ) => Promise<Release | undefined>;
  readonly isEmpty: () => Promise<boolean>;
  /** False if no store is named. */
  readonly hasPlaces: boolean;
  /** True if an ISO is still being opened, or an address could not be read yet: it may be of any release. */
  readonly isPartial: () => boolean;
  /** True if this ISO is still in the store; at once, by a look at its file. */
  readonly isCurrent: (release: Release) => boolean;
  /** True if one of them could be read, as far as is known. */
  readonly isReady: () => Promise<boolean>;
  readonly close: () => Promise<void>;
};

type Options = {
  readonly host: SourceHost;
  readonly cache: PartCache;
  /** Called once for each ISO that cannot be served. */
  readonly warn: (message: string) => void;
  /** Milliseconds until an unreadable place is tried again. */
  readonly retryAfter?: number;
  /** Milliseconds after the last read of a replaced ISO until it is closed. */
  readonly closeAfter?: number;
};

const RETRY_AFTER = 10_000;

/**
 * Opens the ISOs in folders and at addresses. Folders are listed again when a release is requested, so
 * that new ISOs are served without a restart. A replaced ISO stays open for its downloads. An ISO that
 * could not be opened or read is tried again some seconds later.
 */
export function openReleases(places: readonly string[], options: Options): Releases {
  const { host, retryAfter = RETRY_AFTER } = options;
  const entries = new Map<string, Entry>();
  const bases = createOpenBases(options.closeAfter);
  const begin = (entry: Entry, candidate: Candidate): void => {
    beginOpening(entry, candidate, { signal: host.signal, warn: options.warn, bases });
  };
  const listAt = createLister(options);
  const inOrder = pLimit(1);
  const look = (): Promise<readonly Entry[]> =>
    inOrder(async () => {
      const candidates = (await Promise.all(places.map(listAt))).flat();
      const keys = new Set(candidates.map(({ key }) => key));
      for (const [key, { release }] of entries) {
        if (keys.has(key)) continue;
        entries.delete(key);
        if (release) bases.retire(release.base);
      }
      return candidates.map((candidate) => {
        const known = entries.get(candidate.key);
        const entry = known ?? createEntry(candidate);
        entries.set(candidate.key, entry);
        const isDue = performance.now() - (entry.failedAt ?? Infinity) >= retryAfter;
        if (!known || (isDue && !entry.isOpening)) begin(entry, candidate);
        return entry;
      });
    });
  const settle = async (): Promise<readonly Entry[]> => {
    const found = await look();
    // Entries that are opened again keep their earlier release meanwhile.
    await Promise.all(found.filter(({ release }) => !release).map(({ settled }) => settled));
    return found;
  };
  const warnOfTwins = createTwinWarning(options.warn);
  const list = async (): Promise<readonly Release[]> => {
    const releases = (await settle()).flatMap(({ release }) => release ?? []);
    warnOfTwins(releases);
    return releases;
  };
  return {
    list,
    async find(version, architecture, named) {
      const isNamed = (each: Release): boolean => shortDigest(each) === named;
      const isAsked = (each: Release): boolean =>
        each.version === version && each.architecture === architecture;
      // A request that names the ISO does not need the others.
      for (const { release, isCurrent } of entries.values()) {
        if (release && isAsked(release) && isNamed(release) && isCurrent()) return release;
      }
      const found = (await list()).filter(isAsked);
      return found.find(isNamed) ?? found[0];
    },
    isCurrent: (asked) => isHeld(entries.values(), asked),
    isEmpty: async () =>
      ![...entries.values()].some(({ release }) => release) && (await list()).length === 0,
    hasPlaces: places.length > 0,
    isPartial: () => [...entries.values()].some(isAway),
    isReady: async () =>
      (await settle()).some(({ release, failedAt }) => release && failedAt === undefined),
    close: () => bases.close(),
  };
}

/** True if an entry still has this ISO at its place. */
function isHeld(entries: Iterable<Entry>, asked: Release): boolean {
  for (const { release, isCurrent } of entries) if (release === asked) return isCurrent();
  return false;
}

/** Creates a lister; an unreadable place is empty, and each new reason is reported. */
function createLister(options: Options): (place: string) => Promise<readonly Candidate[]> {
  const told = new Map<string, ReadonlySet<string>>();
  return async (place) => {
    const warnings = new Set<string>();
    const skip = (path: string, error: unknown): void => {
      warnings.add(`${path} is not served: ${explainPlace(error)}`);
    };
    const found = await listCandidates(place, { ...options, skip }).catch((error: unknown) => {
      skip(place, error);
      return [];
    });
    for (const each of warnings) if (!told.get(place)?.has(each)) options.warn(each);
    told.set(place, warnings);
    return found;
  };
}

/** Creates a warning, given once, about two ISOs that claim the same release. */
function createTwinWarning(warn: Options['warn']): (releases: readonly Release[]) => void {
  const told = new Set<string>();
  return (releases) => {
    const first = new Map<string, Release>();
    for (const release of releases) {
      const what = `${release.version} for ${release.architecture}`;
      const twin = first.get(what);
      if (!twin) first.set(what, release);
      else {
        const warning = `${twin.base.name} and ${release.base.name} are both ${what}: the first is served`;
        if (!told.has(warning)) warn(warning);
        told.add(warning);
      }
    }
  };
}
