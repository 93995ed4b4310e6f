import { compareVersions, stripBuild } from './version.ts';
import type { UpdateGraph, UpgradeRisk } from './update-graph.ts';

/** One update of a cluster. Plain JSON. */
export type UpgradeHop = {
  readonly version: string;
  /** `registry/repository@sha256:...` */
  readonly image: string;
  /** Why the update is not recommended for every cluster; empty where it is. */
  readonly risks: readonly UpgradeRisk[];
};

/** The updates of a cluster in their order, at least one; the last is to the release of the medium. */
export type UpgradePath = {
  /** Absent where the medium is for any cluster that may be updated directly. */
  readonly from?: string;
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
 * The way with the fewest conditional updates, then the fewest updates, then the newest releases in
 * between, the last of them first. Build metadata of versions does not count.
 *
 * @returns undefined where the graph has none
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

/** By one update to each release that the graph has. */
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
 * Which of two ways to one release comes first: the cheaper one, then the one over the newer release.
 * No two ways to a release before it are kept, so that nothing further back can differ.
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

/** By the version they start from. A conditional edge counts only where no plain one exists. */
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
