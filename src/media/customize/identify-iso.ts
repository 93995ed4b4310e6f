import { digestOf, type Digest } from '../../base/digest.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import type { MediaIndex } from '../index/media-index.ts';

/**
 * Names every byte of a medium of ours: its index, and what its areas have instead of what the index says. Undefined for
 * media whose index has no digest.
 */
export async function identifyIso(
  { digest, mutable = [] }: MediaIndex,
  read: RandomAccess['read'],
): Promise<Digest | undefined> {
  const found: Digest[] = [];
  for (const { offset, size } of mutable) found.push(digestOf(await read(offset, size)));
  const isPristine = mutable.every((area, at) => area.digest === found[at]);
  return digest === undefined || isPristine ? digest : digestOf([digest, ...found].join('\n'));
}
