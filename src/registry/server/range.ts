import type { ByteRange } from '../store.ts';

/**
 * RFC 9110 14.1.2 and 14.2. A header that is malformed, of another unit or names several ranges is
 * ignored, which the RFC allows: the answer is then the whole file.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  if (first === '') return rangeOf(Math.max(0, size - Number(last)), size - 1, size);
  if (last !== '' && Number(last) < Number(first)) return undefined;
  return rangeOf(Number(first), last === '' ? size - 1 : Math.min(Number(last), size - 1), size);
}

const rangeOf = (start: number, end: number, size: number): ByteRange | 'unsatisfiable' =>
  start < size && start <= end ? { start, end } : 'unsatisfiable';
