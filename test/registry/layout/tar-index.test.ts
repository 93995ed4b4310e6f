import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { archiveTree, indexArchives } from '../../../src/registry/layout/archive-tree.ts';
import { indexTar } from '../../../src/registry/layout/tar-index.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-tar-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const LONG = `docker/${'a'.repeat(90)}/${'b'.repeat(90)}/${'c'.repeat(120)}`;

/** A tar by GNU tar, of files with their own names as content. */
async function makeTar(name: string, format: string, names: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(directory, 'files-'));
  const archive = join(directory, name);
  for (const path of names) {
    await runProcess('mkdir', ['-p', join(folder, path, '..')]);
    await writeFile(join(folder, path), path);
  }
  await runProcess('tar', [`--format=${format}`, '-cf', archive, '-C', folder, '.']);
  return archive;
}

const textOf = async (archives: readonly string[], path: string): Promise<string> =>
  Buffer.from((await archiveTree(indexArchives(archives)).read(path)) ?? []).toString('utf8');

describe('the index of a tar', () => {
  it.each(['pax', 'gnu', 'ustar'])('has every regular file and its place: %s', async (format) => {
    const names = ['short', 'docker/link', ...(format === 'ustar' ? [] : [LONG])];
    const archive = await makeTar(`${format}.tar`, format, names);
    const members = indexTar(archive);
    expect(members.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const name of names) expect(await textOf([archive], `/${name}`)).toBe(name);
  });

  it.each([
    ['gnu', 512],
    ['pax', 1536],
  ])('has files larger than 8 GiB: %s', async (format, offset) => {
    const size = 9 * 2 ** 30;
    const [large, path] = [join(directory, 'large'), join(directory, 'large.tar')];
    await writeFile(large, '');
    await truncate(large, size);
    const tar = `tar --format=${format} -cf - -C "$0" large | head -c ${offset} > "$1"`;
    await runProcess('sh', ['-c', tar, directory, path]);
    await truncate(path, offset + size + 1024);
    expect(indexTar(path)).toMatchObject([{ name: 'large', size, offset }]);
  });

  it('is refused for a tar that was cut off or damaged', async () => {
    const archive = await makeTar('whole.tar', 'pax', ['one', 'two']);
    const { offset } = indexTar(archive)[1] ?? { offset: 0 };
    await truncate(archive, offset + 1);
    expect(() => indexTar(archive)).toThrow('ends inside the member');
    await truncate(archive, offset + 512);
    expect(() => indexTar(archive)).toThrow('ends without the mark of its end');
    await writeFile(archive, Buffer.alloc(4096, 7));
    expect(() => indexTar(archive)).toThrow('has no header of a member at byte 0');
  });

  it('takes the file of a later tar, and no name that leads out of the tree', async () => {
    const first = await makeTar('first.tar', 'pax', ['docker/a', 'docker/b']);
    const second = join(directory, 'second.tar');
    await writeFile(join(directory, 'x'), 'later');
    const options = ['-cPf', second, '--transform=s,^x$,docker/a,', '-C', directory, 'x'];
    await runProcess('tar', options);
    expect(await textOf([first, second], '/docker/a')).toBe('later');
    expect(await textOf([first, second], '/docker/b')).toBe('docker/b');
    const outside = join(directory, 'outside.tar');
    await runProcess('tar', ['-cPf', outside, '--transform=s,^x$,../../x,', '-C', directory, 'x']);
    expect(indexArchives([outside]).list('')).toEqual([]);
  });
});
