import type { Header } from 'tar-stream';

/**
 * Ask it of each entry. tar-stream gives a binary size that is neither positive nor negative as null,
 * whatever its types say, and then waits for the end of the entry for ever.
 *
 * @throws what `explain` makes of the fault
 */
export function requireSize({ size }: Header, explain: (cause: Error) => unknown): void {
  if (Number.isSafeInteger(size)) return;
  throw explain(new Error('an entry has a size that is not a number'));
}
