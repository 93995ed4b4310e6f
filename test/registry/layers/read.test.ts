import { execFileSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import {
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { extractFile, readFiles, type Layer } from '../../../src/registry/layers/read.ts';
import { compress, layerOf, packLayer, packTar, type Compression } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';

const { signal } = new AbortController();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-layers-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const extract = async (layers: readonly Layer[], path: string): Promise<string> => {
  const output = join(folder, 'out');
  await extractFile(layers, path, output, { signal });
  return readFile(output, 'utf8');
};

const texts = async (
  layers: readonly Layer[],
  wanted: (path: string) => boolean = () => true,
): Promise<Record<string, string>> =>
  Object.fromEntries(
    [...(await readFiles(layers, wanted, { signal }))].map(([path, bytes]) => [
      path,
      Buffer.from(bytes).toString(),
    ]),
  );

describe('a file of an image', () => {
  it.each<Compression>(['none', 'gzip', ...(requireTool('zstd') ? (['zstd'] as const) : [])])(
    'is read from a layer packed with %s, regardless of the size of its pieces',
    async (compression) => {
      const tar = await packTar([
        ['./release-manifests/a', 'alpha'],
        ['b', 'beta'.repeat(50_000)],
      ]);
      for (const chunkSize of [3, 1000, 65_536]) {
        const layer = layerOf(compress(tar, compression), chunkSize);
        expect(await extract([layer], 'release-manifests/a')).toBe('alpha');
        expect((await extract([layer], '/b')).length).toBe(200_000);
      }
    },
  );

  it.skipIf(!requireTool('zstd'))(
    'is read from a layer that begins with the skippable frames of a parallel zstd',
    async () => {
      const skipped = Buffer.from('552a4d1804000000ffffffff', 'hex'); // RFC 8878 3.1.2
      const packed = compress(await packTar([['a', 'alpha']]), 'zstd');
      expect(await extract([layerOf(Buffer.concat([skipped, packed]))], 'a')).toBe('alpha');
    },
  );

  it('comes from the topmost layer that has it', async () => {
    const layers = [
      await packLayer([
        ['etc/version', 'old'],
        ['etc/other', 'kept'],
      ]),
      await packLayer([['etc/version', 'new']], 'none'),
    ];
    expect(await extract(layers, 'etc/version')).toBe('new');
    expect(await texts(layers)).toEqual({ 'etc/version': 'new', 'etc/other': 'kept' });
  });

  it('is the last one of its name within a layer', async () => {
    const layer = await packLayer([
      ['a', 'a longer first'],
      ['b', 'x'],
      ['a', 'second'],
    ]);
    expect(await extract([layer], 'a')).toBe('second');
    expect(await texts([layer])).toEqual({ a: 'second', b: 'x' });
  });

  it('is written whole or not at all, with the digest and size of its bytes and mode 0644', async () => {
    const bytes = Buffer.alloc(3_000_000, 'sealift');
    const layer = await packLayer([['big', bytes]]);
    const output = join(folder, 'deep', 'er', 'big');
    const progress: number[] = [];
    const onProgress = (written: number): unknown => progress.push(written);
    const extracted = await extractFile([layer], 'big', output, { signal, onProgress });
    expect(extracted).toEqual({ size: bytes.length, digest: digestOf(bytes) });
    expect(digestOf(await readFile(output))).toBe(extracted.digest);
    expect((await stat(output)).mode & 0o777).toBe(0o644);
    expect(progress.at(-1)).toBe(bytes.length);
    expect(await readdir(join(folder, 'deep', 'er'))).toEqual(['big']);
  });

  it('that is empty is still a file', async () => {
    const layer = await packLayer([['empty', '']]);
    expect(await extract([layer], 'empty')).toBe('');
  });

  it('is named in the error if no layer has it, and nothing is left behind', async () => {
    const layers = [await packLayer([['a', '1']]), await packLayer([['d', { type: 'directory' }]])];
    const output = join(folder, 'nothing', 'here');
    for (const path of ['coreos/coreos-x86_64.iso', 'd', 'a/below', '']) {
      const extraction = extractFile(layers, path, output, { signal });
      await expect(extraction).rejects.toMatchObject({
        code: 'layer.file-missing',
        expected: path,
      });
    }
    expect(await readdir(join(folder, 'nothing'))).toEqual([]);
  });

  it('stops being read when the run is interrupted', async () => {
    const layer = await packLayer([['big', Buffer.alloc(8_000_000, 1)]], 'none');
    const abort = new AbortController();
    const output = join(folder, 'interrupted', 'file');
    const extraction = extractFile([layer], 'big', output, {
      signal: abort.signal,
      onProgress: () => {
        abort.abort(new Error('stop here'));
      },
    });
    await expect(extraction).rejects.toThrow('stop here');
    expect(await readdir(join(folder, 'interrupted'))).toEqual([]);
  });
});

describe('a whiteout', () => {
  it('removes a file, or a directory with all in it, from the layers below and not from its own', async () => {
    const layers = [
      await packLayer([
        ['a/file', '1'],
        ['a/sub/deep', '2'],
        ['keep', '3'],
      ]),
      await packLayer([
        ['a/.wh.file', ''],
        ['a/.wh.sub', ''],
        ['a/sub/new', '4'],
      ]),
    ];
    expect(await texts(layers)).toEqual({ 'keep': '3', 'a/sub/new': '4' });
    await expect(extract(layers, 'a/file')).rejects.toMatchObject({ code: 'layer.file-missing' });
    expect(await extract(layers, 'a/sub/new')).toBe('4');
  });

  it('may be undone by a layer above it', async () => {
    const layers = [
      await packLayer([['a', 'first']]),
      await packLayer([['.wh.a', '']]),
      await packLayer([['a', 'again']]),
    ];
    expect(await texts(layers)).toEqual({ a: 'again' });
  });

  it('of the opaque kind hides what a directory had, wherever it is in the layer', async () => {
    const layers = [
      await packLayer([
        ['d/old', '1'],
        ['d/sub/older', '2'],
        ['e', '3'],
      ]),
      await packLayer([
        ['d/new', '4'],
        ['d/.wh..wh..opq', ''],
      ]),
    ];
    expect(await texts(layers)).toEqual({ 'd/new': '4', 'e': '3' });
  });

  it('is not needed if a directory became a file, or a file a directory', async () => {
    const layers = [
      await packLayer([
        ['x/inner', '1'],
        ['y', '2'],
      ]),
      await packLayer([
        ['x', 'now a file'],
        ['y/inner', 'now a directory'],
      ]),
    ];
    expect(await texts(layers)).toEqual({ 'x': 'now a file', 'y/inner': 'now a directory' });
    await expect(extract(layers, 'x/inner')).rejects.toMatchObject({ code: 'layer.file-missing' });
  });

  it('of the metadata of aufs is ignored', async () => {
    const layer = await packLayer([
      ['.wh..wh.plnk/12.3', 'x'],
      ['a', '1'],
      ['.wh..wh.aufs', ''],
    ]);
    expect(await extract([layer], 'a')).toBe('1');
  });
});

describe('a link', () => {
  const symlinkTo = (linkname: string) => ({ type: 'symlink', linkname }) as const;
  const linkTo = (linkname: string) => ({ type: 'link', linkname }) as const;

  it('of the symbolic kind is followed in any component, relative and absolute', async () => {
    const layers = [
      await packLayer([
        ['usr/lib/os-release', 'here'],
        ['lib', symlinkTo('usr/lib')],
      ]),
      await packLayer([
        ['etc/os-release', symlinkTo('../lib/os-release')],
        ['etc/absolute', symlinkTo('/etc/os-release')],
        ['loopless', symlinkTo('lib/../lib/./os-release')],
      ]),
    ];
    for (const path of ['lib/os-release', 'etc/os-release', 'etc/absolute']) {
      expect(await extract(layers, path)).toBe('here');
    }
    const found = await texts(layers, (path) => path.startsWith('etc/'));
    expect(found).toEqual({ 'etc/os-release': 'here', 'etc/absolute': 'here' });
  });

  it('takes ".." from where a linked directory really is', async () => {
    const layer = await packLayer([
      ['real/deep/dir/x', 'unused'],
      ['real/deep/y', 'right'],
      ['y', 'wrong'],
      ['short', symlinkTo('real/deep/dir')],
      ['to-y', symlinkTo('short/../y')],
    ]);
    expect(await extract([layer], 'to-y')).toBe('right');
  });

  it('of the hard kind means the entry of its own layer, regardless of the layers above', async () => {
    const layers = [
      await packLayer([
        ['data', 'shared'],
        ['alias', linkTo('./data')],
      ]),
      await packLayer([['.wh.data', '']]),
    ];
    expect(await extract(layers, 'alias')).toBe('shared');
    expect(await texts(layers)).toEqual({ alias: 'shared' });
  });

  it('of the hard kind may name a file of a layer below', async () => {
    const layers = [
      await packLayer([['data', 'below']]),
      await packLayer([['alias', linkTo('data')]]),
    ];
    expect(await extract(layers, 'alias')).toBe('below');
  });

  it('to nothing is left out when many files are read', async () => {
    const layer = await packLayer([
      ['broken', symlinkTo('nowhere')],
      ['a', '1'],
    ]);
    expect(await texts([layer])).toEqual({ a: '1' });
  });
});

describe.each(['tar', 'bsdtar'])('a layer packed by %s', (tool) => {
  it.skipIf(!requireTool(tool))('keeps its long names, hard links and symbolic links', async () => {
    const root = join(folder, `root-${tool}`);
    const long = `${'a-directory-with-a-long-name/'.repeat(9)}${'n'.repeat(180)}.json`;
    await mkdir(join(root, long, '..'), { recursive: true });
    await writeFile(join(root, long), 'long');
    await link(join(root, long), join(root, 'hard'));
    await symlink(long, join(root, 'soft'));
    await writeFile(join(root, 'ünïcode'), 'names');
    const packed = join(folder, `${tool}.tar.gz`);
    execFileSync(tool, ['-czf', packed, '-C', root, '.']);
    const layer = {
      ...layerOf(await readFile(packed)),
      open: () => Promise.resolve(createReadStream(packed)),
    };
    expect(await texts([layer])).toEqual({
      [long]: 'long',
      hard: 'long',
      soft: 'long',
      ünïcode: 'names',
    });
    expect(await extract([layer], long)).toBe('long');
    expect(await extract([layer], 'hard')).toBe('long');
  });
});
