import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SealiftError } from '../../../src/base/errors.ts';
import { extractFile, readFiles, type Layer } from '../../../src/registry/layers/read.ts';
import { compress, layerOf, packLayer, packTar } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';
import { runs } from '../../support/properties.ts';

const { signal } = new AbortController();
const symlinkTo = (linkname: string) => ({ type: 'symlink', linkname }) as const;
const linkTo = (linkname: string) => ({ type: 'link', linkname }) as const;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const extract = (layer: Layer, path: string): Promise<unknown> =>
  extractFile([layer], path, join(folder, 'out'), { signal });

describe('a hostile layer', () => {
  it.each(['../escape', 'a/../../escape', '/../escape', 'a/..', './../escape', 'd/.wh...'])(
    'is refused for an entry named %s, with that name',
    async (name) => {
      const layer = await packLayer([
        [name, 'x'],
        ['a', '1'],
      ]);
      await expect(extract(layer, 'a')).rejects.toMatchObject({ code: 'layer.path-escape' });
      await expect(readFiles([layer], () => false, { signal })).rejects.toThrow('..');
      expect(await readdir(folder)).toEqual([]);
    },
  );

  it('is refused for a hard link out of the image', async () => {
    const layer = await packLayer([['a', linkTo('../../etc/shadow')]]);
    await expect(extract(layer, 'a')).rejects.toMatchObject({ code: 'layer.path-escape' });
  });

  it('cannot reach the host through symbolic links: "/" and ".." end at the image', async () => {
    const layer = await packLayer([
      ['absolute', symlinkTo('/etc/passwd')],
      ['relative', symlinkTo('../../../../../../../../etc/passwd')],
      ['etc', symlinkTo('../../../etc')],
    ]);
    await expect(extract(layer, 'absolute')).rejects.toMatchObject({ code: 'layer.link-loop' });
    const tame = await packLayer([
      ['absolute', symlinkTo('/etc/passwd')],
      ['relative', symlinkTo('../../../../../../../../etc/passwd')],
    ]);
    for (const path of ['absolute', 'relative']) {
      await expect(extract(tame, path)).rejects.toMatchObject({ code: 'layer.file-missing' });
    }
    expect((await readFiles([tame], () => true, { signal })).size).toBe(0);
  });

  it.each([
    ['a symbolic link to itself', [['a', symlinkTo('a')]]],
    [
      'two that point to each other',
      [
        ['a', symlinkTo('b')],
        ['b', symlinkTo('/a')],
      ],
    ],
    ['one that grows with every step', [['a', symlinkTo('a/x')]]],
    [
      'two hard links that name each other',
      [
        ['a', linkTo('b')],
        ['b', linkTo('a')],
      ],
    ],
  ] as const)('is refused for %s', async (_title, entries) => {
    const layer = await packLayer(entries);
    await expect(extract(layer, 'a')).rejects.toMatchObject({ code: 'layer.link-loop' });
  });

  it('finds nothing behind a hard link to itself', async () => {
    const layer = await packLayer([['a', linkTo('a')]]);
    await expect(extract(layer, 'a')).rejects.toMatchObject({ code: 'layer.file-missing' });
  });

  it('is refused for a name that no file system can hold', async () => {
    const layer = await packLayer([
      ['d/'.repeat(3000) + 'f', 'x'],
      ['a', '1'],
    ]);
    await expect(extract(layer, 'a')).rejects.toMatchObject({ code: 'layer.path-malformed' });
  });

  it('that unpacks to more than may be read at once is refused before it is in memory', async () => {
    const megabyte = Buffer.alloc(1 << 20);
    const layer = await packLayer(
      Array.from({ length: 64 }, (_, index) => [`file-${index}`, megabyte] as const),
    );
    const reading = readFiles([layer], () => true, { signal, limit: 10 << 20 });
    await expect(reading).rejects.toMatchObject({ code: 'layer.files-too-large' });
    const few = await readFiles([layer], (path) => path === 'file-63', { signal, limit: 1 << 20 });
    expect(few.get('file-63')?.length).toBe(1 << 20);
  });

  it('of zeros is streamed, regardless of its unpacked size', async () => {
    const bomb = await packTar([['zeros', Buffer.alloc(64 << 20)]]);
    const layer = layerOf(compress(bomb, 'gzip'));
    expect(await extract(layer, 'zeros')).toMatchObject({ size: 64 << 20 });
  });
});

