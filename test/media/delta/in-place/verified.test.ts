import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { digestOf } from '../../../../src/base/digest.ts';
import { writeWhole } from '../../../../src/base/disk/files.ts';
import { requireCarried } from '../../../../src/media/delta/in-place/verified.ts';

test('a continued apply verifies the bytes of the delta and its patches that it has yet to read', async () => {
  const home = await mkdtemp(join(tmpdir(), 'sealift-verify-'));
  const [delta, patched] = [join(home, 'delta'), join(home, 'patched')];
  const signal = new AbortController().signal;
  const [good, bad] = ['good', 'evil'].map((text) => Buffer.from(text));
  const digest = digestOf('good');
  const carried = (['delta', 'delta', 'patched'] as const).map((kind, at) => ({
    ...{ digest, size: 4, in: kind, offset: at === 1 ? 4 : 0 },
  }));
  const steps = carried.map(({ in: kind, offset }) => ({
    ...{ kind: 'write' as const, offset: 0, size: 4, from: { kind, offset } },
  }));
  const check = (from: number) =>
    requireCarried(carried, steps.slice(from), { delta, patched, signal });
  await writeFile(delta, Buffer.concat([bad ?? '', good ?? ''] as Buffer[]));
  await writeFile(patched, good ?? '');
  await expect(check(0)).rejects.toMatchObject({ code: 'delta.damaged' });
  await check(1);
  await writeFile(patched, bad ?? '');
  await expect(check(1)).rejects.toMatchObject({ code: 'delta.damaged' });
  await check(3);
  await rm(home, { recursive: true });
});

test('all bytes are written when the system writes only three at a time', async () => {
  const disk = Buffer.alloc(12);
  type Call = readonly [Uint8Array, number, number, number];
  const write = (...[bytes, from, size, position]: Call) => {
    disk.set(bytes.subarray(from, from + Math.min(size, 3)), position);
    return Promise.resolve({ bytesWritten: Math.min(size, 3), buffer: bytes });
  };
  await writeWhole({ write } as never, Buffer.from('0123456789'), 2);
  expect(disk.toString('latin1')).toBe('\0\x000123456789');
});
