import { describe, expect, it } from 'vitest';
import { createHostLimit } from '../../../src/registry/client/requester.ts';

const { signal } = new AbortController();

describe('the limit of simultaneous requests to a host', () => {
  it('halves once for requests refused together, and never falls below one', async () => {
    const limit = createHostLimit(8);
    const slots = await Promise.all(Array.from({ length: 8 }, () => limit.acquire(signal)));
    for (const slot of slots) slot.refuse();
    expect(limit.width).toBe(4);
    for (const slot of slots) slot.release();
    for (let round = 0; round < 5; round += 1) {
      const slot = await limit.acquire(signal);
      slot.refuse();
      slot.release();
    }
    expect(limit.width).toBe(1);
  });

  it('grows by one for every full round that succeeds', async () => {
    const limit = createHostLimit(8);
    const refused = await limit.acquire(signal);
    refused.refuse();
    refused.release();
    for (let count = 0; count < 5; count += 1) {
      const slot = await limit.acquire(signal);
      slot.succeed();
      slot.release();
    }
    expect(limit.width).toBe(5);
    const free = createHostLimit(2);
    (await free.acquire(signal)).succeed();
    expect(free.width).toBe(2);
  });

  it('admits requests in order, and drops those that are aborted', async () => {
    const limit = createHostLimit(1);
    const first = await limit.acquire(signal);
    const controller = new AbortController();
    const off = limit.acquire(controller.signal);
    const order: string[] = [];
    const second = limit.acquire(signal).then((slot) => {
      order.push('second');
      slot.release();
    });
    const third = limit.acquire(signal).then(() => order.push('third'));
    controller.abort(new Error('off'));
    await expect(off).rejects.toThrow('off');
    first.release();
    first.release();
    await Promise.all([second, third]);
    expect(order).toEqual(['second', 'third']);
  });
});
