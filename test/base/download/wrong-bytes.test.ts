import { describe, expect, it } from 'vitest';
import { bringVerified } from '../../../src/base/download/bring-verified.ts';
import { type Source } from '../../../src/base/download/sources.ts';
import { IntegrityError } from '../../../src/base/errors.ts';
import { createRetries, type Clock } from '../../../src/base/retry.ts';

const { signal } = new AbortController();

/** Asks one source until it gives right bytes or is not asked again; returns the number of attempts. */
async function countAttempts(
  give: (attempt: number) => string | undefined,
  retryFor = 600_000,
): Promise<{ readonly attempts: number; readonly waited: number; readonly isRight: boolean }> {
  let time = 0;
  const clock: Clock = {
    now: () => time,
    random: () => 0.5,
    sleep: (milliseconds) => {
      time += milliseconds;
      return Promise.resolve();
    },
  };
  const retries = createRetries({ retryFor, clock });
  const openBudget: NonNullable<Source['openBudget']> = (signal) =>
    retries.open('a.example', signal);
  const source: Source = { name: 'a.example', local: false, openBudget };
  let attempts = 0;
  let isRight = true;
  await bringVerified(({ rank, answers }) => {
    if (rank([source]).length === 0) throw answers[0]?.error ?? new Error('no answer');
    const found = give(attempts++);
    if (found === undefined) return Promise.resolve(undefined);
    const error = new IntegrityError('blob.wrong-digest', 'wrong bytes', { found });
    return Promise.resolve({ used: new Set([source]), hasPrefix: false, error });
  }, signal).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'blob.wrong-digest' });
    isRight = false;
  });
  return { attempts, waited: time, isRight };
}

describe('an object whose bytes arrive wrong', () => {
  it('is asked for again while its bytes are wrong in another way each time', async () => {
    const damaged = (attempt: number): string | undefined =>
      attempt < 12 ? `sha256:${attempt}` : undefined;
    expect(await countAttempts(damaged)).toMatchObject({ attempts: 13, isRight: true });
  });

  it('is not asked for again after the time of --retry-for', async () => {
    const { attempts, waited, isRight } = await countAttempts((attempt) => `sha256:${attempt}`);
    expect(isRight).toBe(false);
    expect(attempts).toBeGreaterThan(20);
    expect(waited).toBeLessThanOrEqual(600_000);
    expect(waited).toBeGreaterThan(590_000);
  });

  it('is asked for twice if there is no time for more', async () => {
    expect(await countAttempts((attempt) => `sha256:${attempt}`, 0)).toMatchObject({ attempts: 2 });
  });

  it('is asked for twice if the source has the wrong bytes itself', async () => {
    expect(await countAttempts(() => 'sha256:same')).toEqual({
      attempts: 2,
      waited: 0,
      isRight: false,
    });
  });
});
