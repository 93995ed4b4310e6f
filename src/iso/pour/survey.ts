import type { Digest } from '../../base/digest.ts';
import { readAllocated } from '../../base/disk/files.ts';
import type { Layout } from '../extent.ts';
import { readJournal } from './journal.ts';
import { digestLayout, planSpans } from './spans.ts';

/** What an interrupted pour of this layout left. */
export type Standing = {
  /** Bytes of each blob, by digest, that need not be fetched again. */
  readonly blobs: ReadonlyMap<Digest, number>;
  /** Bytes of disk that the partial output has taken. */
  readonly allocated: number;
};

/** Reads the journal beside an output; changes nothing. */
export async function surveyPartial(layout: Layout, output: string): Promise<Standing> {
  const partial = `${output}.partial`;
  const achieved = await readJournal(`${partial}.journal`, digestLayout(layout));
  const blobs = new Map<Digest, number>();
  for (const [index, span] of planSpans(layout).entries()) {
    const progress = achieved?.get(index);
    if (!progress || span.kind === 'rendered' || span.extent.source.kind !== 'blob') continue;
    blobs.set(span.digest, progress.kind === 'done' ? span.size : progress.size);
  }
  return { blobs, allocated: await readAllocated(partial) };
}
