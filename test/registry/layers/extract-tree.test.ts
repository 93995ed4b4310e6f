import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { extractTree } from '../../../src/registry/layers/extract-tree.ts';
import { readFiles, type Layer } from '../../../src/registry/layers/read.ts';
import { packLayer, type Compression, type LayerEntry } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';
import { runs } from '../../support/properties.ts';

const { signal } = new AbortController();
let folder = '';
let count = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-tree-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Every file of a directory with its text. */
async function readTree(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    return [path.slice(directory.length + 1), await readFile(path, 'utf8')] as const;
  });
  return Object.fromEntries(await Promise.all(texts));
}

async function extract(
  layers: readonly Layer[],
  directory = 'configs',
): Promise<Record<string, string>> {
  const output = join(folder, String(count++));
  await extractTree(layers, directory, output, { signal });
  return readTree(output);
}

describe('a directory of an image', () => {
  it.each<Compression>(['none', 'gzip', ...(requireTool('zstd') ? (['zstd'] as const) : [])])(
    'is written with all its files from a layer packed with %s',
    async (compression) => {
      const layer = await packLayer(
        [
          ['./configs/a/catalog.json', '{"a":1}'],
          ['configs/b.yaml', 'x'.repeat(3_000_000)],
          ['configs-old/c', 'beside'],
          ['etc/d', 'elsewhere'],
        ],
        compression,
      );
      const output = join(folder, compression);
      expect(await extractTree([layer], '/configs/', output, { signal })).toEqual({
        files: 2,
        size: 3_000_007,
      });
      expect(Object.keys(await readTree(output)).sort()).toEqual(['a/catalog.json', 'b.yaml']);
    },
  );

  it('is the result of all layers together', async () => {
    const layers = [
      await packLayer([
        ['configs/gone/catalog.json', 'old'],
        ['configs/hidden/one', 'old'],
        ['configs/kept', 'kept'],
        ['configs/changed', 'old'],
        ['configs/turned/file', 'old'],
      ]),
      await packLayer(
        [
          ['configs/.wh.gone', ''],
          ['configs/hidden/.wh..wh..opq', ''],
          ['configs/hidden/two', 'new'],
          ['configs/changed', 'new'],
          ['configs/turned', 'a file now'],
        ],
        'none',
      ),
    ];
    expect(await extract(layers)).toEqual({
      'kept': 'kept',
      'changed': 'new',
      'hidden/two': 'new',
      'turned': 'a file now',
    });
  });

  it('comes back in a layer above the one that removed it', async () => {
    const layers = [
      await packLayer([['configs/old', 'old']]),
      await packLayer([['.wh.configs', '']]),
      await packLayer([['configs/new', 'new']]),
    ];
    expect(await extract(layers)).toEqual({ new: 'new' });
    expect(await extract(layers, '')).toEqual({ 'configs/new': 'new' });
  });

  it('has the targets of hard and symbolic links, wherever they are in the image', async () => {
    const layers = [
      await packLayer([
        ['data/outside', 'outside'],
        ['configs/first', 'first'],
        ['configs/second', { type: 'link', linkname: 'configs/first' }],
      ]),
      await packLayer([
        ['configs/.wh.first', ''],
        ['configs/relative', { type: 'symlink', linkname: '../data/outside' }],
        ['configs/absolute', { type: 'symlink', linkname: '/data/outside' }],
      ]),
    ];
    expect(await extract(layers)).toEqual({
      second: 'first',
      relative: 'outside',
      absolute: 'outside',
    });
  });

  it('has the last of entries with one name', async () => {
    const layer = await packLayer([
      ['configs/a', 'a longer first'],
      ['configs/a', 'second'],
      ['configs/b', 'file'],
      ['configs/b', { type: 'directory' }],
      ['configs/b/c', 'below'],
    ]);
    expect(await extract([layer])).toEqual({ 'a': 'second', 'b/c': 'below' });
  });

  it('leaves nothing behind but itself', async () => {
    const directory = join(folder, 'alone');
    const layer = await packLayer([['configs/a', 'a']]);
    await extractTree([layer], 'configs', join(directory, 'out'), { signal });
    await expect(
      extractTree([layer], 'absent', join(directory, 'other'), { signal }),
    ).rejects.toThrow(expect.objectContaining({ code: 'layer.directory-missing' }));
    await expect(
      extractTree([layer], 'configs', join(directory, 'out'), { signal }),
    ).rejects.toThrow(expect.objectContaining({ code: 'layer.output-exists' }));
    expect(await readdir(directory)).toEqual(['out']);
  });

  it('stops being written when the run is aborted', async () => {
    const layer = await packLayer([['configs/a', 'a']]);
    const output = join(folder, 'stopped');
    await expect(
      extractTree([layer], 'configs', output, { signal: AbortSignal.abort() }),
    ).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });
});

