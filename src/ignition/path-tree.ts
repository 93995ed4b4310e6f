import type { Node } from './schema.ts';

/* Owns the search for paths that are above others. */

/** Names by the names in front of them: a path may have thousands, so each of them is looked at once. */
export type PathTree = { path?: string; readonly below: Map<string, PathTree> };

export function createPathTree(nodes: readonly Pick<Node, 'path'>[]): PathTree {
  const root: PathTree = { below: new Map() };
  for (const { path } of nodes as readonly Partial<Node>[]) {
    if (!path) continue; // which is a problem of its own
    let at = root;
    for (const name of path.split('/')) {
      const next: PathTree = at.below.get(name) ?? { below: new Map() };
      at.below.set(name, next);
      at = next;
    }
    at.path = path;
  }
  return root;
}

/** The uppermost path in a tree that is above a path. */
export function findAbovePath(tree: PathTree, path: string): string | undefined {
  let at: PathTree | undefined = tree;
  for (const name of path.split('/').slice(0, -1)) {
    at = at.below.get(name);
    if (at?.path !== undefined || at === undefined) break;
  }
  return at?.path;
}