describe('a damaged layer', () => {
  const tarOf = (): Promise<Buffer> =>
    packTar([
      ['a', 'x'.repeat(100_000)],
      ['b', '1'],
    ]);

  it.each([0.1, 0.5, 0.9, 0.999])('that ends after %d of its bytes is malformed', async (part) => {
    const tar = await tarOf();
    const forms = [
      gzipSync(tar, { level: 0 }),
      ...(requireTool('zstd') ? [compress(tar, 'zstd')] : []),
    ];
    for (const bytes of forms) {
      const layer = layerOf(bytes.subarray(0, Math.floor(bytes.length * part)));
      await expect(extract(layer, 'b')).rejects.toMatchObject({ code: 'layer.malformed' });
    }
    await expect(extract(layerOf(tar.subarray(0, 50_000)), 'b')).rejects.toMatchObject({
      code: 'layer.malformed',
    });
    expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('whose source breaks off is reported with the reason and the layer', async () => {
    const gzip = gzipSync(await tarOf());
    const layer: Layer = {
      ...layerOf(gzip),
      open: () =>
        Promise.resolve(
          Readable.from(
            (function* () {
              yield gzip.subarray(0, 60);
              throw new Error('cable pulled');
            })(),
            { objectMode: false },
          ),
        ),
    };
    const reading = readFiles([layer], () => true, { signal });
    await expect(reading).rejects.toThrow('cable pulled');
    await expect(reading).rejects.toMatchObject({ code: 'layer.malformed' });
  });

  it('with garbage in place of a header is malformed', async () => {
    const tar = await tarOf();
    const layer = layerOf(Buffer.concat([tar, Buffer.alloc(512, 'garbage')]));
    await expect(extract(layer, 'b')).rejects.toMatchObject({ code: 'layer.malformed' });
    await expect(extract(layerOf(Buffer.from('hello')), 'b')).rejects.toMatchObject({
      code: 'layer.malformed',
    });
  });

  it('of no bytes, or with zeros after its gzip stream, is read without an error', async () => {
    expect((await readFiles([layerOf(Buffer.alloc(0))], () => true, { signal })).size).toBe(0);
    const layer = layerOf(Buffer.concat([gzipSync(await tarOf()), Buffer.alloc(4096)]));
    const files = await readFiles([layer], () => true, { signal });
    expect([...files.keys()]).toEqual(['a', 'b']);
  });

  it('with garbage after its gzip stream is malformed', async () => {
    const layer = layerOf(Buffer.concat([gzipSync(await tarOf()), Buffer.from('garbage')]));
    await expect(extract(layer, 'b')).rejects.toMatchObject({ code: 'layer.malformed' });
  });

  it.each([
    ['xz', 'fd377a585a00'],
    ['bzip2', '425a6839'],
  ])('packed with %s is refused with the name of the packing', async (name, hex) => {
    const layer = layerOf(Buffer.from(hex.padEnd(600, '0'), 'hex'));
    await expect(extract(layer, 'b')).rejects.toMatchObject({
      code: 'layer.compression-unknown',
      found: name,
    });
  });

  it.skipIf(!requireTool('tar'))('with a sparse file gives all other files', async () => {
    const path = join(folder, 'sparse');
    await writeFile(path, '');
    await truncate(path, 1 << 20);
    await writeFile(join(folder, 'plain'), 'text');
    const format = ['--format=posix', '-S', '-C', folder, '-cf', '-'];
    const layer = layerOf(execFileSync('tar', [...format, 'sparse', 'plain']));
    const plain = await readFiles([layer], (name) => name === 'plain', { signal });
    expect([...plain.keys()]).toEqual(['plain']);
    await expect(extract(layer, 'sparse')).rejects.toMatchObject({ code: 'layer.file-unreadable' });
    await Promise.all(['sparse', 'plain'].map((name) => rm(join(folder, name))));
  });

  it('of any bytes gives files or a SealiftError', async () => {
    const gzip = gzipSync(
      await packTar([
        ['a', 'x'.repeat(3000)],
        ['b', symlinkTo('a')],
      ]),
    );
    const flips = fc.array(fc.tuple(fc.nat(gzip.length - 1), fc.nat(255)), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(flips, fc.boolean(), async (changes, packed) => {
        const bytes = packed ? Buffer.from(gzip) : await packTar([['a', 'x'.repeat(3000)]]);
        for (const [at, value] of changes) bytes[at] = value;
        const reading = readFiles([layerOf(bytes)], () => true, { signal });
        const outcome: unknown = await reading.catch((error: unknown) => error);
        expect(outcome instanceof Map || outcome instanceof SealiftError).toBe(true);
      }),
      { numRuns: runs(200) },
    );
  });
});
