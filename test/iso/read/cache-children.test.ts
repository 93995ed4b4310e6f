import { describe, expect, it } from 'vitest';
import { cacheChildren } from '../../../src/iso/read/cache-children.ts';
import type { IsoDirectory, IsoNode } from '../../../src/iso/read/node.ts';

const directoryAt = (offset: number): IsoDirectory => ({
  kind: 'directory',
  name: `at ${offset}`,
  isoIdentifier: Uint8Array.of(65),
  mode: 0o40755,
  uid: 0,
  gid: 0,
  modifiedAt: undefined,
  records: [],
  extent: { offset, size: 2048 },
});

/** A directory at n has n children; `read` says which were read. */
function makeReader(): { children: (of: IsoDirectory) => Promise<IsoNode[]>; read: number[] } {
  const read: number[] = [];
  const children = ({ extent }: IsoDirectory): Promise<IsoNode[]> => {
    read.push(extent.offset);
    return Promise.resolve(Array.from({ length: extent.offset }, (_, index) => directoryAt(index)));
  };
  return { children, read };
}

describe('directories that were read recently', () => {
  it('are not read again until too many others were', async () => {
    const { children, read } = makeReader();
    const cached = cacheChildren(children, 10);
    for (const offset of [3, 4, 3, 4, 3]) {
      expect(await cached(directoryAt(offset))).toHaveLength(offset);
    }
    expect(read).toEqual([3, 4]);
    await cached(directoryAt(5)); // 12 nodes: 4, the one not asked for lately, has to go
    await cached(directoryAt(3));
    expect(read).toEqual([3, 4, 5]);
    await cached(directoryAt(4));
    expect(read).toEqual([3, 4, 5, 4]);
  });

  it('include the last one even when it is larger than the limit', async () => {
    const { children, read } = makeReader();
    const cached = cacheChildren(children, 10);
    for (const offset of [2, 100, 100, 2]) await cached(directoryAt(offset));
    expect(read).toEqual([2, 100, 2]);
  });

  it('are read again after an error', async () => {
    let calls = 0;
    const cached = cacheChildren(() => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Error('first')) : Promise.resolve([]);
    }, 10);
    await expect(cached(directoryAt(1))).rejects.toThrow('first');
    expect(await cached(directoryAt(1))).toEqual([]);
  });

  it('are counted once when two readers request them at the same time', async () => {
    const { children, read } = makeReader();
    const cached = cacheChildren(children, 10);
    await Promise.all([6, 6, 6].map((offset) => cached(directoryAt(offset))));
    await cached(directoryAt(4));
    read.length = 0;
    await cached(directoryAt(6));
    expect(read).toEqual([]);
  });
});
