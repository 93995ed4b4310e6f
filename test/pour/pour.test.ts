import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Layout } from '../../src/iso/extent.ts';
import type { Pace } from '../../src/pour/pace.ts';
import type { PourOptions } from '../../src/pour/pour.ts';
import { planSpans, type ExtentChunk, type ExtentOpener } from '../../src/pour/spans.ts';
import { makeLayout, MIB, openFrom, REGISTRY, pourAndPublish } from '../support/pour-layout.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-pour-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const optionsOf = (layout: Layout, openExtent: ExtentOpener): PourOptions => ({
  layout,
  openExtent,
  output: join(directory, 'out.iso'),
  lanes: 4,
  signal: new AbortController().signal,
});

const sha256 = (bytes: Buffer): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describe('a layout', () => {
  it.each([
    ['leaves a gap before its last extent', 2048, 0],
    ['has two extents for a byte', -1, 0],
    ['ends behind its last extent', 0, 2048],
    ['ends in its last extent', 0, -1],
  ])('that %s is refused before a byte is poured', (_fault, shift, more) => {
    const { layout } = makeLayout([2048]);
    const extents = layout.extents.map((extent, at) =>
      at === layout.extents.length - 1 ? { ...extent, offset: extent.offset + shift } : extent,
    );
    expect(planSpans(layout)).not.toEqual([]);
    expect(() => planSpans({ size: layout.size + more, extents })).toThrow(
      expect.objectContaining({ code: 'layout.malformed' }),
    );
  });
});

