/** A run of bytes. */
export type Run = { readonly offset: number; readonly size: number };

/** Room between runs; what is put there makes it smaller. */
export type Gap = { offset: number; size: number };

/** The room from `start` to `end` that runs, sorted by offset, leave. */
export function listGaps(runs: readonly Run[], start: number, end: number): Gap[] {
  const gaps: Gap[] = [];
  let at = start;
  for (const { offset, size } of runs) {
    if (offset >= end) break;
    if (offset > at) gaps.push({ offset: at, size: offset - at });
    at = Math.max(at, offset + size);
  }
  if (end > at && end !== Infinity) gaps.push({ offset: at, size: end - at });
  return gaps;
}

/** Takes `size` bytes from the start of the smallest gap that has them; returns their offset. */
export function takeBestFit(gaps: readonly Gap[], size: number): number | undefined {
  let best: Gap | undefined;
  for (const gap of gaps) if (gap.size >= size && (!best || gap.size < best.size)) best = gap;
  if (!best) return undefined;
  const { offset } = best;
  best.offset += size;
  best.size -= size;
  return offset;
}
