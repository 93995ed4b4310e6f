import { mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { cacheFile, type FileDigests, readUnchanged } from '../../../src/base/disk/file-digests.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'equal-files-'));
});
afterEach(() => rm(directory, { recursive: true }));

const DIGESTS = { forget: () => Promise.resolve() } as unknown as FileDigests;
const at = (name: string): string => join(directory, name);
const read = () => Promise.resolve('read');

async function replaceBy(text: string): Promise<string> {
  await writeFile(at('other'), text);
  await rename(at('other'), at('base.iso'));
  return read();
}

it('reads a base ISO that another build replaces by an equal file meanwhile, and by no other', async () => {
  await writeFile(at('base.iso'), 'bytes');
  const base = { kind: 'file', path: at('base.iso'), size: 5, digest: digestOf('bytes') } as const;
  expect(await readUnchanged(base, DIGESTS, () => replaceBy('bytes'))).toBe('read');
  const changed = { code: 'base-iso.changed' };
  await expect(readUnchanged(base, DIGESTS, () => replaceBy('other'))).rejects.toMatchObject(
    changed,
  );
  await replaceBy('bytes');
  const edit = () => writeFile(at('base.iso'), 'bytes').then(read); // the same file, written to
  await expect(readUnchanged(base, DIGESTS, edit)).rejects.toMatchObject(changed);
});

it('keeps a file that another build finished first, and replaces a damaged one', async () => {
  const put = async (name: string, text: string) => {
    await writeFile(at(name), text);
    return cacheFile(at(name), at('kept'), digestOf(text));
  };
  const first = await put('one', 'bytes');
  const { ino } = await stat(at('kept'));
  expect(await put('two', 'bytes')).toEqual(first);
  expect((await stat(at('kept'))).ino).toBe(ino);
  await expect(stat(at('two'))).rejects.toMatchObject({ code: 'ENOENT' });
  await writeFile(at('kept'), 'wrong');
  await put('three', 'bytes');
  expect(await readFile(at('kept'), 'utf8')).toBe('bytes');
});
