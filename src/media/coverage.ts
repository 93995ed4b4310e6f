import type { ByteRange } from '../base/random-access.ts';

/** Bytes of a medium that were compared with what they should be. The rest is not proven. */
export type Coverage = {
  readonly add: (ranges: Iterable<ByteRange>) => void;
  /** Takes bytes out again, in any order with `add`: they count as not compared. */
  readonly except: (ranges: Iterable<ByteRange>) => void;
  /** Counts every byte as compared, even those that were taken out: a digest of the whole is right. */
  readonly addAll: () => void;
  /** Lists the bytes up to `size` that were not compared, by offset. */
  readonly missing: (size: number) => readonly ByteRange[];
};

export function createDelivered(): Coverage {
  const added: ByteRange[] = [];
  const taken: ByteRange[] = [];
  let isAll = false;
  return {
    add(ranges) {
      for (const range of ranges) added.push(range);
    },
    except(ranges) {
      for (const range of ranges) taken.push(range);
    },
    addAll() {
      isAll = true;
    },
    missing: (size) => (isAll ? [] : join([...complementOf(added, size), ...clip(taken, size)])),
  };
}

function* complementOf(ranges: readonly ByteRange[], size: number): Generator<ByteRange> {
  let end = 0;
  for (const range of clip(ranges, size).sort(byOffset)) {
    if (range.offset > end) yield { offset: end, size: range.offset - end };
    end = Math.max(end, range.offset + range.size);
  }
  if (end < size) yield { offset: end, size: size - end };
}

const clip = (ranges: readonly ByteRange[], size: number): ByteRange[] =>
  ranges.flatMap((range) => {
    const end = Math.min(size, range.offset + range.size);
    return end > range.offset ? [{ offset: range.offset, size: end - range.offset }] : [];
  });

function join(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const joined: { offset: number; size: number }[] = [];
  for (const { offset, size } of ranges.toSorted(byOffset)) {
    const last = joined.at(-1);
    const end = last ? last.offset + last.size : -1;
    if (last && offset <= end) last.size = Math.max(end, offset + size) - last.offset;
    else joined.push({ offset, size });
  }
  return joined;
}

const byOffset = (a: ByteRange, b: ByteRange): number => a.offset - b.offset;
