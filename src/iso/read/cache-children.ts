import type { IsoDirectory, IsoNode } from './node.ts';

type ReadChildren = (directory: IsoDirectory) => Promise<IsoNode[]>;

/**
 * The same function with a cache of the directories that were read last: up to `limit` nodes in all, and the
 * last directory regardless of its size. Paths of one registry share most of their directories.
 */
export function cacheChildren(children: ReadChildren, limit: number): ReadChildren {
  const cached = new Map<number, IsoNode[]>();
  let count = 0;
  return async (directory) => {
    const key = directory.extent.offset;
    const known = cached.get(key);
    const nodes = known ?? (await children(directory));
    count += cached.has(key) ? 0 : nodes.length;
    cached.delete(key);
    cached.set(key, nodes);
    for (const [oldest, { length }] of cached) {
      if (count <= limit || oldest === key) break;
      cached.delete(oldest);
      count -= length;
    }
    return nodes;
  };
}