describe('pouring an ISO', () => {
  it('writes every extent to its offset and returns the digest of the whole', async () => {
    const { layout, blobs, whole } = makeLayout([1, 4096, 5000, 3 * MIB + 7, 0x20000, 2 * MIB]);
    const result = await pourAndPublish(optionsOf(layout, openFrom(blobs)));
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
    expect(result.digest).toBe(sha256(whole));
    expect(result.written).toBe(whole.length);
    expect(existsSync(join(directory, 'out.iso.partial'))).toBe(false);
    expect(existsSync(join(directory, 'out.iso.partial.journal'))).toBe(false);
  });

  it('pours everything else, more than its buffers hold, while one source hangs and the machine is busy', async () => {
    const { layout, blobs, whole } = makeLayout([4 * MIB, ...Array<number>(30).fill(5 * MIB)]);
    const slow = layout.extents.find((extent) => extent.source.kind === 'blob')?.digest;
    let served = 0;
    let goOn = (): void => undefined;
    const behindIt = new Promise<void>((resolve) => (goOn = resolve));
    const fast = openFrom(blobs, {
      onBytes(size) {
        served += size;
        if (served > 100 * MIB) goOn();
      },
    });
    const openExtent: ExtentOpener = async (extent, options) => {
      if (extent.digest === slow) await behindIt;
      return fast(extent, options);
    };
    const busy: Pace = { allow: () => 1 };
    const result = await pourAndPublish({ ...optionsOf(layout, openExtent), pace: busy });
    expect(result.digest).toBe(sha256(whole));
    expect(result.readBack).toBeGreaterThan(0);
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
  });

  it('asks another source when one gives wrong bytes, and fails when all do', async () => {
    const { layout, blobs, whole } = makeLayout([2 * MIB + 1, 3 * MIB]);
    const mirror = { ...REGISTRY }; // another repository of the same host
    const wrong = openFrom(blobs, { source: mirror, spoil: true });
    const right = openFrom(blobs);
    const both: ExtentOpener = (extent, options) =>
      (options.rank([mirror, REGISTRY])[0] === mirror ? wrong : right)(extent, options);
    const result = await pourAndPublish(optionsOf(layout, both));
    expect(result.digest).toBe(sha256(whole));
    await expect(
      pourAndPublish({ ...optionsOf(layout, wrong), output: join(directory, 'wrong.iso') }),
    ).rejects.toMatchObject({ code: 'extent.wrong-digest' });
    expect(existsSync(join(directory, 'wrong.iso'))).toBe(false);
  });

  it('asks the only source again from byte 0 when its bytes are wrong', async () => {
    const { layout, blobs, whole } = makeLayout([2 * MIB + 1, 3 * MIB]);
    const wrong = openFrom(blobs, { spoil: true });
    const right = openFrom(blobs);
    const asked = new Map<unknown, number[]>();
    const opener: ExtentOpener = (extent, options) => {
      const offsets = [...(asked.get(extent.digest) ?? []), options.offset];
      asked.set(extent.digest, offsets);
      return (offsets.length === 1 ? wrong : right)(extent, options);
    };
    const result = await pourAndPublish(optionsOf(layout, opener));
    expect(result.digest).toBe(sha256(whole));
    expect([...asked.values()]).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
  });

  it('continues after an interruption and fetches only the missing bytes', async () => {
    const { layout, blobs, whole } = makeLayout(Array<number>(12).fill(3 * MIB + 5));
    const stop = new AbortController();
    let fetched = 0;
    const counting = openFrom(blobs, {
      onBytes(size) {
        fetched += size;
        if (fetched > 20 * MIB) stop.abort(new Error('stopped'));
      },
    });
    const first = pourAndPublish({ ...optionsOf(layout, counting), signal: stop.signal });
    await expect(first).rejects.toThrow('stopped');
    expect(existsSync(join(directory, 'out.iso'))).toBe(false);
    const before = fetched;
    const result = await pourAndPublish(optionsOf(layout, counting));
    expect(result.digest).toBe(sha256(whole));
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
    expect(result.reused).toBeGreaterThan(10 * MIB);
    expect(fetched - before).toBe(result.fetched);
    expect(result.reused + result.fetched).toBe(12 * (3 * MIB + 5));
  });

  it('fetches bytes again that the disk lost although the journal has them', async () => {
    const { layout, blobs, whole } = makeLayout([3 * MIB, 3 * MIB, 9 * MIB]);
    const stop = new AbortController();
    let fetched = 0;
    const counting = openFrom(blobs, {
      onBytes(size) {
        fetched += size;
        if (fetched > 12 * MIB) stop.abort(new Error('stopped'));
      },
    });
    await expect(
      pourAndPublish({ ...optionsOf(layout, counting), signal: stop.signal, lanes: 1 }),
    ).rejects.toThrow('stopped');
    const partial = join(directory, 'out.iso.partial');
    truncateSync(partial, 0);
    truncateSync(partial, layout.size);
    const result = await pourAndPublish(optionsOf(layout, openFrom(blobs)));
    expect(result.digest).toBe(sha256(whole));
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
  });

  it('starts over when the partial output belongs to another layout', async () => {
    const other = makeLayout([2 * MIB]);
    const { layout, blobs, whole } = makeLayout([3 * MIB]);
    writeFileSync(join(directory, 'out.iso.partial'), other.whole);
    writeFileSync(join(directory, 'out.iso.partial.journal'), '{"format":1,"layout":"x"}\nd 1\n');
    const warnings: string[] = [];
    const warn = (message: string): void => void warnings.push(message);
    const result = await pourAndPublish({ ...optionsOf(layout, openFrom(blobs)), warn });
    expect(warnings).toEqual(['partial output is from different inputs; starting over']);
    expect(result.digest).toBe(sha256(whole));
  });

  it('starts over in another file: a run that only stood still may write to the old one', async () => {
    const { layout, blobs, whole } = makeLayout([3 * MIB]);
    const partial = join(directory, 'out.iso.partial');
    writeFileSync(`${partial}.journal`, '{"format":1,"layout":"x"}\n');
    const stale = openSync(partial, 'w');
    await pourAndPublish(optionsOf(layout, openFrom(blobs)));
    writeSync(stale, 'late bytes of another layout');
    closeSync(stale);
    expect(readFileSync(join(directory, 'out.iso')).equals(whole)).toBe(true);
  });

  it('starts an extent over when its source does', async () => {
    const { layout, blobs, whole } = makeLayout([4 * MIB, 2 * MIB]);
    const opener: ExtentOpener = ({ digest }) => {
      const bytes = blobs.get(digest ?? '') ?? Buffer.alloc(0);
      async function* chunks(): AsyncGenerator<ExtentChunk> {
        await Promise.resolve();
        const half = bytes.length >> 1;
        const [a, b] = [{ ...REGISTRY }, { ...REGISTRY }];
        yield { offset: 0, bytes: bytes.subarray(0, half), source: a };
        yield { offset: 0, bytes: bytes.subarray(0, half), source: b };
        yield { offset: half, bytes: bytes.subarray(half), source: b };
      }
      return Promise.resolve({ kind: 'stream', chunks: chunks() });
    };
    const result = await pourAndPublish(optionsOf(layout, opener));
    expect(result.digest).toBe(sha256(whole));
  });
});
