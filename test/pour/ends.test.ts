import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InterruptedError, RegistryError } from '../../src/base/errors.ts';
import type { Pace } from '../../src/pour/pace.ts';
import { publishPour, type PourOptions } from '../../src/pour/pour.ts';
import type { ExtentChunk, ExtentOpener } from '../../src/pour/spans.ts';
import { mayMount } from '../support/may-mount.ts';
import { makeLayout, MIB, openFrom, REGISTRY, pourAndPublish } from '../support/pour-layout.ts';

/** How long after its cause a pour may take to end. */
const LIMIT_MS = 2000;
const LANES = [1, 2, 8, 64];
/** A machine that is so busy that no more lanes ever join. */
const LOWEST: Pace = { allow: () => 1 };

type World = {
  readonly directory: string;
  readonly layout: ReturnType<typeof makeLayout>;
  readonly stop: AbortController;
  /** Told when what ends the pour happens. */
  readonly cause: () => void;
};
type End = {
  readonly name: string;
  readonly expected: object;
  readonly opener: (world: World) => ExtentOpener;
};

const interrupted = new InterruptedError('SIGINT');
const lost = new RegistryError('registry.lost', 'the registry is gone');
const forever = (): Promise<never> => new Promise(() => undefined);

/** Serves so many blobs as they are; what comes behind them is up to `then`. */
function afterSome(world: World, count: number, then: ExtentOpener): ExtentOpener {
  const good = openFrom(world.layout.blobs);
  let opened = 0;
  return (extent, options) => (++opened > count ? then : good)(extent, options);
}

function stopNow({ stop, cause }: World): void {
  cause();
  stop.abort(interrupted);
}

const ENDS: readonly End[] = [
  {
    name: 'a source that fails',
    expected: { code: 'registry.lost', exitCode: 4 },
    opener: (world) =>
      afterSome(world, 2, () => {
        world.cause();
        return Promise.reject(lost);
      }),
  },
  {
    name: 'an abort before it begins',
    expected: { exitCode: 130 },
    opener: (world) => {
      stopNow(world);
      return openFrom(world.layout.blobs);
    },
  },
  {
    name: 'an abort while bytes come',
    expected: { exitCode: 130 },
    opener: (world) => {
      let seen = 0;
      return openFrom(world.layout.blobs, {
        onBytes: (size) => {
          seen += size;
          if (seen > 3 * MIB && !world.stop.signal.aborted) stopNow(world);
        },
      });
    },
  },
  {
    name: 'an abort while a source that ignores it is opened',
    expected: { exitCode: 130 },
    opener: (world) =>
      afterSome(world, 2, () => {
        setImmediate(stopNow, world);
        return forever();
      }),
  },
  {
    name: 'an abort while a source that ignores it sends nothing more',
    expected: { exitCode: 130 },
    opener: (world) =>
      afterSome(world, 2, (extent) => {
        async function* chunks(): AsyncGenerator<ExtentChunk> {
          const bytes = (world.layout.blobs.get(extent.digest ?? '') ?? Buffer.alloc(1)).subarray(
            0,
            5,
          );
          yield { offset: 0, bytes, source: REGISTRY };
          setImmediate(stopNow, world);
          await forever();
        }
        return Promise.resolve({ kind: 'stream', chunks: chunks() });
      }),
  },
  {
    name: 'bytes that are wrong wherever they come from',
    expected: { code: 'extent.wrong-digest', exitCode: 5 },
    opener: (world) =>
      afterSome(world, 2, (extent, options) => {
        world.cause();
        return openFrom(world.layout.blobs, { spoil: true })(extent, options);
      }),
  },
];

const CASES = ENDS.flatMap((end) => LANES.map((lanes) => ({ ...end, lanes })));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-ends-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

/** Pours to the end that is expected; returns the milliseconds from its cause. */
async function pourToEnd(
  options: Omit<PourOptions, 'openExtent' | 'signal'>,
  end: End,
  blobs: World['layout'],
) {
  let causedAt = 0;
  const cause = (): void => {
    causedAt ||= performance.now();
  };
  const stop = new AbortController();
  const world = { directory, layout: blobs, stop, cause };
  const pour = pourAndPublish({ ...options, openExtent: end.opener(world), signal: stop.signal });
  await expect(pour).rejects.toMatchObject(end.expected);
  return performance.now() - causedAt;
}

