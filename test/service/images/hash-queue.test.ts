import { describe, expect, it } from 'vitest';
import { digestOf, type Digest } from '../../../src/base/digest.ts';
import { createVirtualIso } from '../../../src/media/serve/virtual.ts';
import {
  createHashQueue,
  type HashJob,
  type HashQueue,
} from '../../../src/service/images/hash-queue.ts';
import { createTestClock, type TestClock } from '../../support/test-clock.ts';

const MIB = 1 << 20;
const SIZE = 3 * MIB + 17;

/** A base that counts how often each of its bytes is read. */
function createBase(seed: number, onRead: () => void = () => undefined) {
  const bytes = Buffer.alloc(SIZE);
  for (let at = 0; at < SIZE; at += 1) bytes[at] = (at * 31 + seed) % 251;
  const counted = { read: 0, starts: 0 };
  return {
    counted,
    bytes,
    base: {
      size: SIZE,
      digest: digestOf(bytes),
      fill(target: Buffer, offset: number): undefined {
        onRead();
        counted.read += target.length;
        counted.starts += Number(offset === 0);
        bytes.copy(target, 0, offset, offset + target.length);
      },
    },
  };
}

type World = {
  readonly clock: TestClock;
  readonly queue: HashQueue;
  readonly found: Map<string, Digest>;
  readonly job: (
    name: string,
    of: ReturnType<typeof createBase>,
    more?: Partial<HashJob>,
  ) => HashJob;
  readonly warnings: readonly string[];
};

function createWorld(rate = MIB, signal = new AbortController().signal): World {
  const clock = createTestClock();
  const found = new Map<string, Digest>();
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  return {
    clock,
    found,
    warnings,
    queue: createHashQueue({ rate, clock, signal, warn }),
    job: (name, { base }, more) => ({
      name,
      tenant: 'a',
      base,
      image: createVirtualIso(base, {
        digest: digestOf(name),
        packed: Buffer.of(),
        parts: [{ offset: MIB - 3, size: 8, bytes: Buffer.from(name.padEnd(4).slice(0, 4)) }],
      }),
      isWanted: () => true,
      done(digest) {
        found.set(name, digest);
        return Promise.resolve();
      },
      ...more,
    }),
  };
}

/** The bytes that an image should have, made in another way. */
function expectedOf(name: string, { bytes }: ReturnType<typeof createBase>): Digest {
  const own = Buffer.from(bytes);
  own.fill(0, MIB - 3, MIB + 5);
  own.write(name.padEnd(4).slice(0, 4), MIB - 3);
  return digestOf(own);
}

describe('a queue of images to hash', () => {
  it('hashes two images of a base in one reading of it, each with its own bytes', async () => {
    const { queue, job, found } = createWorld();
    const one = createBase(1);
    queue.add(job('one', one));
    queue.add(job('two', one));
    await queue.idle();
    expect(Object.fromEntries(found)).toEqual({
      one: expectedOf('one', one),
      two: expectedOf('two', one),
    });
    expect(one.counted.starts).toBe(1);
    // Around the bytes that differ, each image is read for itself.
    expect(one.counted.read).toBeLessThan(SIZE + 4 * 256 * 1024);
  });

  it('never reads two bases at once', async () => {
    const { queue, job, found } = createWorld();
    const reads: number[] = [];
    const bases = [1, 2].map((seed) => createBase(seed, () => reads.push(seed)));
    for (const [at, base] of bases.entries()) queue.add(job(String(at), base));
    await queue.idle();
    expect(found.size).toBe(2);
    expect(reads).toEqual(reads.toSorted());
  });

  it('hashes no more bytes a second than its rate, however many images it hashes together', async () => {
    const { queue, job, clock } = createWorld(MIB);
    const base = createBase(1);
    for (const name of ['one', 'two', 'thr']) queue.add(job(name, base));
    await queue.idle();
    const least = ((3 * SIZE) / MIB) * 1000;
    expect(clock.now()).toBeGreaterThan(least - 100);
    expect(clock.now()).toBeLessThan(least * 1.2);
  });

  it('says how far an image is, and does not begin it twice', async () => {
    const { queue, job } = createWorld();
    let seen = { hashed: -1, isRunning: false };
    const base = createBase(1, () => (seen = queue.add(job('one', base))));
    expect(queue.add(job('one', base))).toEqual({ hashed: 0, isRunning: false });
    await queue.idle();
    expect(seen.isRunning).toBe(true);
    expect(seen.hashed).toBeGreaterThan(2 * MIB);
    expect(base.counted.starts).toBe(1);
  });

  it('does not begin an image again while its digest is being kept, and says if it was dropped then', async () => {
    const { queue, job } = createWorld();
    const base = createBase(1);
    const seen: boolean[] = [];
    const one: HashJob = job('one', base, {
      done(_, isDropped) {
        seen.push(queue.add(one).isRunning, isDropped());
        queue.drop((name) => name === 'one');
        seen.push(isDropped());
        return Promise.resolve();
      },
    });
    queue.add(one);
    await queue.idle();
    expect(seen).toEqual([true, false, true]);
    expect(base.counted.starts).toBe(1);
  });

  it('drops an image that is gone, and goes on with the others', async () => {
    const { queue, job, found } = createWorld();
    let reads = 0;
    const base = createBase(1, () => {
      reads += 1;
      if (reads === 5) queue.drop((name) => name === 'one');
    });
    queue.add(job('one', base));
    queue.add(job('two', base));
    queue.add(job('lost', base, { isWanted: () => reads < 0 }));
    await queue.idle();
    expect([...found.keys()]).toEqual(['two']);
  });

  it('ends with its signal', async () => {
    const ending = new AbortController();
    const { queue, job, found, warnings } = createWorld(MIB, ending.signal);
    const base = createBase(1, () => {
      ending.abort();
    });
    queue.add(job('one', base));
    queue.add(job('two', createBase(2)));
    await queue.idle();
    expect(found.size).toBe(0);
    expect(base.counted.read).toBeLessThan(MIB);
    expect(warnings).toEqual([]);
    queue.add(job('one', base));
    await queue.idle();
    expect(found.size).toBe(0);
  });

  it('warns of a base that cannot be read, goes on with others, and tries again when it is asked', async () => {
    const { queue, job, found, warnings } = createWorld();
    let isBroken = true;
    const bad = createBase(1, () => {
      if (isBroken) throw new Error('EIO: i/o error, read');
    });
    queue.add(job('bad', bad));
    queue.add(job('one', createBase(2)));
    await queue.idle();
    expect([...found.keys()]).toEqual(['one']);
    expect(warnings).toEqual(['the SHA-256 of an image is not known: EIO: i/o error, read']);
    isBroken = false;
    queue.add(job('bad', bad));
    await queue.idle();
    expect(found.get('bad')).toBe(expectedOf('bad', bad));
  });

  it('lets no tenant wait for all images of another', async () => {
    const { queue, job } = createWorld();
    const order: string[] = [];
    const add = (name: string, tenant: string, seed: number): void => {
      const done = (): Promise<void> => Promise.resolve(void order.push(name));
      queue.add(job(name, createBase(seed), { tenant, done }));
    };
    add('first', 'loud', 1);
    for (let seed = 2; seed < 40; seed += 1) add(`loud ${seed}`, 'loud', seed);
    add('quiet', 'quiet', 40);
    await queue.idle();
    expect(order.indexOf('quiet')).toBeLessThan(3);
    expect(order).toHaveLength(16 + 1); // the others are added when they are asked for again
  });
});
