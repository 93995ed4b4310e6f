import type { ChannelGraph } from '../channel-graph.ts';
import { parseConstraint } from './version-constraint.ts';

export type RangeFilter = {
  /** As the user's bounds read: `>=1.2.0 <=1.4.0`. */
  readonly range: string;
  /** Of each bundle by name; names that are missing are in no range. */
  readonly versions: ReadonlyMap<string, string>;
};

export type SelectedEntries = {
  /** May hold names that are not entries of the channel. */
  readonly names: ReadonlySet<string>;
  readonly warnings: readonly string[];
};

type Node = { readonly name: string; readonly inRange: readonly string[] };

/**
 * The entries of a channel that a range selects: the shortest part of the chain that holds everything
 * in range, so that the channel stays one chain with one head. What that part needs and the range
 * does not accept is selected with a warning; of what it skips only what is in range is selected.
 */
export function filterByRange(
  graph: ChannelGraph,
  { range, versions }: RangeFilter,
): SelectedEntries {
  const constraint = parseConstraint(range);
  const accepted = new Set(
    [...versions].filter(([, version]) => constraint.accepts(version)).map(([name]) => name),
  );
  const selected = cutChain(listNodes(graph, accepted));
  const names = new Set<string>();
  const warnings: string[] = [];
  for (const { name, inRange } of selected) {
    if (!accepted.has(name)) warnings.push(describeNeeded(name, versions.get(name), range));
    for (const wanted of [name, ...inRange]) names.add(wanted);
  }
  return { names, warnings };
}

/**
 * Names of the shortest part of the chain that has these entries at or below its head and above its end;
 * may hold names that are not entries.
 */
export function keepChain(graph: ChannelGraph, wanted: ReadonlySet<string>): ReadonlySet<string> {
  const selected = cutChain(listNodes(graph, wanted));
  return new Set(selected.flatMap(({ name, inRange }) => [name, ...inRange]));
}

/** Head first. The last entry may replace what is an entry only of another channel. */
function listNodes(graph: ChannelGraph, accepted: ReadonlySet<string>): readonly Node[] {
  const nodes = graph.chain.map(({ name, skips = [] }) => ({
    name,
    inRange: [...new Set(skips)].filter((skipped) => accepted.has(skipped)),
  }));
  const beyond = graph.chain.at(-1)?.replaces ?? '';
  if (beyond !== '') nodes.push({ name: beyond, inRange: [] });
  return nodes.map((node) => ({
    ...node,
    inRange: accepted.has(node.name) ? [node.name, ...node.inRange] : node.inRange,
  }));
}

/**
 * From the lowest node that has all of the range at or below it, down to the lowest that has any.
 * A bundle counts once, at the lowest node that mentions it.
 */
function cutChain(nodes: readonly Node[]): readonly Node[] {
  const seen = new Set<string>();
  let head = 0;
  let end = 0;
  for (const [index, { inRange }] of [...nodes.entries()].reverse()) {
    const before = seen.size;
    for (const name of inRange) seen.add(name);
    if (seen.size === before) continue;
    if (before === 0) end = index + 1;
    head = index;
  }
  return nodes.slice(head, end);
}

function describeNeeded(name: string, version: string | undefined, range: string): string {
  const purpose = 'required to ensure inclusion of all bundles in the range';
  return version === undefined
    ? `including bundle "${name}": it is unversioned but is ${purpose}`
    : `including bundle "${name}" with version "${version}": it falls outside the specified range of "${range}" but is ${purpose}`;
}
