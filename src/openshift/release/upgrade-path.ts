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
  readonly hops: readonly UpgradeHop[];
};

/** More than any path has hops, so that one conditional update costs more than all others together. */
const CONDITIONAL_COST = 1000;

/**
 * The way with the fewest conditional updates, then the fewest updates, then the newest releases in
 * between. Build metadata of versions does not count.
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
  const open = new Map<string, Way>([[start, { version: start, cost: 0, hops: [] }]]);
  const done = new Set<string>();
  for (;;) {
    const way = takeCheapest(open);
    if (way === undefined) return undefined;
    if (way.version === target) return way.hops;
    done.add(way.version);
    for (const next of extendWay(way, { edges, payloads })) {
      const known = open.get(next.version);
      // The newer release comes first out of `open`, so the first of equal ways passes the newer one.
      const isBetter = known === undefined || known.cost > next.cost;
      if (isBetter && !done.has(next.version)) open.set(next.version, next);
    }
  }
}

/** By one update to each release that the graph has. */
function extendWay(
  { version: start, cost, hops }: Way,
  graph: {
    readonly edges: ReadonlyMap<string, readonly Edge[]>;
    readonly payloads: ReadonlyMap<string, string>;
  },
): readonly Way[] {
  return (graph.edges.get(start) ?? []).flatMap(({ to: version, risks }) => {
    const image = graph.payloads.get(version);
    if (image === undefined) return [];
    const step = risks.length === 0 ? 1 : CONDITIONAL_COST;
    return [{ version, cost: cost + step, hops: [...hops, { version, image, risks }] }];
  });
}

function takeCheapest(open: Map<string, Way>): Way | undefined {
  const [best] = [...open.values()].sort(
    (a, b) => a.cost - b.cost || compareVersions(b.version, a.version),
  );
  if (best) open.delete(best.version);
  return best;
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
