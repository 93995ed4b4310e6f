import type { FileHandle } from 'node:fs/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LARGEST_MOVE, planSteps, type Move } from '../../../../src/media/delta/in-place/plan.ts';
import { runSteps } from '../../../../src/media/delta/in-place/run.ts';
import { runs } from '../../../support/properties.ts';

const POWER_LOSS = new Error('the power failed');

/** A file whose writes are lost, or not, when the power fails before they are synced. */
function createDisk(content: Buffer, power: { left: number }, placeOf = (at: number) => at) {
  let [onDisk, now] = [content, Buffer.from(content)];
  let writes: { readonly position: number; readonly bytes: Buffer }[] = [];
  const put = (bytes: Buffer, position: number): void => {
    const size = Math.max(now.length, position + bytes.length);
    now = Buffer.concat([now, Buffer.alloc(size - now.length)]);
    bytes.copy(now, position);
  };
  const file = {
    read: (...[to, start, size, position]: readonly [Buffer, number, number, number]) =>
      Promise.resolve({
        bytesRead: now.copy(to, start, placeOf(position), placeOf(position) + size),
      }),
    write(...[from, start, size, position]: readonly [Buffer, number, number, number]) {
      const isLast = --power.left === 0;
      const bytes = Buffer.from(from.subarray(start, start + (isLast ? size >> 1 : size)));
      put(bytes, placeOf(position));
      writes.push({ position: placeOf(position), bytes });
      return isLast ? Promise.reject(POWER_LOSS) : Promise.resolve({ bytesWritten: size });
    },
    datasync() {
      [onDisk, writes] = [Buffer.from(now), []];
      return Promise.resolve();
    },
  };
  return {
    file: file as unknown as FileHandle,
    content: (): Buffer => now,
    loseWrites(isLost: () => boolean) {
      const left = writes.filter(() => !isLost());
      now = Buffer.from(onDisk);
      for (const { bytes, position } of left) put(bytes, position);
      [onDisk, writes] = [Buffer.from(now), []];
    },
  };
}

/** An old and a new content of 64 units, each unit of the new one out of the old one, the delta, or zeros. */
const change = fc
  .array(
    fc.record({
      size: fc.integer({ min: 1, max: 12 }),
      gap: fc.integer({ min: 0, max: 2 }),
      from: fc.constantFrom('old', 'old', 'old', 'shift', 'delta', 'zeros'),
      place: fc.nat(60),
    }),
    { minLength: 1, maxLength: 16 },
  )
  .map((runs) => {
    const moves: Move[] = [];
    let offset = 0;
    for (const { size, gap, from, place } of runs) {
      offset += gap;
      const origin =
        from === 'zeros'
          ? ({ kind: 'zeros' } as const)
          : ({
              kind: from === 'delta' ? 'delta' : 'old',
              offset: from === 'shift' ? Math.max(0, offset - 2) : place,
            } as const);
      moves.push({ offset, size, from: origin });
      offset += size;
    }
    return moves;
  });

/** 16 bytes for each. */
const toSlot = (position: number): number => (position / LARGEST_MOVE) * 16;

/** In neither content. */
const MARK = 255;

const SIZE = 256;
const noise = (seed: number): Buffer =>
  Buffer.from(Array.from({ length: SIZE }, (_, i) => (i * 37 + seed * 101 + (i >> 3)) % 255));

function expectedOf(old: Buffer, delta: Buffer, moves: readonly Move[]): Buffer {
  const made = Buffer.from(old);
  for (const { offset, size, from } of moves) {
    const source = { old, delta, patched: delta, zeros: Buffer.alloc(SIZE) }[from.kind];
    const start = from.kind === 'zeros' ? 0 : from.offset;
    source.copy(made, offset, start, start + size);
  }
  return made;
}

