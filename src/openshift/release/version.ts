import semver from 'semver';

/** Versions are the same release whatever their build metadata (`+multi`) says. */
export const stripBuild = (version: string): string => version.replace(/\+.*$/, '');

/** A version as semver 2.0.0 writes it, to the letter: the library also takes a leading `v` and blanks. */
export const isVersion = (text: string): boolean =>
  /^\d/.test(text) && text === text.trim() && semver.valid(text) !== null;

/** `4.20`: a minor release, of which the newest is meant. */
export const isMinorVersion = (version: string): boolean => /^\d+\.\d+$/.test(version);

/**
 * Whether a payload that was named by its pullspec is the release that was asked for. `X.Y.Z` also names
 * the candidates, nightlies and CI builds of X.Y.Z; a version with a pre-release names itself alone; and
 * `X.Y`, an order to the update graph, says nothing about a pullspec. Build metadata never counts.
 */
export function isWantedVersion(wanted: string, found: string): boolean {
  if (isMinorVersion(wanted)) return true;
  const [exact, version] = [stripBuild(wanted), stripBuild(found)];
  return exact === version || exact === version.replace(/-.*$/, '');
}

/** `4.20` of `4.20`, `4.20.3` and `4.20.0-rc.1`; undefined for what is not a valid version. */
export function minorOf(version: string): string | undefined {
  return /^(\d+\.\d+)(?:$|\.\d)/.exec(version)?.[1];
}

/** Precedence of semver 2.0.0 clause 11; what does not parse comes first, in text order. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [semver.parse(a), semver.parse(b)];
  if (left && right) return left.compare(right);
  if (left || right) return left ? 1 : -1;
  return a < b ? -1 : Number(a > b);
}

/**
 * Whether a version's numbers are at least these. What follows the first hyphen does not count: a
 * nightly of 4.21.0 has what 4.21.0 has. Nothing is claimed of what does not parse.
 */
export function isAtLeast(version: string, wanted: string): boolean {
  const release = semver.parse(stripBuild(version).replace(/-.*$/, ''));
  return release !== null && release.compare(wanted) >= 0;
}

/** Whether a version is a release, an engineering candidate or a release candidate: those are signed. */
export const isSignedVersion = (version: string): boolean =>
  /^\d+\.\d+\.\d+(?:-(?:ec|rc)\.\d+)?$/.test(version);
