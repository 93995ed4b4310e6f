import type { IsoDirectory, IsoNode } from '../iso-node.ts';

type ReadChildren = (directory: IsoDirectory) => Promise<IsoNode[]>;

/**
 * The same function, which keeps what it has read lately: up to `limit` nodes of all directories
 * together, and the last directory however large. Paths of one registry share most of their directories.
 */
export function cacheChildren(children: ReadChildren, limit: number): ReadChildren {
  const kept = new Map<number, IsoNode[]>();
  let count = 0;
  return async (directory) => {
    const key = directory.extent.offset;
    const known = kept.get(key);
    const nodes = known ?? (await children(directory));
    count += kept.has(key) ? 0 : nodes.length;
    kept.delete(key);
    kept.set(key, nodes);
    for (const [oldest, { length }] of kept) {
      if (count <= limit || oldest === key) break;
      kept.delete(oldest);
      count -= length;
    }
    return nodes;
  };
}
