import { ConfigError } from '../../base/errors.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import {
  fetchUpdateGraph,
  mergeGraphs,
  type GraphAccess,
  type UpdateGraph,
} from './update-graph.ts';
import { findUpgradePath, type UpgradePath } from './upgrade-path.ts';
import { compareVersions, isSignedVersion, minorOf, stripBuild } from './version.ts';

/** An upgrade that the update graph is asked about. */
export type WantedUpgrade = {
  /** The version that the cluster has. */
  readonly from: string;
  /** The one it is upgraded to. */
  readonly release: { readonly version: string; readonly reference: Reference };
  /** Without a minor version. */
  readonly channel: string;
};

/**
 * The releases that a cluster passes on its way, by the update graph as it is now: by the channel of
 * the target's minor version and those of the minor versions below, down to that of the cluster.
 *
 * @throws ConfigError `upgrade.no-path`, `upgrade.not-newer`, `upgrade.not-in-graph`, and what the graph throws
 */
export async function resolveUpgradePath(
  input: WantedUpgrade,
  access: GraphAccess,
): Promise<UpgradePath> {
  const { from, release } = input;
  const to = release.version;
  if (compareVersions(stripBuild(from), stripBuild(to)) >= 0) throw notNewer(from, to);
  const channels = listMinors(from, to).map((minor) => `${input.channel}-${minor}`);
  const graphs = await Promise.all(channels.map((channel) => fetchUpdateGraph(channel, access)));
  const graph = mergeGraphs(graphs);
  const hops = findUpgradePath(graph, from, to);
  const last = hops?.at(-1);
  if (!hops || !last) throw noPath(input, { graph, channels });
  // The configuration may name the payload of another registry than the graph.
  const target = { ...last, version: to, image: formatReference(release.reference) };
  return { from, hops: [...hops.slice(0, -1), target] };
}

/**
 * From that of `to` down to that of `from`. Over a major version, down to its first, and that of `from`:
 * nobody knows here which was the last of the major version before.
 */
function listMinors(from: string, to: string): readonly string[] {
  const [first, last] = [from, to].map((version) =>
    (minorOf(version) ?? '').split('.').map(Number),
  );
  const [major, minor = 0] = last ?? [];
  const isSameMajor = first?.[0] === major;
  const lowest = isSameMajor ? (first?.[1] ?? 0) : 0;
  const count = Math.max(1, minor - lowest + 1);
  const minors = Array.from({ length: count }, (_, at) => `${major}.${minor - at}`);
  const before = isSameMajor ? undefined : minorOf(from);
  return before === undefined ? minors : [...minors, before];
}

const notNewer = (from: string, to: string): ConfigError =>
  new ConfigError('upgrade.not-newer', `release ${to} is not newer than ${from}`, {
    expected: `a release after ${from}`,
    found: to,
    hint: 'name the version of the cluster with --from, and the later release in the configuration',
  });

const notInGraph = (missing: string, target: string): ConfigError =>
  new ConfigError(
    'upgrade.not-in-graph',
    `${missing} is a nightly or CI build, which the update graph does not have`,
    {
      expected: 'a released version',
      found: missing,
      hint: `leave --from out: the ISO carries ${target} alone, and a cluster takes it with "oc adm upgrade --allow-explicit-upgrade --force"`,
    },
  );

function noPath(
  { from, release }: WantedUpgrade,
  { graph, channels }: { readonly graph: UpdateGraph; readonly channels: readonly string[] },
): ConfigError {
  const versions = new Set(graph.nodes.map(({ version }) => stripBuild(version)));
  const missing = [from, release.version].find((version) => !versions.has(stripBuild(version)));
  if (missing !== undefined && !isSignedVersion(stripBuild(missing))) {
    return notInGraph(missing, release.version);
  }
  const names = channels.join(', ');
  return new ConfigError(
    'upgrade.no-path',
    `the update graph has no path from ${from} to ${release.version}`,
    {
      expected: `a path in ${names}`,
      found: missing === undefined ? 'both releases, and no path' : `no release ${missing}`,
      hint: 'set ocpRelease.channel to a channel that has both releases, or choose another release',
    },
  );
}
