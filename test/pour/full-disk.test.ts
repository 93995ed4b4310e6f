import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import type { Layout } from '../../src/iso/extent.ts';
import type { ExtentOpener } from '../../src/pour/spans.ts';
import { mayMount } from '../support/may-mount.ts';
import { REGISTRY, pourAndPublish } from '../support/pour-layout.ts';

const MIB = 1024 * 1024;

describe.skipIf(!mayMount())('pouring onto a disk that fills up', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'sealift-full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'none', directory]);
  });
  afterEach(() => {
    execFileSync('umount', [directory]);
    rmSync(directory, { recursive: true });
  });

  it('reports it, keeps the bytes so far, and continues when there is room', async () => {
    const blobs = Array.from({ length: 6 }, () => randomFillSync(Buffer.alloc(2 * MIB)));
    const layout: Layout = {
      size: 12 * MIB,
      extents: blobs.map((blob, index) => ({
        offset: index * 2 * MIB,
        size: blob.length,
        digest: digestOf(blob),
        source: { kind: 'blob' },
        paths: [`/${index}`],
      })),
    };
    let fetched = 0;
    const openExtent: ExtentOpener = ({ offset: start }, { offset }) => {
      const bytes = blobs[start / (2 * MIB)]?.subarray(offset) ?? Buffer.alloc(0);
      fetched += bytes.length;
      async function* chunks() {
        await Promise.resolve();
        yield { offset, bytes, source: REGISTRY };
      }
      return Promise.resolve({ kind: 'stream', chunks: chunks() });
    };
    const output = join(directory, 'out.iso');
    const pour = () =>
      pourAndPublish({
        layout,
        output,
        openExtent,
        lanes: 1,
        signal: new AbortController().signal,
      });
    await expect(pour()).rejects.toMatchObject({
      code: 'output.full',
      exitCode: 7,
      message: expect.stringMatching(/4\.\d MiB more are needed/) as string,
    });
    expect(existsSync(`${output}.partial`)).toBe(true);
    execFileSync('mount', ['-o', 'remount,size=64m', directory]);
    const before = fetched;
    const { reused } = await pour();
    expect(reused).toBeGreaterThan(2 * MIB);
    expect(fetched - before).toBeLessThan(12 * MIB);
    expect(readFileSync(output).equals(Buffer.concat(blobs))).toBe(true);
  });
});
