import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { packingOf, unpackFile, type Packing } from '../../../src/base/download/unpack.ts';
import { requireTool } from '../../support/tools.ts';

const content = Buffer.concat([randomBytes(700_000), Buffer.alloc(5_000_000, 'abc')]);
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'unpack-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function unpack(bytes: Uint8Array, packing: Packing, limit = 1 << 30) {
  const packed = join(directory, `a.${packing}`);
  await writeFile(packed, bytes);
  const path = join(directory, 'out', 'a');
  const signal = AbortSignal.timeout(20_000);
  const result = await unpackFile({ packed, packing, path, limit, signal });
  expect(result).toEqual({ size: content.length, digest: digestOf(content) });
  expect(digestOf(await readFile(path))).toBe(result.digest);
}

const xz = (...args: string[]): Buffer =>
  execFileSync('xz', ['--stdout', ...args], { input: content, maxBuffer: 1 << 26 });

const listOutput = (): Promise<string[]> => readdir(join(directory, 'out'));

describe('unpacking a file', () => {
  it('depends on the end of its name', () => {
    const names = ['a.iso.gz', 'a.iso.XZ', 'a.iso', 'gz', 'a.gz.iso', ''];
    expect(names.map(packingOf)).toEqual(['gz', 'xz', undefined, undefined, undefined, undefined]);
  });

  it('reads gzip with one member and with several', async () => {
    await unpack(gzipSync(content), 'gz');
    const parts = [content.subarray(0, 1000), content.subarray(1000)];
    await unpack(Buffer.concat(parts.map((part) => gzipSync(part))), 'gz');
  });

  it.skipIf(!requireTool('xz')).each([
    ['as xz writes it', []],
    ['at its best', ['-9']],
    ['in blocks', ['--block-size=300KiB']],
    ['with CRC32', ['--check=crc32']],
  ])('reads xz %s', async (_what, args) => {
    await unpack(xz(...args), 'xz');
  });

  it.skipIf(!requireTool('xz'))(
    'refuses xz with a check that its reader does not know',
    async () => {
      await expect(unpack(xz('--check=sha256'), 'xz')).rejects.toMatchObject({
        code: 'unpack.malformed',
      });
    },
  );

  it.each(['gz', 'xz'] as const)(
    'refuses a file that is not %s, and one that was cut off',
    async (packing) => {
      const whole = packing === 'gz' ? gzipSync(content) : xz();
      const damaged = Buffer.from(whole);
      damaged.fill(0x55, 400_000, 400_100);
      const hostile = {
        empty: new Uint8Array(),
        text: Buffer.from('<html>404</html>'),
        damaged,
        cut: whole.subarray(0, whole.length - 10),
        half: whole.subarray(0, 300_000),
      };
      for (const [name, bytes] of Object.entries(hostile)) {
        await expect(unpack(bytes, packing), name).rejects.toMatchObject({
          code: 'unpack.malformed',
          exitCode: 5,
          message: expect.stringContaining(`a.${packing}" is not a complete`) as string,
        });
        expect(await listOutput()).toEqual([]);
      }
    },
  );

  it.each(['gz', 'xz'] as const)(
    'blames the file each time, not the reader that it left early: %s',
    async (packing) => {
      const damaged = Buffer.from(packing === 'gz' ? gzipSync(content) : xz());
      damaged.fill(0x55, 400_000, 400_100);
      for (let time = 0; time < 30; time += 1) {
        await expect(unpack(damaged, packing)).rejects.toMatchObject({ code: 'unpack.malformed' });
      }
    },
  );

  it.each(['gz', 'xz'] as const)('stops at its limit, and leaves no file: %s', async (packing) => {
    const whole = packing === 'gz' ? gzipSync(content) : xz();
    await unpack(whole, packing, content.length);
    await expect(unpack(whole, packing, content.length - 1)).rejects.toMatchObject({
      code: 'unpack.too-large',
      exitCode: 5,
    });
    expect(await listOutput()).toEqual([]);
  });

  it('ends when it is aborted, and leaves no file', async () => {
    const packed = join(directory, 'a.gz');
    await writeFile(packed, gzipSync(content));
    const stop = new AbortController();
    const work = unpackFile({
      packed,
      packing: 'gz',
      path: join(directory, 'out', 'a'),
      limit: 1 << 30,
      signal: stop.signal,
      onProgress: () => {
        stop.abort(new Error('enough'));
      },
    });
    await expect(work).rejects.toThrow('enough');
    expect(await listOutput()).toEqual([]);
  });

  it('does not report a missing file as damaged', async () => {
    const file = { packed: join(directory, 'none.gz'), packing: 'gz' } as const;
    const rest = { path: join(directory, 'out', 'a'), limit: 1, signal: AbortSignal.timeout(5000) };
    await expect(unpackFile({ ...file, ...rest })).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
