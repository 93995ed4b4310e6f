import { ConfigError } from '../../base/errors.ts';
import { suggestName } from '../../base/text/words.ts';
import { type Gate, type GatedUpdate, minorOfGate } from './gates.ts';
import type { Release } from './release.ts';
import type { UpgradePath } from './upgrade-path.ts';
import { minorOf } from './version.ts';

/* Gates on the path of an upgrade ISO, and the acknowledgements that a person gives in advance. */

type Carried = Pick<Release, 'version' | 'adminGates' | 'metadata'>;

/**
 * Without a version to start from, one update for each minor version that may be updated to the release.
 *
 * @param given.releases all on the medium, in the order of the path
 * @param given.left the release that the path starts from
 */
export function listGatedUpdates(given: {
  readonly path: UpgradePath;
  readonly releases: readonly Carried[];
  readonly left?: GatedUpdate['from'];
}): readonly GatedUpdate[] {
  const { path, releases, left } = given;
  const { hops } = path;
  if (left) {
    return hops.map((to, index) => ({ from: index === 0 ? left : leave(releases[index - 1]), to }));
  }
  const [to, target] = [hops.at(-1), releases.at(-1)];
  if (to === undefined || target === undefined) return [];
  return listMinorsBefore(target).map((version) => ({ from: { version, problem: NO_START }, to }));
}

const NO_START = 'the version of the cluster is not given (--from)';

function leave(release: Carried | undefined): GatedUpdate['from'] {
  if (release === undefined) throw new RangeError('every release of a path is carried');
  const { version, adminGates } = release;
  return { version, adminGates };
}

/** A payload that names no versions, such as a nightly build, follows the minor version before. */
function listMinorsBefore({ version, metadata }: Carried): readonly string[] {
  const own = minorOf(version);
  const named = new Set(metadata.previous.flatMap((previous) => minorOf(previous) ?? []));
  if (named.size > 0) return [...named].filter((minor) => minor !== own);
  const [major = '', minor = '0'] = (own ?? '').split('.');
  return minor === '0' ? [] : [`${major}.${Number(minor) - 1}`];
}

/**
 * Refuses keys that no cluster on the path can ask for. Others are taken: operators add gates to running
 * clusters.
 *
 * @throws ConfigError `upgrade.no-such-gate`
 */
export function requireGates(
  keys: readonly string[],
  updates: readonly GatedUpdate[],
  gates: readonly Gate[],
): void {
  const left = updates.map(({ from, to }) => [minorOf(from.version), minorOf(to.version)] as const);
  const minors = left.filter(([from, to]) => from !== to).map(([from]) => from);
  const known = gates.flatMap(({ key }) => key ?? []);
  for (const key of keys) {
    if (known.includes(key) || minors.includes(minorOfGate(key) ?? '')) continue;
    throw new ConfigError('upgrade.no-such-gate', `no cluster on this path asks for "${key}"`, {
      expected: known.join(', ') || `a key of ${minors.join(', ') || 'an update of minor version'}`,
      found: key,
      hint:
        suggestName(key, known) ?? 'take the key from "sealift plan upgrade-iso --from VERSION"',
    });
  }
}

/** Keys among those given that are not known to be asked for. */
export const listUnknownKeys = (
  keys: readonly string[],
  gates: readonly Gate[],
): readonly string[] => keys.filter((key) => !gates.some((gate) => gate.key === key));
