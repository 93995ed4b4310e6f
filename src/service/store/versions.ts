import { compareVersions, isMinorVersion } from '../../openshift/release/version.ts';
import { ApiFailure } from '../openapi.ts';
import type { Releases } from './releases.ts';
import type { Release } from './entry.ts';

/* Owns what an `openshift_version` means in this store. */

/** A version and an architecture; an absent version is the newest. */
export type AskedRelease = {
  readonly version: string | undefined;
  readonly architecture: string;
};

type Named = Pick<Release, 'version' | 'architecture'>;

/**
 * Finds the version that is meant: itself, or the newest of a minor version such as `4.21`, releases before
 * candidates; undefined if the store has no such version.
 */
export function findMeant(all: readonly Named[], asked: string | undefined): string | undefined {
  const versions = all.map(({ version }) => version);
  if (asked === undefined) return newestOf(versions);
  if (versions.includes(asked) || !isMinorVersion(asked)) {
    return versions.find((version) => version === asked);
  }
  return newestOf(versions.filter((version) => version.startsWith(`${asked}.`)));
}

/**
 * Finds the version of the medium that a client asks for; no version if no store is named, or if part of it
 * cannot be read, which is a warning.
 */
export async function requireMeant(
  releases: Pick<Releases, 'list' | 'isPartial' | 'hasPlaces'>,
  { version, architecture }: AskedRelease,
): Promise<{ readonly version?: string; readonly warning?: string }> {
  const all = await releases.list();
  const meant = findMeant(
    all.filter((each) => each.architecture === architecture),
    version,
  );
  if (meant !== undefined) return { version: meant };
  if (!releases.hasPlaces) return {}; // only records are kept
  if (releases.isPartial()) return { warning: 'part of the store cannot be read now' };
  throw new ApiFailure(400, explainAbsent(all, { version, architecture }));
}

function explainAbsent(all: readonly Named[], { version, architecture }: AskedRelease): string {
  const name = GO_NAMES[architecture] ?? architecture;
  if (version === undefined) {
    return `Failed to get latest OS image for architecture ${name}: No OS images are available`;
  }
  const what = `No OS image for Openshift version ${version} and architecture ${name}: The requested`;
  const missing = all.some((each) => each.architecture === architecture)
    ? `OS image for version (${version}) and CPU architecture (${name})`
    : `CPU architecture (${name})`;
  return `${what} ${missing} isn't specified in OS images list`;
}

/** The one name of Go's that assisted-service has in its words. */
const GO_NAMES: Readonly<Record<string, string>> = { aarch64: 'arm64' };

/** The newest of some versions; one that is not of a candidate, if there is one. */
export function newestOf(versions: readonly string[]): string | undefined {
  const released = versions.filter((version) => !version.includes('-'));
  return (released.length > 0 ? released : versions).toSorted(compareVersions).at(-1);
}
