import { IntegrityError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import { bringVerified, type Attempt, type Wrong } from '../../base/download/sources.ts';
import type { Source } from '../../base/download/sources.ts';
import { untilAborted } from '../../base/wait.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Extent } from '../extent.ts';
import type { LaneTools, Reused } from './lane.ts';
import { SpanWriter } from './span-writer.ts';
import type { PourSpan } from './spans.ts';

type StoredSpan = Extract<PourSpan, { kind: 'stored' }>;

/** Writes rendered bytes and padding. */
export async function pourRendered(
  span: Extract<PourSpan, { kind: 'rendered' }>,
  index: number,
  tools: LaneTools,
): Promise<void> {
  const writer = new SpanWriter({ index, span, tools });
  for (const { source, size } of span.extents) {
    await writer.add(source.kind === 'bytes' ? source.bytes : new Uint8Array(size));
  }
  await writer.end();
  tools.frontier.verify(index);
}

/**
 * Brings one blob or base extent into the output, verified: what an earlier run left is hashed and
 * compared, the rest comes from the sources (`bringVerified`).
 *
 * @throws IntegrityError `extent.wrong-digest`; whatever the opener throws; the signal's reason
 */
export async function pourStored(
  { span, index, reused }: Omit<Bringing, 'attempt'>,
  tools: LaneTools,
): Promise<void> {
  await bringVerified((attempt) =>
    bring({ span, index, reused: attempt.usePrefix ? reused : undefined, attempt }, tools),
  );
  tools.frontier.verify(index);
}

type Bringing = {
  readonly span: StoredSpan;
  readonly index: number;
  readonly reused: Reused | undefined;
  readonly attempt: Attempt;
};

/** Wrong bytes are taken back; after any other error the pour ends, and what has come stays. */
async function bring(bringing: Bringing, tools: LaneTools): Promise<Wrong | undefined> {
  const { span, index } = bringing;
  const { signal, frontier } = tools;
  const hash = tools.hasher.open();
  const writer = new SpanWriter({ index, span, tools, hash });
  const takeBack = (): void => {
    frontier.restart(index);
    tools.onBytes(-writer.position);
  };
  try {
    await untilAborted(fill(bringing, writer, tools), signal);
    if (writer.isTrusted) {
      hash.close();
      return undefined;
    }
    const digest = await hash.digest();
    if (digest === span.digest) return undefined;
    takeBack();
    const { used, hasPrefix } = writer;
    return { used, hasPrefix, error: explainWrong(span.extent, digest, used) };
  } catch (error) {
    await writer.abandon({ salvage: !(error instanceof IntegrityError) });
    hash.close();
    if (!signal.aborted) takeBack();
    throw error;
  }
}

async function fill(
  { span, reused, attempt }: Bringing,
  writer: SpanWriter,
  tools: LaneTools,
): Promise<void> {
  if ((!reused || (await writer.reuse(reused))) && writer.position < span.size) {
    const { signal, waiting, counters } = tools;
    waiting.since = performance.now();
    const onFetched = (size: number): void => {
      counters.fetched += size;
      waiting.since = performance.now();
    };
    const options = { ...attempt, offset: writer.position, signal, onFetched };
    const opened = await tools.openExtent(span.extent, options);
    if (opened.kind === 'file') {
      if (opened.isRecorded === true && writer.position === 0) writer.trust();
      await writer.copyFile(opened);
    } else await writer.copyStream(opened.chunks);
  }
  await writer.end();
}

export function explainWrong(
  { offset, paths, digest }: Pick<Extent, 'offset' | 'paths' | 'digest'>,
  found: Digest,
  used: ReadonlySet<Source>,
): IntegrityError {
  const what = paths[0] ?? `extent at byte ${offset}`;
  const from = [...used].map(({ name }) => name).join(', ') || 'nobody';
  return new IntegrityError(
    'extent.wrong-digest',
    `${what} should be ${digest ?? 'known by digest'}, but ${from} gave ${found}`,
    {
      ...withoutUndefined({ expected: digest }),
      found,
      hint: 'compare the mirrors with the origin, or run again later',
    },
  );
}
