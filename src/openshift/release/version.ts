import semver from 'semver';
import { withoutUndefined } from '../../base/lists.ts';

/** Build metadata (`+multi`) is removed: versions that differ only in it are the same release. */
export const stripBuild = (version: string): string => version.replace(/\+.*$/, '');

/** Exactly as semver 2.0.0 writes it: the library also accepts a leading `v` and blanks. */
export const isVersion = (text: string): boolean =>
  /^\d/.test(text) && text === text.trim() && semver.valid(text) !== null;

/** True for a minor release, such as `4.20`, which means its newest release. */
export const isMinorVersion = (version: string): boolean => /^\d+\.\d+$/.test(version);

/**
 * True if a payload that was named by its pullspec is the requested release. `X.Y.Z` also names its
 * candidates, nightlies and CI builds; a version with a pre-release names itself alone; `X.Y`, a request to
 * the update graph, does not restrict a pullspec. Build metadata never counts.
 */
export function isWantedVersion(wanted: string, found: string): boolean {
  if (isMinorVersion(wanted)) return true;
  const [exact, version] = [stripBuild(wanted), stripBuild(found)];
  return exact === version || exact === version.replace(/-.*$/, '');
}

/** `4.20` of `4.20`, `4.20.3` and `4.20.0-rc.1`; undefined for any other text. */
export function minorOf(version: string): string | undefined {
  return /^(\d+\.\d+)(?:$|\.\d)/.exec(version)?.[1];
}

/** `4.21` after `4.20.3`; undefined for text that is not a valid version. */
export function minorAfter(version: string): string | undefined {
  const [major, minor] = (minorOf(version) ?? '').split('.');
  return minor === undefined ? undefined : `${major}.${Number(minor) + 1}`;
}

/** Precedence of semver 2.0.0 clause 11; text that does not parse comes first, in text order. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [semver.parse(a), semver.parse(b)];
  if (left && right) return left.compare(right);
  if (left || right) return left ? 1 : -1;
  return a < b ? -1 : Number(a > b);
}

/**
 * Text after the first hyphen does not count: a nightly of 4.21.0 has everything that 4.21.0 has. False for
 * text that does not parse.
 */
export function isAtLeast(version: string, wanted: string): boolean {
  const release = semver.parse(stripBuild(version).replace(/-.*$/, ''));
  return release !== null && release.compare(wanted) >= 0;
}

/** Releases, engineering candidates and release candidates are signed. */
export const isSignedVersion = (version: string): boolean =>
  /^\d+\.\d+\.\d+(?:-(?:ec|rc)\.\d+)?$/.test(version);

export type KnownRelease = {
  /** Image as its ClusterImageSet names it. */
  readonly image: string;
  readonly version?: string;
  /** Architecture as in the tags of releases: `x86_64`. */
  readonly architecture?: string;
};

/**
 * Compares digests whenever both have one, in any registry; a tag of the form VERSION or VERSION-ARCH
 * identifies the release itself. Any other tag identifies no release.
 */
export function compareReleases(given: string, known: KnownRelease): 'same' | 'other' | 'unknown' {
  const digests = [given, known.image].map((image) => image.split('@')[1]);
  const [wanted, found] = digests;
  if (given === known.image || (wanted !== undefined && wanted === found)) return 'same';
  if (!digests.includes(undefined)) return 'other';
  return compareTags(parseTag(given), { ...parseTag(known.image), ...known });
}

function compareTags(tag: Named = {}, known: Named): 'same' | 'other' | 'unknown' {
  if (tag.version === undefined || known.version === undefined) return 'unknown';
  if (tag.version !== known.version) return 'other';
  const { architecture = 'multi' } = tag;
  return ['multi', known.architecture ?? architecture].includes(architecture) ? 'same' : 'other';
}

type Named = Pick<KnownRelease, 'version' | 'architecture'>;

const TAG = /:(\d+\.\d+\.\d[0-9A-Za-z._-]*)$/;
const SUFFIX = /-(x86_64|aarch64|ppc64le|s390x|multi)$/;

function parseTag(image: string): Named | undefined {
  const [, tag] = TAG.exec(image.split('@')[0] ?? '') ?? [];
  if (tag === undefined) return undefined;
  const [, architecture] = SUFFIX.exec(tag) ?? [];
  return { version: tag.replace(SUFFIX, ''), ...withoutUndefined({ architecture }) };
}