describe('files, links and whiteouts in any layers', () => {
  const name = fc.constantFrom(
    'configs',
    'configs/a',
    'configs/a/b',
    'configs/c',
    'd',
    'configs/a/e',
  );
  const whiteout = fc.constantFrom('.wh.configs', 'configs/.wh.a', 'configs/a/.wh..wh..opq');
  const entry = fc.oneof(
    fc.tuple(name, fc.string({ maxLength: 3 })),
    fc.tuple(whiteout, fc.constant('')),
    fc.tuple(name, fc.constant<LayerEntry>({ type: 'directory' })),
    fc.tuple(
      name,
      name.map((linkname): LayerEntry => ({ type: 'link', linkname })),
    ),
  );
  const image = fc.array(fc.array(entry, { maxLength: 6 }), { minLength: 1, maxLength: 4 });

  const link = (linkname: string): LayerEntry => ({ type: 'link', linkname });

  type Entries = readonly (readonly [string, LayerEntry])[];

  /** What there is of a promise, or the code for which it is refused: links may lead to each other. */
  const outcomeOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.catch((error: unknown) => (error as { code: unknown }).code);

  async function readOneByOne(layers: readonly Layer[]): Promise<Record<string, string>> {
    const read = await readFiles(layers, (path) => path.startsWith('configs/'), { signal });
    return Object.fromEntries(
      [...read].map(([path, bytes]) => [path.slice(8), Buffer.from(bytes).toString()]),
    );
  }

  async function packImage(layers: readonly Entries[]): Promise<readonly Layer[]> {
    const all: Entries[] = [[['configs/base', 'base']], ...layers, [['configs/last', '']]];
    return Promise.all(all.map((entries) => packLayer(entries, 'none')));
  }

  it('are written with the contents that reading them one by one gives', async () => {
    await fc.assert(
      fc.asyncProperty(image, async (layers) => {
        const all = await packImage(layers);
        expect(await outcomeOf(extract(all))).toEqual(await outcomeOf(readOneByOne(all)));
      }),
      { numRuns: runs(150) },
    );
  });

  it('are refused by writing and by reading if two are links to each other', async () => {
    const all = await packImage([
      [
        ['configs/a', link('configs/c')],
        ['configs/c', link('configs/a')],
      ],
    ]);
    await expect(extract(all)).rejects.toMatchObject({ code: 'layer.link-loop' });
    await expect(readOneByOne(all)).rejects.toMatchObject({ code: 'layer.link-loop' });
  });

  it.each<Entries[number]>([
    ['.wh.configs', ''],
    ['configs/.wh..wh..opq', ''],
    ['configs/.wh.a', ''],
    ['configs', link('configs')],
  ])(
    'leave out a link to its own name next to %s, which hides the layers below',
    async (...hiding) => {
      const all = await packImage([
        [['configs/a', 'hidden']],
        [hiding, ['configs/a', link('configs/a')]],
      ]);
      expect(Object.keys(await extract(all))).not.toContain('a');
      expect(await readOneByOne(all)).toEqual(await extract(all));
    },
  );

  it.each<Entries[]>([
    [
      [['configs/c', 'found']],
      [['d', link('configs/c')]],
      [
        ['.wh.configs', ''],
        ['configs/a', link('d')],
      ],
    ],
    [
      [['configs', 'found']],
      [
        ['configs/a', link('configs')],
        ['configs', link('configs')],
      ],
    ],
  ])('have link targets in layers below one that hides the directory (%#)', async (...layers) => {
    const all = await packImage(layers);
    expect(await extract(all)).toMatchObject({ a: 'found' });
    expect(await readOneByOne(all)).toEqual(await extract(all));
  });

  it('are written the same when layers that do not touch the directory are left out', async () => {
    const outside = fc.array(
      fc.oneof(
        fc.tuple(fc.constantFrom('d', 'e/f', 'configs-old'), fc.string({ maxLength: 3 })),
        fc.tuple(fc.constantFrom('.wh.d', 'e/.wh..wh..opq'), fc.constant('')),
      ),
      { maxLength: 3 },
    );
    const link = fc.tuple(
      fc.constantFrom('configs/link', 'configs/a/link'),
      fc.constantFrom<LayerEntry>(
        { type: 'symlink', linkname: '/d' },
        { type: 'link', linkname: 'e/f' },
        { type: 'symlink', linkname: '../configs/c' },
      ),
    );
    const linked = fc.array(fc.oneof(entry, link), { maxLength: 6 });
    const stack = fc.array(fc.tuple(fc.boolean(), linked, outside), { minLength: 1, maxLength: 5 });
    let skipped = 0;
    const attempt = async (
      layers: readonly Layer[],
      mayTouch?: (layer: Layer) => boolean,
    ): Promise<unknown> => {
      const output = join(folder, String(count++));
      const options = { signal, ...(mayTouch && { mayTouch }) };
      return outcomeOf(
        extractTree(layers, 'configs', output, options).then(() => readTree(output)),
      );
    };
    await fc.assert(
      fc.asyncProperty(stack, async (parts) => {
        const packed = await Promise.all(
          parts.map(([touches, inside, beside]) =>
            packLayer(touches ? [...inside, ...beside] : beside, 'none'),
          ),
        );
        const opened = new Set<Layer>();
        const layers = packed.map((layer): Layer => {
          const watched: Layer = { ...layer, open: () => (opened.add(watched), layer.open()) };
          return watched;
        });
        const whole = await attempt(packed);
        const part = await attempt(layers, (layer) => parts[layers.indexOf(layer)]?.[0] ?? true);
        expect(part).toEqual(whole);
        skipped += layers.length - opened.size;
      }),
      { numRuns: runs(300) },
    );
    expect(skipped).toBeGreaterThan(100);
  });

  it('are not read below a layer that hides the directory from them', async () => {
    const below: Layer = {
      ...(await packLayer([['configs/old', 'old']], 'none')),
      open: () => Promise.reject(new Error('it should not be opened')),
    };
    for (const hiding of ['configs/.wh..wh..opq', '.wh.configs', '.wh..wh..opq']) {
      const layer = await packLayer(
        [
          [hiding, ''],
          ['configs/new', 'new'],
        ],
        'none',
      );
      expect(await extract([below, layer])).toEqual({ new: 'new' });
    }
  });
});
