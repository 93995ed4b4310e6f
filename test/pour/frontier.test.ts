import { describe, expect, it } from 'vitest';
import { BUFFER_SIZE, cutBuffers } from '../../src/pour/output-file.ts';
import { Frontier } from '../../src/pour/frontier.ts';
import { createHasher } from '../../src/pour/hasher.ts';

const COUNT = 16;
/** A quarter of the buffers is kept for the frontier. */
const AHEAD = COUNT - 4;
/** The frontier stands in span 0; what lies in span 1 is ahead of it. */
const SECOND = 64 * BUFFER_SIZE;
const SPANS = [
  { offset: 0, size: SECOND },
  { offset: SECOND, size: SECOND },
];

async function withFrontier(
  work: (frontier: Frontier, stop: AbortController) => Promise<void>,
): Promise<void> {
  const memory = new SharedArrayBuffer(COUNT * BUFFER_SIZE);
  const hasher = createHasher(memory);
  const stop = new AbortController();
  const nothing = (): Promise<never> => Promise.reject(new Error('the file is not used'));
  const output = {
    write: nothing,
    read: nothing,
    sync: nothing,
    duplicate: nothing,
    close: nothing,
  };
  const buffers = cutBuffers(memory, 0);
  const stream = hasher.openAlone();
  try {
    const options = { spans: SPANS, buffers, stream, output, signal: stop.signal };
    await work(new Frontier(options), stop);
  } finally {
    await hasher.close();
  }
}

const takeAhead = (frontier: Frontier): Promise<unknown[]> =>
  Promise.all(
    Array.from({ length: AHEAD }, (_, i) => frontier.acquire(1, SECOND + i * BUFFER_SIZE)),
  );

describe('the buffers of a pour', () => {
  it('are partly reserved for the lane that the digest waits for', () =>
    withFrontier(async (frontier) => {
      expect(await takeAhead(frontier)).toHaveLength(AHEAD);
      await expect(frontier.acquire(0, 0)).resolves.toBeDefined();
    }));

  it('go to a waiting lane that reaches the frontier', () =>
    withFrontier(async (frontier) => {
      await takeAhead(frontier);
      const far = 20 * BUFFER_SIZE; // not awaited yet: the frontier is at 0
      const waiting = frontier.acquire(0, far);
      for (let position = 0; position < far; position += BUFFER_SIZE) {
        const { start } = await frontier.acquire(0, position);
        frontier.offer({ start, size: BUFFER_SIZE }, position);
      }
      await expect(waiting).resolves.toBeDefined();
    }));

  it('keep no lane waiting after the pour is stopped', () =>
    withFrontier(async (frontier, stop) => {
      await takeAhead(frontier);
      const reason = new Error('stopped');
      const waiting = frontier.acquire(1, SECOND);
      stop.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      await expect(frontier.acquire(0, 0)).rejects.toBe(reason);
    }));
});
