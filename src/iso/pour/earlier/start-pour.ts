import { cloneFile } from '../../../base/disk/copy.ts';
import { hasFile } from '../../../base/disk/files.ts';
import type { Digest } from '../../../base/digest.ts';
import type { Layout } from '../../extent.ts';
import type { Span } from '../frontier.ts';
import { readJournal, startJournal, type Journal, type Progress } from '../journal.ts';
import { digestLayout, type PourSpan } from '../spans.ts';

/** An ISO on this machine, and what it is known to have. */
export type EarlierIso = {
  readonly path: string;
  readonly extents: ReadonlyMap<Digest, Span>;
  /** Whether a record of an earlier build stands for its bytes; else they are hashed. */
  readonly isRecorded: boolean;
};

export type StartOptions = {
  readonly layout: Layout;
  readonly earlier?: EarlierIso;
  /** A block device that takes the bytes in place of the partial output. */
  readonly device?: unknown;
  /** Whether the digest of the whole is computed even where that means reading what need not be read. */
  readonly checksum?: boolean;
  readonly warn?: (message: string) => void;
};

export type Start = { readonly journal: Journal; readonly recorded: ReadonlySet<number> };

/** Continues what an earlier run left, or else begins with a clone of an earlier ISO, or with nothing. */
export async function startPour(
  partial: string,
  options: StartOptions,
  spans: readonly PourSpan[],
): Promise<Start> {
  const path = `${partial}.journal`;
  const layout = digestLayout(options.layout);
  const achieved = await readAchieved(partial, layout, options);
  const journal = await startJournal(path, layout, achieved);
  const cloned = achieved.size > 0 ? undefined : await cloneEarlier(partial, options, spans);
  if (!cloned) return { journal, recorded: new Set() };
  await journal.close();
  const isTrusted = options.earlier?.isRecorded === true && options.checksum !== true;
  return {
    journal: await startJournal(path, layout, cloned),
    recorded: new Set(isTrusted ? cloned.keys() : []),
  };
}

async function readAchieved(
  partial: string,
  layout: Digest,
  { warn, device }: StartOptions,
): Promise<ReadonlyMap<number, Progress>> {
  const path = `${partial}.journal`;
  if (!(await hasFile(device ? path : partial))) return new Map();
  const achieved = await readJournal(path, layout);
  if (!achieved) warn?.('partial output is from different inputs; starting over');
  return achieved ?? new Map<number, Progress>();
}

/**
 * Makes the partial output a clone of the earlier ISO, where the file system can. What has its place in both is
 * noted as a prefix: a hint, which a pour that continues this one hashes and compares.
 *
 * @returns undefined where nothing was cloned
 */
async function cloneEarlier(
  partial: string,
  { earlier }: StartOptions,
  spans: readonly PourSpan[],
): Promise<Map<number, Progress> | undefined> {
  const standing = new Map<number, Progress>();
  for (const [index, span] of spans.entries()) {
    if (span.kind === 'rendered' || !earlier) continue;
    const { digest, size } = span;
    const there = earlier.extents.get(digest);
    if (there?.offset === span.offset && there.size === size) {
      standing.set(index, { kind: 'prefix', size, digest });
    }
  }
  if (!earlier || standing.size === 0) return undefined;
  return (await cloneFile(earlier.path, partial)) ? standing : undefined;
}