describe('a pour whose pace stays at one lane', () => {
  it.each(CASES)(
    'ends within 2 s of $name with $lanes lanes, and can be continued',
    async ({ lanes, ...end }) => {
      const made = makeLayout(Array<number>(8).fill(MIB + 5));
      const { layout, blobs, whole } = made;
      const options = { layout, output: join(directory, 'out.iso'), lanes, pace: LOWEST };
      expect(await pourToEnd(options, end, made)).toBeLessThan(LIMIT_MS);
      const again = {
        ...options,
        openExtent: openFrom(blobs),
        signal: new AbortController().signal,
      };
      await pourAndPublish(again);
      expect(readFileSync(options.output).equals(whole)).toBe(true);
    },
  );

  it.each(LANES)(
    'is complete, or completed by the next run, when it is aborted at its last byte, with %i lanes',
    async (lanes) => {
      const { layout, blobs, whole } = makeLayout([MIB]);
      const stop = new AbortController();
      const output = join(directory, 'out.iso');
      const pour = { layout, output, lanes, pace: LOWEST, openExtent: openFrom(blobs) };
      const onProgress = (bytes: number): void => {
        if (bytes === layout.size) stop.abort(interrupted);
      };
      await pourAndPublish({ ...pour, signal: stop.signal, onProgress }).catch((error: unknown) => {
        expect(error).toBe(interrupted);
      });
      expect(stop.signal.aborted).toBe(true);
      if (!existsSync(output)) {
        await pourAndPublish({ ...pour, signal: new AbortController().signal });
      }
      expect(readFileSync(output).equals(whole)).toBe(true);
    },
  );

  it.each(LANES)(
    'ends within 2 s when an output cannot be continued, with %i lanes',
    async (lanes) => {
      const { layout, blobs } = makeLayout(Array<number>(4).fill(MIB));
      const output = join(directory, 'out.iso');
      writeFileSync(`${output}.partial`, '');
      execFileSync('mkdir', [`${output}.partial.journal`]);
      const started = performance.now();
      const pour = { layout, output, lanes, pace: LOWEST, openExtent: openFrom(blobs) };
      const signal = new AbortController().signal;
      await expect(pourAndPublish({ ...pour, signal })).rejects.toMatchObject({ exitCode: 7 });
      expect(performance.now() - started).toBeLessThan(LIMIT_MS);
    },
  );
});

describe.skipIf(!mayMount())(
  'a pour whose pace stays at one lane, onto a disk that fills up,',
  () => {
    beforeEach(() => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', directory]);
    });
    afterEach(() => {
      execFileSync('umount', [directory]);
    });

    it.each(LANES)('ends within 2 s with %i lanes, and can be continued', async (lanes) => {
      const { layout, blobs, whole } = makeLayout(Array<number>(8).fill(MIB + 5));
      let servedAt = 0;
      const openExtent = openFrom(blobs, { onBytes: () => (servedAt = performance.now()) });
      const options = {
        layout,
        output: join(directory, 'out.iso'),
        lanes,
        pace: LOWEST,
        openExtent,
      };
      const { signal } = new AbortController();
      const full = { code: 'output.full', exitCode: 7 };
      await expect(pourAndPublish({ ...options, signal })).rejects.toMatchObject(full);
      expect(performance.now() - servedAt).toBeLessThan(LIMIT_MS);
      execFileSync('mount', ['-o', 'remount,size=64m', directory]);
      const { reused } = await pourAndPublish({ ...options, signal });
      expect(reused).toBeGreaterThan(MIB);
      expect(readFileSync(options.output).equals(whole)).toBe(true);
    });
  },
);

it('an output folder that disappears during a pour is an error and not a bug', async () => {
  const gone = publishPour(join(tmpdir(), 'sealift-gone', 'out.iso'));
  await expect(gone).rejects.toMatchObject({ code: 'output.unwritable', exitCode: 7 });
});
