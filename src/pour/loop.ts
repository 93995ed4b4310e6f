import type { Digest } from '../base/digest.ts';
import { bringVerified } from '../base/download/bring-verified.ts';
import { type Attempt, type Wrong, type Source } from '../base/download/sources.ts';
import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { untilAborted } from '../base/wait.ts';
import type { Extent } from '../iso/index.ts';
import { BUFFER_SIZE } from './output-file.ts';
import { createPace, type Pace } from './pace.ts';
import {
  beginPour,
  countStalled,
  isStanding,
  next,
  type PourState,
  type Task,
} from './schedule.ts';
import { HOLE_SIZE, SpanWriter } from './span-writer.ts';
import type { LaneTools, Reused, PourSpan } from './spans.ts';
import type { Journal } from './journal.ts';

type StoredSpan = Extract<PourSpan, { kind: 'stored' }>;

export type PourWork = {
  readonly spans: readonly PourSpan[];
  readonly journal: Journal;
  /** Spans that are in the output according to a record of an earlier build: they are skipped. */
  readonly recorded?: ReadonlySet<number>;
  readonly lanes: number;
  readonly pace?: Pace;
};

export type PourTools = Omit<LaneTools, 'waiting'>;

/**
 * Pours all spans: asks the schedule for the next step, begins it, and waits for the first event. The first
 * failure, or the signal of the tools, stops the lanes; the loop ends when they have.
 *
 * @param stop aborts the signal of the tools
 */
export async function runPour(work: PourWork, tools: PourTools, stop: AbortController) {
  const { pace = createPace(work.lanes) } = work;
  const loop = createLoop(work, tools, stop);
  const tick = setInterval(() => {
    loop.wake();
  }, TICK_MS);
  tools.signal.addEventListener('abort', loop.onAbort);
  try {
    if (tools.signal.aborted) loop.onAbort();
    for (;;) {
      const now = performance.now();
      const allowed = pace.allow(() => tools.frontier.wasShort());
      const lanes = Math.min(work.lanes, allowed + countStalled(loop.state, now));
      const step = next(loop.state, lanes, now);
      if (step.kind === 'pour') loop.pour(step.task);
      else if (step.kind === 'commit') loop.commit();
      else if (step.kind === 'wait') await loop.change();
      else if (loop.state.failure) throw loop.state.failure.reason;
      else return;
    }
  } finally {
    clearInterval(tick);
    tools.signal.removeEventListener('abort', loop.onAbort);
  }
}

type Loop = {
  readonly state: PourState;
  readonly pour: (task: Task) => void;
  readonly commit: () => void;
  /** Resolves when the state changed, or the clock ticked. */
  readonly change: () => Promise<void>;
  readonly wake: () => void;
  readonly onAbort: () => void;
};

/** Milliseconds between two looks at pace and clock while nothing else happens. */
const TICK_MS = 200;

/** Begins the work of a step, and updates the state when it ends. */
function createLoop(
  { spans, journal, recorded = new Set() }: PourWork,
  tools: PourTools,
  stop: AbortController,
): Loop {
  const state = beginPour(spans, { journal, recorded }, performance.now());
  let wake = (): void => undefined;
  const fail = (reason: unknown): void => {
    state.failure ??= { reason };
    stop.abort(reason);
  };
  const begin = (work: Promise<unknown>, onEnd: () => void): void => {
    void work.catch(fail).finally(() => {
      onEnd();
      wake();
    });
  };
  for (const index of recorded) tools.frontier.verify(index);
  begin(
    tools.frontier.finished.then(() => (state.isDigested = true)),
    () => undefined,
  );
  return {
    state,
    pour(task) {
      (isStanding(task) ? state.standing : state.missing).shift();
      state.running.add(task);
      begin(
        pourTask(task, tools).then(() => state.verified.push(task.index)),
        () => state.running.delete(task),
      );
    },
    commit() {
      const verified = state.verified.splice(0);
      state.isCommitting = true;
      begin(
        tools.output.sync().then(() => journal.noteDone(verified)),
        () => {
          state.isCommitting = false;
          state.committedAt = performance.now();
        },
      );
    },
    change: () => new Promise((resolve) => (wake = resolve)),
    wake: () => {
      wake();
    },
    onAbort: () => {
      fail(tools.signal.reason);
      wake();
    },
  };
}

function pourTask(task: Task, pour: PourTools): Promise<void> {
  const { index, span, reused, waiting } = task;
  const tools: LaneTools = { ...pour, waiting };
  if (span.kind === 'rendered') return pourRendered(span, index, tools);
  const work = (): Promise<void> => pourStored({ span, index, reused }, tools);
  return isStanding(task) ? tools.frontier.whileCatchingUp(work) : work();
}

async function pourRendered(
  span: Extract<PourSpan, { kind: 'rendered' }>,
  index: number,
  tools: LaneTools,
): Promise<void> {
  const writer = new SpanWriter({ index, span, tools });
  for (const { source, size } of span.extents) {
    if (source.kind === 'bytes') await writer.add(source.bytes);
    else if (size < HOLE_SIZE) await writer.add(new Uint8Array(size));
    else await addZeros(size, writer);
  }
  await writer.end();
  tools.frontier.verify(index);
}

/** Padding of a disk image may be larger than memory. */
async function addZeros(size: number, writer: SpanWriter): Promise<void> {
  const zeros = new Uint8Array(Math.min(size, BUFFER_SIZE));
  await writer.cut();
  for (let done = 0; done < size; done += zeros.length) {
    await writer.add(zeros.subarray(0, Math.min(zeros.length, size - done)));
  }
  await writer.cut();
}

/**
 * Writes one blob or base extent to the output, verified: bytes of an earlier run are hashed and
 * compared, the rest comes from the sources (`bringVerified`).
 */
async function pourStored(
  { span, index, reused }: Omit<Bringing, 'attempt'>,
  tools: LaneTools,
): Promise<void> {
  await bringVerified(
    (attempt) =>
      bring({ span, index, reused: attempt.usePrefix ? reused : undefined, attempt }, tools),
    tools.signal,
  );
  tools.frontier.verify(index);
}

type Bringing = {
  readonly span: StoredSpan;
  readonly index: number;
  readonly reused: Reused | undefined;
  readonly attempt: Attempt;
};

/** Wrong bytes are taken back; after any other error the pour ends, and the bytes so far stay. */
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
  const from = [...used].map(({ name }) => name).join(', ') || 'an unknown source';
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
