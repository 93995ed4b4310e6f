import type { Journal } from './journal.ts';
import { createPace, type Pace } from './pace.ts';
import { pourRendered, pourStored } from './pour-span.ts';
import {
  beginPour,
  countStalled,
  isStanding,
  next,
  type PourState,
  type Task,
} from './schedule.ts';
import type { LaneTools } from './lane.ts';
import type { PourSpan } from './spans.ts';

/** How often the loop looks at its pace and its clock while nothing else happens. */
const TICK_MS = 200;

export type PourWork = {
  readonly spans: readonly PourSpan[];
  readonly journal: Journal;
  /** Spans that stand in the output by a record of an earlier build: nothing is done about them. */
  readonly recorded?: ReadonlySet<number>;
  /** Most lanes that pour at a time. */
  readonly lanes: number;
  readonly pace?: Pace;
};

/**
 * Pours all spans: asks what is next, begins it, and waits for whatever happens first. The first
 * failure, or the signal of the tools, stops the lanes; the loop ends when they have.
 *
 * @param stop aborts the signal of the tools
 * @throws the first failure, or the signal's reason
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

/** What all lanes share. */
export type PourTools = Omit<LaneTools, 'waiting'>;

type Loop = {
  readonly state: PourState;
  readonly pour: (task: Task) => void;
  readonly commit: () => void;
  /** Resolves when the state changed, or the clock ticked. */
  readonly change: () => Promise<void>;
  readonly wake: () => void;
  readonly onAbort: () => void;
};

/** Begins what a step says, and changes the state when it ends. */
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