test('moves make the new content with any overlap, and after a loss of power at any time', async () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 6 });
  const boots = fc.integer({ min: 0, max: 10 });
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(change, cuts, boots),
      fc.infiniteStream(fc.boolean()),
      async ([moves, left, boot], lost) => {
        const [old, delta] = [noise(1), noise(2)];
        // What is there already and boots is written again, because it is gone meanwhile.
        const covered = coverBoot(moves, boot);
        const made = expectedOf(old, delta, covered);
        const steps = planSteps(covered, { offset: 0, size: boot });
        const power = { left: Infinity };
        const [iso, aside] = [createDisk(old, power), createDisk(Buffer.alloc(0), power, toSlot)];
        const delivered = createDisk(delta, power);
        let done = 0;
        for (const cut of [...left, Infinity]) {
          power.left = cut;
          const files = {
            path: 'x',
            iso: iso.file,
            aside: aside.file,
            delta: delivered.file,
            patched: delivered.file,
            requireHeld: () => Promise.resolve(),
          };
          const running = runSteps(files, {
            steps,
            done,
            marker: new Uint8Array(Math.min(boot, 4)).fill(MARK),
            signal: new AbortController().signal,
            onBytes: () => undefined,
            note: (count) => {
              done = count;
              return Promise.resolve();
            },
          });
          const error: unknown = await running.then(
            () => undefined,
            (reason: unknown) => reason,
          );
          if (cut !== Infinity && error !== undefined) expect(error).toBe(POWER_LOSS);
          const isLost = (): boolean => lost.next().value === true;
          iso.loseWrites(isLost);
          aside.loseWrites(isLost);
          const now = iso.content();
          if (boot > 0 && now[0] !== MARK && !now.equals(old)) {
            // It boots: all but the block that was written last is as it should be.
            const { size } = steps.at(-1) as { readonly size: number };
            expect(now.subarray(size).equals(made.subarray(size))).toBe(true);
          }
        }
        expect(iso.content().equals(made)).toBe(true);
      },
    ),
    { numRuns: runs(150) },
  );
});

test('the first block of a medium is written last, by itself', () => {
  const all: Move = { offset: 0, size: 32_768, from: { kind: 'old', offset: 0 } };
  const steps = planSteps([all], { offset: 0, size: 32_768 });
  expect(steps.slice(-2)).toEqual([
    { kind: 'write', offset: 512, size: 32_256, from: { kind: 'slot', offset: 512 } },
    { kind: 'write', offset: 0, size: 512, from: { kind: 'slot', offset: 0 } },
  ]);
});

/** Moves from a place to itself for what of the boot range no other move writes. */
function coverBoot(moves: readonly Move[], boot: number): readonly Move[] {
  const isFree = (at: number): boolean =>
    !moves.some(({ offset, size }) => at >= offset && at < offset + size);
  const own = Array.from({ length: boot }, (_, at) => at).filter(isFree);
  return [
    ...moves,
    ...own.map((at): Move => ({ offset: at, size: 1, from: { kind: 'old', offset: at } })),
  ];
}

test('a run that another one took over writes no step', async () => {
  const power = { left: Infinity };
  const [iso, aside] = [createDisk(noise(1), power), createDisk(Buffer.alloc(0), power, toSlot)];
  const delivered = createDisk(noise(2), power);
  const moves: Move[] = [0, 64, 128].map((offset) => ({
    offset,
    size: 64,
    from: { kind: 'delta', offset },
  }));
  const lost = new Error('another run took over');
  const running = runSteps(
    {
      path: 'x',
      iso: iso.file,
      aside: aside.file,
      delta: delivered.file,
      patched: delivered.file,
      requireHeld: () => Promise.reject(lost),
    },
    {
      steps: planSteps(moves, { offset: 0, size: 0 }),
      done: 0,
      marker: new Uint8Array(),
      signal: new AbortController().signal,
      onBytes: () => undefined,
      note: () => Promise.resolve(),
    },
  );
  await expect(running).rejects.toBe(lost);
  expect(iso.content()).toEqual(noise(1));
});
