import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import {
  beginPour,
  countStalled,
  isStanding,
  next,
  type PourState,
} from '../../src/pour/schedule.ts';
import type { PourSpan } from '../../src/pour/spans.ts';

const digest = digestOf('blob');

/** Spans of one byte; those in `kept` stand whole from an earlier run. */
function begin(kept: readonly boolean[]): PourState {
  const spans = kept.map((_, offset): PourSpan => {
    const extent = { offset, size: 1, digest, source: { kind: 'blob' }, paths: [] } as const;
    return { kind: 'stored', offset, size: 1, digest, extent };
  });
  const achieved = new Map(
    [...kept.entries()].filter(([, isKept]) => isKept).map(([i]) => [i, { kind: 'done' }] as const),
  );
  const done = (): Promise<void> => Promise.resolve();
  const journal = {
    achieved,
    writer: '',
    requireOwn: done,
    notePrefix: () => undefined,
    noteDone: done,
    close: done,
    remove: done,
  };
  return beginPour(spans, { journal }, 0);
}

/** What ends while the loop waits: one of what is under way, as `choice` says; false when nothing is. */
function endSomething(state: PourState, choice: number, fails: boolean): boolean {
  const running = [...state.running];
  const isDigestDue =
    !state.isDigested && running.length + state.missing.length + state.standing.length === 0;
  const ends = [
    ...running.map((task) => () => {
      state.running.delete(task);
      if (fails) state.failure ??= { reason: 'failed' };
      else state.verified.push(task.index);
    }),
    ...(state.isCommitting ? [() => (state.isCommitting = false)] : []),
    ...(isDigestDue ? [() => (state.isDigested = true)] : []),
  ];
  ends[choice % ends.length]?.();
  return ends.length > 0;
}

describe('the schedule of a pour', () => {
  it('always ends, having poured and committed every span unless something failed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
        fc.array(
          fc.record({
            choice: fc.nat(),
            lanes: fc.integer({ min: 1, max: 5 }),
            fails: fc.boolean(),
          }),
        ),
        fc.boolean(),
        (kept, moves, mayFail) => {
          const state = begin(kept);
          const poured: number[] = [];
          const committed: number[] = [];
          for (let turn = 0; ; turn++) {
            expect(turn).toBeLessThan(200);
            const { choice = 0, lanes = 1, fails = false } = moves[turn] ?? {};
            const step = next(state, lanes, turn * 1000);
            if (step.kind === 'end') break;
            if (step.kind === 'pour') {
              (isStanding(step.task) ? state.standing : state.missing).shift();
              state.running.add(step.task);
              poured.push(step.task.index);
              expect(state.running.size).toBeLessThanOrEqual(lanes);
            } else if (step.kind === 'commit') {
              committed.push(...state.verified.splice(0));
              state.isCommitting = true;
              state.committedAt = turn * 1000;
            } else {
              const mustWake = endSomething(state, choice, mayFail && fails);
              expect(mustWake).toBe(true); // nobody waits for nothing
            }
          }
          expect(state.running.size).toBe(0);
          expect(state.isCommitting).toBe(false);
          if (state.failure) return;
          const all = [...kept.keys()];
          expect(poured.sort((a, b) => a - b)).toEqual(all);
          expect(committed.sort((a, b) => a - b)).toEqual(all);
        },
      ),
    );
  });

  it('has one lane check existing bytes while the others fetch missing ones', () => {
    const state = begin([true, true, false, false]);
    const started: number[] = [];
    for (let step = next(state, 3, 0); step.kind === 'pour'; step = next(state, 3, 0)) {
      (isStanding(step.task) ? state.standing : state.missing).shift();
      state.running.add(step.task);
      started.push(step.task.index);
    }
    expect(started).toEqual([0, 2, 3]);
  });

  it('counts a lane as stalled when its source has sent nothing for more than a second', () => {
    const state = begin([false, false]);
    for (const task of state.missing.splice(0)) state.running.add(task);
    const [first, second] = [...state.running];
    if (!first || !second) throw new Error('nothing began');
    first.waiting.since = 1000;
    expect(countStalled(state, 1500)).toBe(0);
    expect(countStalled(state, 2500)).toBe(1);
    first.waiting.since = undefined;
    expect(countStalled(state, 2500)).toBe(0);
  });

  it('waits after a failure for work that still runs, and begins no more', () => {
    const state = begin([false, false]);
    const step = next(state, 1, 0);
    if (step.kind !== 'pour') throw new Error('nothing began');
    state.running.add(step.task);
    state.failure = { reason: 'stopped' };
    expect(next(state, 8, 10_000)).toEqual({ kind: 'wait' });
    state.running.clear();
    expect(next(state, 8, 10_000)).toEqual({ kind: 'end' });
  });
});
