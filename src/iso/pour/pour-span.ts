import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import { untilAborted } from '../../base/wait.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { ExtentSource, LaneTools, Reused } from './lane.ts';
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

/** Times that all sources are asked: bytes spoilt on the way come right the second time. */
const ROUNDS = 2;

/**
 * Brings one blob or base extent into the output: what an earlier run left is hashed and compared,
 * the rest comes from the sources in order. A source that gives wrong bytes is not asked again while
 * there is another one; when none is left, all are asked once more from byte 0.
 *
 * @throws IntegrityError `extent.wrong-digest`; whatever the opener throws; the signal's reason
 */
export async function pourStored(
  options: {
    readonly span: StoredSpan;
    readonly index: number;
    readonly reused: Reused | undefined;
  },
  tools: LaneTools,
): Promise<void> {
  const { span, index } = options;
  const refused = new Set<ExtentSource>();
  let reused = options.reused;
  let wrong: Wrong | undefined;
  for (let round = 1; ;) {
    const found = await attempt({ span, index, reused, refused }, tools).catch((error: unknown) => {
      if (wrong && error instanceof RegistryError) return { ...wrong, others: error };
      throw error;
    });
    if (found === 'right') {
      tools.frontier.verify(index);
      return;
    }
    if (reused) {
      reused = undefined; // the disk lost what the journal promised; the sources are innocent
      continue;
    }
    wrong = found;
    if (isNew(found, refused)) {
      refused.add(found.source);
      continue;
    }
    if (round === ROUNDS) throw explainWrong(span, found);
    round++;
    refused.clear();
  }
}

/** What was wrong with an attempt's bytes. */
type Wrong = {
  /** What gave the last byte, where it is known. */
  readonly source?: ExtentSource;
  readonly digest?: Digest;
  /** What the sources themselves say is wrong: too many bytes, or too few. */
  readonly error?: IntegrityError;
  /** Why no other source could be asked. */
  readonly others?: RegistryError;
};

const isNew = (
  wrong: Wrong,
  refused: ReadonlySet<ExtentSource>,
): wrong is Wrong & { source: ExtentSource } =>
  wrong.source !== undefined && wrong.others === undefined && !refused.has(wrong.source);

type Attempt = {
  readonly span: StoredSpan;
  readonly index: number;
  readonly reused: Reused | undefined;
  readonly refused: ReadonlySet<ExtentSource>;
};

/** Wrong bytes are taken back; after any other error the pour ends, and what has come stays. */
async function attempt(attempt: Attempt, tools: LaneTools): Promise<Wrong | 'right'> {
  const { span, index } = attempt;
  const { signal, frontier } = tools;
  const hash = tools.hasher.open();
  const writer = new SpanWriter({ index, span, tools, hash });
  const takeBack = (): void => {
    frontier.restart(index);
    tools.onBytes(-writer.position);
  };
  try {
    const source = await untilAborted(bring(attempt, writer, tools), signal);
    const digest = await hash.digest();
    if (digest === span.digest) return 'right';
    takeBack();
    return { digest, ...withoutUndefined({ source }) };
  } catch (error) {
    const isWrong = error instanceof IntegrityError;
    await writer.abandon({ salvage: !isWrong });
    hash.close();
    if (!signal.aborted) takeBack();
    if (!isWrong) throw error;
    return { error };
  }
}

/** Returns the source that gave the last byte; undefined where none was asked. */
async function bring(
  { span, reused, refused }: Attempt,
  writer: SpanWriter,
  tools: LaneTools,
): Promise<ExtentSource | undefined> {
  let source: ExtentSource | undefined;
  if ((!reused || (await writer.reuse(reused))) && writer.position < span.size) {
    const { signal, waiting } = tools;
    waiting.since = performance.now();
    const opened = await tools.openExtent(span.extent, {
      offset: writer.position,
      refused,
      signal,
    });
    source =
      opened.kind === 'file'
        ? await writer.copyFile(opened)
        : await writer.copyStream(opened.chunks);
  }
  await writer.end();
  return source;
}

function explainWrong(span: StoredSpan, { source, digest, error, others }: Wrong): IntegrityError {
  if (error) return error;
  return new IntegrityError(
    'extent.wrong-digest',
    `${span.extent.paths[0] ?? `extent at byte ${span.offset}`} should be ${span.digest}, ` +
      `but ${source?.name ?? 'its source'} gave ${digest ?? 'other bytes'}`,
    { expected: span.digest, ...(digest && { found: digest }), cause: others },
  );
}
