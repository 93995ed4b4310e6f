import { describe, expect, it } from 'vitest';
import { BUFFER_SIZE, createBufferPool } from '../../../src/iso/pour/buffer-pool.ts';

const COUNT = 16;
/** A quarter of the buffers is kept for the frontier. */
const AHEAD = COUNT - 4;

describe('the buffers of a pour', () => {
  it('are left in part to the lane that the digest waits for', async () => {
    const pool = createBufferPool(new SharedArrayBuffer(COUNT * BUFFER_SIZE), 0);
    const taken = await takeAhead(pool, AHEAD);
    expect(taken).toHaveLength(AHEAD);
    await expect(pool.acquire({ urgent: () => true })).resolves.toBeDefined();
  });

  it('go to a waiting lane that comes to the frontier, before any written one is given up', async () => {
    const pool = createBufferPool(new SharedArrayBuffer(COUNT * BUFFER_SIZE), 0);
    let isAtFrontier = false;
    let spilled = 0;
    pool.onPressure((urgent) => {
      if (urgent) spilled++;
      return false;
    });
    await takeAhead(pool, AHEAD);
    const waiting = pool.acquire({ urgent: () => isAtFrontier });
    isAtFrontier = true;
    await expect(waiting).resolves.toBeDefined();
    expect(spilled).toBe(0);
  });
});

const takeAhead = (pool: ReturnType<typeof createBufferPool>, count: number): Promise<unknown[]> =>
  Promise.all(Array.from({ length: count }, () => pool.acquire({ urgent: () => false })));
