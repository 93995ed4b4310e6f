import { mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
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
    const members = [...indexTar(archive)];
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
    expect([...indexTar(path)]).toMatchObject([{ name: 'large', size, offset }]);
  });

  it('is refused for a tar that was cut off or damaged', async () => {
    const archive = await makeTar('whole.tar', 'pax', ['one', 'two']);
    const { offset } = [...indexTar(archive)][1] ?? { offset: 0 };
    await truncate(archive, offset + 1);
    expect(() => [...indexTar(archive)]).toThrow('ends inside the member');
    await truncate(archive, offset + 512);
    expect(() => [...indexTar(archive)]).toThrow('ends without the mark of its end');
    await writeFile(archive, Buffer.alloc(4096, 7));
    expect(() => [...indexTar(archive)]).toThrow('has no header of a member at byte 0');
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

  it.each([
    ['a size below zero', header({ size: '-0000001000' })],
    ['a size below zero of an extended header', [paxOf('size=-2048'), header({})]],
    ['a size that is no number', [paxOf('size=many'), header({})]],
    ['half a byte', [paxOf('size=0.5'), header({})]],
    ['a size of digits that are not octal', header({ size: '99999999999' })],
  ])('is refused for a member with %s', async (_, members) => {
    const archive = await writeTar([header({}), members]);
    expect(() => [...indexTar(archive)]).toThrow(/has no size of the member at byte \d+$/);
  });

  it('is refused for a name that no file can have: each of its directories takes memory', async () => {
    const name = Buffer.from(`${'a/'.repeat(5000)}x`);
    const long = [header({ type: 'L', size: octal(name.length) }), padded(name)];
    const archive = await writeTar([...long, header({})]);
    expect(() => [...indexTar(archive)]).toThrow('has a name of 10001 characters');
  });

  it('is refused for more files than the memory has room for', async () => {
    const one = Buffer.concat(Array.from({ length: 10_000 }, () => header({})));
    const archive = await writeTar(Array.from({ length: 41 }, () => one));
    expect(() => indexArchives([archive])).toThrow(
      expect.objectContaining({ code: 'registry.too-large' }),
    );
  });

  it('reads little of the bodies of large members', async () => {
    const size = 8 << 20;
    const archive = await writeTar([]);
    const file = await open(archive, 'w');
    for (let index = 0; index < 1000; index++)
      await file.write(header({ size: octal(size) }), 0, 512, index * (size + 512));
    await file.close();
    await truncate(archive, 1000 * (size + 512) + 1024);
    const { rchar } = await readIo();
    expect([...indexTar(archive)]).toHaveLength(1000);
    expect((await readIo()).rchar - rchar).toBeLessThan(16 << 20);
  });
});

/** Bytes that this process has read, proc_pid_io(5). */
async function readIo(): Promise<{ readonly rchar: number }> {
  const text = await readFile('/proc/self/io', 'utf8');
  return { rchar: Number(/^rchar: (\d+)/.exec(text)?.[1]) };
}

const octal = (size: number): string => size.toString(8).padStart(11, '0');

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);

/** A header that tar(5) would take, if its fields were right. */
function header({ size = octal(0), type = '0' }): Buffer {
  const block = Buffer.alloc(512);
  block.write('docker/file', 0);
  block.write(size, 124, 'latin1');
  block.write(type, 156);
  block.write('ustar', 257);
  block.fill(' ', 148, 156);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** An extended header of one record. */
function paxOf(record: string): Buffer {
  const bytes = Buffer.from(`${record.length + 4} ${record}\n`);
  return Buffer.concat([header({ type: 'x', size: octal(bytes.length) }), padded(bytes)]);
}

async function writeTar(pieces: readonly (Buffer | readonly Buffer[])[]): Promise<string> {
  const archive = join(directory, 'hostile.tar');
  await writeFile(archive, Buffer.concat([...pieces.flat(), Buffer.alloc(1024)]));
  return archive;
}
