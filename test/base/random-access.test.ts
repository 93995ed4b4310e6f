import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRandomAccess } from '../../src/base/random-access.ts';

test.each([
  ['whole blocks', 0, 8192],
  ['a range that begins and ends inside of blocks', 100, 5000],
  ['a hole', 16_384, 4096],
  ['the end of a file that is not whole blocks', 20_480, 12],
])('%s have the same bytes when they are read past the page cache', async (_, offset, size) => {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-access-'));
  const path = join(directory, 'image');
  await writeFile(path, Buffer.alloc(8192, 'bytes of an image'));
  await truncate(path, 20_492);
  const access = await openRandomAccess(path);
  try {
    const found = await access.readUncached?.(
      offset,
      size,
      Buffer.from(new SharedArrayBuffer(8192)),
    );
    expect(found).toEqual(await access.read(offset, size));
    await expect(access.readUncached?.(20_000, 8192, Buffer.alloc(8192))).rejects.toThrow(
      expect.objectContaining({ code: 'iso.out-of-bounds' }),
    );
  } finally {
    await access.close();
    await rm(directory, { recursive: true });
  }
});
