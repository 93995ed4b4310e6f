import { isAlias, isMap, isScalar, isSeq, visit } from 'yaml';
import type { Alias, Document, Node, Pair, YAMLMap } from 'yaml';

export type NodePair = Pair<Node | null, Node | null>;

/** Follows aliases and merge keys (yaml.org/type/merge.html) of one document. */
export type Aliases = {
  /** The node that an alias means, undefined where there is none; any other node itself. */
  readonly follow: (node: Node | null | undefined) => Node | null | undefined;
  /** The pairs of a mapping: its own, then those that `<<` brings and that it does not have. */
  readonly listPairs: (node: YAMLMap) => readonly NodePair[];
};

/** Mappings that merge mappings that merge mappings: no file needs more. */
const MAX_MERGES = 10;

/** Costs nothing for a document without aliases. */
export function createAliases(document: Document.Parsed): Aliases {
  let targets: ReadonlyMap<Alias, Node> | undefined;
  const follow: Aliases['follow'] = (node) => {
    if (!isAlias(node)) return node;
    targets ??= resolveAll(document);
    return targets.get(node);
  };
  return { follow, listPairs: (node) => mergePairs(node, follow, MAX_MERGES) };
}

/** An alias means the node that had its anchor last before it. */
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

function mergePairs(node: YAMLMap, follow: Aliases['follow'], depth: number): readonly NodePair[] {
  const pairs = node.items as readonly NodePair[];
  if (depth === 0 || !pairs.some(isMerge)) return pairs;
  const read = pairs.map((pair) => ({ pair, sources: listSources(pair, follow) }));
  const own = read.filter(({ sources }) => sources.length === 0).map(({ pair }) => pair);
  const brought = read
    .flatMap(({ sources }) => sources)
    .flatMap((source) => mergePairs(source, follow, depth - 1));
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

/** Where nothing can be merged, `<<` is a key like any other, and so an unknown one. */
function listSources(pair: NodePair, follow: Aliases['follow']): readonly YAMLMap[] {
  if (!isMerge(pair)) return [];
  const target = follow(pair.value);
  if (isMap(target)) return [target];
  if (!isSeq(target)) return [];
  return (target.items as readonly (Node | null)[]).map(follow).filter((node) => isMap(node));
}

const nameOf = ({ key }: NodePair): string | undefined =>
  isScalar(key) ? (key.source ?? String(key.value)) : undefined;
