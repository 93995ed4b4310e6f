import type { ByteRange } from '../random-access.ts';
import { damage, type StructureProblem } from './structure-problem.ts';

/** Bytes of the image that something has. An image may have half a million: about 60 bytes are kept of each. */
export type UsedExtents = {
  /** `directory` is prepended to `name`, and kept once however many names it has. */
  readonly add: (extent: ByteRange, name: string, directory?: string) => void;
  /** Says which extents overlap; files that are exactly the same extent share it. */
  readonly overlaps: () => Generator<StructureProblem>;
};

export function createUsedExtents(): UsedExtents {
  const offsets: number[] = [];
  const sizes: number[] = [];
  const names: string[] = [];
  const directories: string[] = [];
  const at = (index: number) => {
    const [offset = 0, size = 0] = [offsets[index], sizes[index]];
    return { offset, size, end: offset + size };
  };
  const pathOf = (index: number) => `${directories[index] ?? ''}${names[index] ?? ''}`;
  const overlap = (index: number, furthest: number): StructureProblem | undefined => {
    const [own, before] = [at(index), at(furthest)];
    const isShared = own.offset === before.offset && own.size === before.size;
    if (own.offset >= before.end || isShared) return undefined;
    return damage(
      `bytes ${own.offset} to ${own.end} overlap bytes ${before.offset} to ${before.end} of ${pathOf(furthest)}`,
      { path: pathOf(index), range: { offset: own.offset, size: own.size } },
    );
  };
  return {
    add({ offset, size }, name, directory = '') {
      if (size === 0) return;
      offsets.push(offset);
      sizes.push(size);
      names.push(name);
      directories.push(directory);
    },
    *overlaps() {
      const order = Uint32Array.from(offsets.keys());
      order.sort((a, b) => at(a).offset - at(b).offset || at(b).size - at(a).size);
      let [furthest = 0] = order;
      for (const index of order.subarray(1)) {
        const problem = overlap(index, furthest);
        if (problem) yield problem;
        if (at(index).end > at(furthest).end) furthest = index;
      }
    },
  };
}
