import { ConfigError } from '../../base/errors.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { Stage, StageContext } from '../../engine/stage.ts';
import type { RpmArchitecture } from '../../openshift/release/release-bundle.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import {
  fetchUpdateGraph,
  mergeGraphs,
  type UpdateGraph,
} from '../../openshift/release/update-graph.ts';
import { findUpgradePath, type UpgradePath } from '../../openshift/release/upgrade-path.ts';
import {
  compareVersions,
  isSignedVersion,
  minorOf,
  stripBuild,
} from '../../openshift/release/version.ts';
import { formatReference } from '../../registry/reference.ts';

export type PlanUpgradePathInput = {
  /** The version that the cluster has. */
  readonly from: string;
  /** The one it is upgraded to. */
  readonly release: Release;
  /** Without a minor version. */
  readonly channel: string;
  readonly arch: RpmArchitecture;
  /** UPDATE_URL_OVERRIDE, where it is set. */
  readonly graphUrl?: string;
};

type Tools = { readonly http: Http; readonly tls?: TlsOptions };

/**
 * The releases that a cluster passes on its way, by the update graph as it is now: by the channel of
 * the target's minor version and those of the minor versions below, down to that of the cluster.
 *
 * @throws ConfigError `upgrade.no-path`, `upgrade.not-newer`, `upgrade.not-in-graph`, and what the graph throws
 */
export const planUpgradePath: Stage<PlanUpgradePathInput, UpgradePath, Tools> = {
  name: 'plan upgrade path',
  run: (input, tools, context) => planPath(input, { ...tools, ...context }),
};

async function planPath(
  input: PlanUpgradePathInput,
  tools: Tools & StageContext,
): Promise<UpgradePath> {
  const { from, release } = input;
  const to = release.version;
  if (compareVersions(stripBuild(from), stripBuild(to)) >= 0) throw notNewer(from, to);
  const channels = listMinors(from, to).map((minor) => `${input.channel}-${minor}`);
  const graphs = await Promise.all(channels.map((channel) => fetchChannel(channel, input, tools)));
  const graph = mergeGraphs(graphs);
  const hops = findUpgradePath(graph, from, to);
  const last = hops?.at(-1);
  if (!hops || !last) throw noPath(input, { graph, channels });
  // The configuration may name the payload of another registry than the graph.
  const target = { ...last, version: to, image: formatReference(release.reference) };
  return { from, hops: [...hops.slice(0, -1), target] };
}

const fetchChannel = (
  channel: string,
  { arch, graphUrl }: PlanUpgradePathInput,
  { http, tls, signal }: Tools & StageContext,
): Promise<UpdateGraph> =>
  fetchUpdateGraph(channel, {
    http,
    arch,
    signal,
    ...withoutUndefined({ url: graphUrl, tls }),
  });

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
  { from, release }: PlanUpgradePathInput,
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
