import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeDirectory } from '../../../src/base/disk/files.ts';

it('directories are made by any number of callers at once, regardless of who makes the missing parents', async () => {
  const root = await mkdtemp(join(tmpdir(), 'sealift-make-directory-'));
  for (let round = 0; round < 50; round++) {
    const parent = join(root, `${round}`, 'a', 'b');
    const paths = [...Array(20).keys()].map((at) => join(parent, `${at % 4}`, 'c'));
    await Promise.all(paths.map((path) => makeDirectory(path)));
    for (const path of paths) expect((await stat(path)).isDirectory()).toBe(true);
  }
  await rm(root, { recursive: true });
});

it('a directory that the kernel denies is an error, not an endless wait', async () => {
  await expect(makeDirectory('/proc/sealift/a')).rejects.toMatchObject({ code: 'ENOENT' });
});
