/** Positions of the first and the last byte, both inclusive, as in HTTP. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * RFC 9110 14.1.2 and 14.2. A header that is malformed, of another unit or names several ranges is
 * ignored, which the RFC allows: the answer is then the whole file.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] =
    /^bytes=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i.exec(header ?? '') ?? [];
  if (first === '') return last === '' ? undefined : rangeOf(size - Number(last), size - 1, size);
  if (last === '') return rangeOf(Number(first), size - 1, size);
  return Number(last) < Number(first) ? undefined : rangeOf(Number(first), Number(last), size);
}

/** A range may begin before the file (a long suffix) and end after it, but not be wholly outside it. */
function rangeOf(first: number, last: number, size: number): ByteRange | 'unsatisfiable' {
  const range = { start: Math.max(0, first), end: Math.min(last, size - 1) };
  return range.start <= range.end ? range : 'unsatisfiable';
}
