import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nameAside, sweepAside, sweepDirectory } from '../../../src/base/disk/aside.ts';

describe('a name for an incomplete file', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-aside-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const at = (name: string): string => join(directory, name);
  const left = async (): Promise<string[]> => (await readdir(directory)).sort();

  /** As a process that is gone would have called it. */
  const nameDead = (name: string): string => {
    const { pid } = spawnSync('true');
    return at(`${name}.${pid}-1-0123456789ab.tmp`);
  };

  it('is different each time', async () => {
    expect(await nameAside('a')).not.toBe(await nameAside('a'));
  });

  it('is swept when its process has ended, and only next to the named path', async () => {
    const own = await nameAside(at('a.iso'));
    const strangers = ['a.iso.tmp', 'a.iso.1-2.tmp', 'a.iso.0123456789ab.tmp'].map(at);
    const others = [nameDead('b.iso'), nameDead('a.iso.sha256')];
    for (const path of [own, ...strangers, ...others, nameDead('a.iso')]) {
      await writeFile(path, 'x');
    }
    await sweepAside(at('a.iso'));
    expect((await left()).map(at)).toEqual([own, ...strangers, ...others].sort());
  });

  it('is swept from a directory, with everything below it, after a minute without writes', async () => {
    const old = nameDead('tree');
    await mkdir(join(old, 'staged'), { recursive: true });
    await writeFile(join(old, 'staged/0'), 'x');
    await utimes(old, 1, 1);
    const young = nameDead('young');
    const own = await nameAside(at('own'));
    for (const path of [young, own]) await writeFile(path, 'x');
    await utimes(own, 1, 1);
    await sweepDirectory(directory);
    expect((await left()).map(at)).toEqual([young, own].sort());
    await sweepDirectory(directory, { alone: true });
    expect((await left()).map(at)).toEqual([own]);
  });

  it('is not found if there is no directory', async () => {
    await expect(sweepDirectory(at('none'))).resolves.toBeUndefined();
    await expect(sweepAside(at('none/a'))).resolves.toBeUndefined();
  });
});
