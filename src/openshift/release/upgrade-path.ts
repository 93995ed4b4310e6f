import { digestOf, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';
import {
  type UpdateGraph,
  type UpgradeRisk,
  fetchUpdateGraph,
  mergeGraphs,
  type GraphAccess,
} from './update-graph.ts';
import { compareVersions, stripBuild, isSignedVersion, minorOf } from './version.ts';

/** One update of a cluster. Plain JSON. */
export type UpgradeHop = {
  readonly version: string;
  /** `registry/repository@sha256:...` */
  readonly image: string;
  /** Reasons why the update is not recommended for every cluster; empty if it is. */
  readonly risks: readonly UpgradeRisk[];
};

/** The updates of a cluster in their order, at least one; the last is to the release of the medium. */
export type UpgradePath = {
  /** Absent if the medium is for any cluster that may be updated directly. */
  readonly from?: string;
  /** Payload of the release `from`, by digest, if the update graph names it so. */
  readonly fromImage?: string;
  readonly hops: readonly UpgradeHop[];
};

type Edge = { readonly to: string; readonly risks: readonly UpgradeRisk[] };
type Way = {
  readonly version: string;
  readonly cost: number;
  /** Absent at the start. */
  readonly last?: { readonly way: Way; readonly hop: UpgradeHop };
};

/** More than any path has hops, so that one conditional update costs more than all others together. */
const CONDITIONAL_COST = 1_000_000;

/**
 * The way with the fewest conditional updates, then the fewest updates, then the newest releases in between,
 * the last of them first. Build metadata does not count. Undefined if the graph has no way.
 */
export function findUpgradePath(
  graph: UpdateGraph,
  from: string,
  to: string,
): readonly UpgradeHop[] | undefined {
  const [start, target] = [stripBuild(from), stripBuild(to)];
  const payloads = new Map(
    graph.nodes.map(({ version, payload }) => [stripBuild(version), payload]),
  );
  const edges = collectEdges(graph);
  const newest = [...payloads.keys()].sort((a, b) => compareVersions(b, a));
  const ranks = new Map(newest.map((version, rank) => [version, rank]));
  const open = new Map<string, Way>([[start, { version: start, cost: 0 }]]);
  const done = new Set<string>();
  for (;;) {
    const way = takeCheapest(open);
    if (way === undefined) return undefined;
    if (way.version === target) return listHops(way);
    done.add(way.version);
    for (const next of extendWay(way, { edges, payloads })) {
      const known = open.get(next.version);
      const isFirst = known === undefined || compareWays(next, known, ranks) < 0;
      if (isFirst && !done.has(next.version)) open.set(next.version, next);
    }
  }
}

/** Extends a way by one update to each release that the graph has. */
function extendWay(
  way: Way,
  graph: {
    readonly edges: ReadonlyMap<string, readonly Edge[]>;
    readonly payloads: ReadonlyMap<string, string>;
  },
): readonly Way[] {
  return (graph.edges.get(way.version) ?? []).flatMap(({ to: version, risks }) => {
    const image = graph.payloads.get(version);
    if (image === undefined) return [];
    const step = risks.length === 0 ? 1 : CONDITIONAL_COST;
    return [{ version, cost: way.cost + step, last: { way, hop: { version, image, risks } } }];
  });
}

/**
 * The cheaper way to a release, then the one over the newer. There is only one way to each earlier release,
 * so nothing further back can differ.
 */
function compareWays(a: Way, b: Way, ranks: ReadonlyMap<string, number>): number {
  const rankOf = ({ last }: Way): number => ranks.get(last?.way.version ?? '') ?? Infinity;
  return a.cost - b.cost || (rankOf(a) < rankOf(b) ? -1 : 1);
}

function takeCheapest(open: Map<string, Way>): Way | undefined {
  let best: Way | undefined;
  for (const way of open.values()) {
    if (best === undefined || way.cost < best.cost) best = way;
  }
  if (best) open.delete(best.version);
  return best;
}

function listHops(end: Way): readonly UpgradeHop[] {
  const hops: UpgradeHop[] = [];
  for (let { last } = end; last !== undefined; { last } = last.way) hops.push(last.hop);
  return hops.reverse();
}

/** Edges by the version they start from. A conditional edge counts only if no plain one exists. */
function collectEdges({ edges, conditionalEdges }: UpdateGraph): ReadonlyMap<string, Edge[]> {
  const found = new Map<string, Map<string, Edge>>();
  for (const { from, to, risks } of [
    ...edges.map((e) => ({ ...e, risks: [] })),
    ...conditionalEdges,
  ]) {
    const start = stripBuild(from);
    const own = found.get(start) ?? new Map<string, Edge>();
    found.set(start, own);
    const version = stripBuild(to);
    if (!own.has(version)) own.set(version, { to: version, risks });
  }
  return new Map([...found].map(([from, own]) => [from, [...own.values()]]));
}

export type WantedUpgrade = {
  readonly from: string;
  readonly release: { readonly version: string; readonly reference: Reference };
  /** Channel without a minor version. */
  readonly channel: string;
};

/**
 * Asks the channel of the target's minor version and of the minor versions below, down to the cluster's.
 *
 * @throws ConfigError `upgrade.no-path`, `upgrade.not-newer`, `upgrade.not-in-graph`, and the
 * errors of the graph
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
  const fromImage = graph.nodes.find((node) => isSameRelease(node.version, from))?.payload;
  return {
    from,
    ...(fromImage !== undefined && parseReference(fromImage).digest !== undefined && { fromImage }),
    hops: [...hops.slice(0, -1), target],
  };
}

const isSameRelease = (a: string, b: string): boolean => stripBuild(a) === stripBuild(b);

/**
 * Over a major version: down to its first, and the minor version of `from`, because the last one of the major
 * version before is not known here.
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
      hint: `leave out --from: the ISO then carries only ${target}, to which "oc adm upgrade --allow-explicit-upgrade --force" upgrades a cluster`,
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

/**
 * Names other than tags whose digest can change later. They are recorded and resolved again in these words:
 *
 * | words                         | digest of                             |
 * | ----------------------------- | ------------------------------------- |
 * | `release 4.21 of stable`      | the payload that the update graph has |
 * | `path from A to B of CHANNEL` | the path, see `digestOfPath`          |
 * | `live ISO of https://...`     | the ISO that the CoreOS stream names  |
 */
export type NotedName =
  | { readonly kind: 'release'; readonly version: string; readonly channel: string }
  | { readonly kind: 'path'; readonly from: string; readonly to: string; readonly channel: string }
  | { readonly kind: 'live-iso' };

export const noteOfRelease = (version: string, channel: string): string =>
  `release ${version} of ${channel}`;

export const noteOfPath = (from: string, to: string, channel: string): string =>
  `path from ${from} to ${to} of ${channel}`;

/** The note of a stream, without the password of the address. */
export const noteOfStream = (url: string): string => `live ISO of ${redactUrl(new URL(url))}`;

/** The payload that the cluster leaves is not carried, so it does not count. */
export const digestOfPath = ({ from, hops }: UpgradePath): Digest =>
  digestOf(formatCanonicalJson({ from, hops }));

/** Undefined for the reference of an image. */
export function parseNotedName(name: string): NotedName | undefined {
  const [, version, ofRelease] = /^release (\S+) of (\S+)$/.exec(name) ?? [];
  if (version !== undefined && ofRelease !== undefined) {
    return { kind: 'release', version, channel: ofRelease };
  }
  const [, from, to, channel] = /^path from (\S+) to (\S+) of (\S+)$/.exec(name) ?? [];
  if (from !== undefined && to !== undefined && channel !== undefined) {
    return { kind: 'path', from, to, channel };
  }
  return name.startsWith('live ISO of ') ? { kind: 'live-iso' } : undefined;
}
