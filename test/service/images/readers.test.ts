import { describe, expect, it } from 'vitest';
import { createDeliveryMemory } from '../../../src/service/images/deliveries.ts';
import { createReaders } from '../../../src/service/images/readers.ts';

const part = (start: number, sent: number) => ({ status: 206, start, sent, complete: true });

describe('the memory of clients', () => {
  it('keeps those of other images when one image has clients from thousands of addresses', () => {
    const readers = createReaders(() => 1000);
    readers.begin({ id: 'other', revision: 1, address: '192.0.2.1' })();
    const open = readers.begin({ id: 'flooded', revision: 1, address: '192.0.2.2' });
    for (let index = 0; index < 20_000; index += 1) {
      readers.begin({ id: 'flooded', revision: 1, address: `2001:db8::${index}` })();
    }
    expect(readers.list('other')).toHaveLength(1);
    const flooded = readers.list('flooded').map(({ address }) => address);
    expect(flooded).toHaveLength(9999);
    expect(flooded).toContain('192.0.2.2');
    expect(flooded).toContain('2001:db8::19999');
    open();
  });

  it('looks at all of them once a second, not for each request', () => {
    let looks = 0;
    const readers = createReaders(() => {
      looks += 1;
      return 1000;
    });
    for (let index = 0; index < 11_000; index += 1) {
      readers.begin({ id: 'flooded', revision: 1, address: `2001:db8::${index}` })();
    }
    expect(looks).toBeLessThan(11_000 * 4);
  });
});

describe('the memory of deliveries', () => {
  const url = (owner: string, key: string, size = 10) => ({ owner, key, size });

  it('takes it from the owner who has most of it', () => {
    const memory = createDeliveryMemory({ all: 1000 });
    expect(memory.add(url('honest', 'a'), part(0, 5))).toBe(false);
    for (let index = 0; index < 5000; index += 1) {
      memory.add(url('greedy', `spans ${index % 3}`, 1e9), part(index * 2, 1));
      memory.add(url('greedy', `url ${index}`), part(0, 1));
    }
    expect(memory.add(url('honest', 'b'), part(0, 10))).toBe(true);
    expect(memory.add(url('honest', 'a'), part(5, 5))).toBe(true);
  });

  it('does not notice the end of what has more spans than there is memory', () => {
    const memory = createDeliveryMemory({ all: 100 });
    const ends = (step: number): boolean => {
      let isWhole = false;
      for (let at = 0; at < 1000; at += step)
        isWhole ||= memory.add(url('x', 'y', 1000), part(at, 1));
      for (let at = 1; at < 1000; at += step)
        isWhole ||= memory.add(url('x', 'y', 1000), part(at, 1));
      return isWhole;
    };
    expect(ends(2)).toBe(false);
    expect(memory.add(url('x', 'y', 1000), part(0, 1000))).toBe(true);
  });
});
