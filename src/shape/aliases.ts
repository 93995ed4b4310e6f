import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml';

/* Owns the meaning of aliases and merge keys. */

export type NodePair = Pair<Node | null, Node | null>;

/** Follows aliases and merge keys (yaml.org/type/merge.html) of one document. */
export type Aliases = {
  /** The node that an alias means, undefined if there is no such node; any other node itself. */
  readonly follow: (node: Node | null | undefined) => Node | null | undefined;
  /** The pairs of a mapping: its own, then the pairs from `<<` that it lacks. */
  readonly listPairs: (node: YAMLMap) => readonly NodePair[];
};

/** Levels of mappings that merge mappings: no file needs more. */
const MAX_MERGES = 10;

/**
 * Creates the reader of aliases; it costs nothing for a document without aliases.
 *
 * @param hasMerges false: `<<` is a key like any other
 */
export function createAliases(document: Document.Parsed, hasMerges = true): Aliases {
  let targets: ReadonlyMap<Alias, Node> | undefined;
  const follow: Aliases['follow'] = (node) => {
    if (!isAlias(node)) return node;
    targets ??= resolveAll(document);
    return targets.get(node);
  };
  // Remembered: mappings that merge each other many times would double the work on each level.
  const merged: Map<YAMLMap, Pairs>[] = [];
  const listPairs = (node: YAMLMap, depth: number): Pairs => {
    const own = node.items as Pairs;
    if (depth === 0 || !own.some(isMerge)) return own;
    const ofDepth = (merged[depth] ??= new Map());
    const below = (source: YAMLMap): Pairs => listPairs(source, depth - 1);
    const pairs = ofDepth.get(node) ?? mergePairs(own, follow, below);
    ofDepth.set(node, pairs);
    return pairs;
  };
  const mergePairsOf = (node: YAMLMap): Pairs => listPairs(node, hasMerges ? MAX_MERGES : 0);
  return { follow, listPairs: mergePairsOf };
}

/** Resolves aliases. An alias means the node that had its anchor last before it. */
function resolveAll(document: Document.Parsed): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Alias(_key, alias) {
      const target = anchors.get(alias.source);
      if (target) targets.set(alias, target);
    },
    Value(_key, node) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}

type Pairs = readonly NodePair[];

/** @param listBelow lists the pairs of a merged mapping */
function mergePairs(
  pairs: Pairs,
  follow: Aliases['follow'],
  listBelow: (source: YAMLMap) => Pairs,
): Pairs {
  const read = pairs.map((pair) => ({ pair, sources: listSources(pair, follow) }));
  const own = read.filter(({ sources }) => sources.length === 0).map(({ pair }) => pair);
  const brought = read.flatMap(({ sources }) => sources).flatMap(listBelow);
  const taken = new Set(own.map(nameOf));
  const added = brought.filter((pair) => {
    const name = nameOf(pair);
    if (taken.has(name)) return false;
    taken.add(name);
    return true;
  });
  return [...own, ...added];
}

const isMerge = ({ key }: NodePair): boolean =>
  isScalar(key) && key.type === 'PLAIN' && key.source === '<<';

/** The sources of a merge. If nothing can be merged, `<<` is a key like any other, and so an unknown one. */
function listSources(pair: NodePair, follow: Aliases['follow']): readonly YAMLMap[] {
  if (!isMerge(pair)) return [];
  const target = follow(pair.value);
  if (isMap(target)) return [target];
  if (!isSeq(target)) return [];
  return (target.items as readonly (Node | null)[]).map(follow).filter((node) => isMap(node));
}

const nameOf = ({ key }: NodePair): string | undefined =>
  isScalar(key) ? (key.source ?? String(key.value)) : undefined;
