import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { extractTree } from '../../../src/registry/layers/extract-tree.ts';
import { packLayer, type LayerEntry } from '../../support/images.ts';

const { signal } = new AbortController();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-tree-hostile-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function extract(entries: readonly (readonly [string, LayerEntry])[], limit = 100) {
  const layer = await packLayer([['configs/a', 'a'], ...entries]);
  return extractTree([layer], 'configs', join(folder, 'out'), { signal, limit });
}

describe('a hostile image', () => {
  it.each<readonly [string, string, readonly (readonly [string, LayerEntry])[]]>([
    ['a name with ..', 'layer.path-escape', [['configs/../../etc/passwd', 'x']]],
    [
      'a hard link with ..',
      'layer.path-escape',
      [['configs/b', { type: 'link', linkname: '../../etc/passwd' }]],
    ],
    [
      'a symbolic link to a file of this machine',
      'layer.link-unfollowed',
      [['configs/b', { type: 'symlink', linkname: '/../../etc/passwd' }]],
    ],
    [
      'a symbolic link to a directory',
      'layer.link-unfollowed',
      [['configs/b', { type: 'symlink', linkname: '/configs' }]],
    ],
    [
      'links in a circle',
      'layer.link-loop',
      [
        ['configs/b', { type: 'symlink', linkname: 'c' }],
        ['configs/c', { type: 'symlink', linkname: 'b' }],
      ],
    ],
    ['more bytes than are allowed', 'layer.tree-too-large', [['configs/b', 'x'.repeat(100)]]],
    [
      'one large file under many names',
      'layer.tree-too-large',
      [
        ['configs/b', 'x'.repeat(60)],
        ['configs/c', { type: 'link', linkname: 'configs/b' }],
      ],
    ],
    [
      'one name with many large files',
      'layer.tree-too-large',
      [
        ['configs/b', 'x'.repeat(60)],
        ['configs/b', 'y'.repeat(60)],
      ],
    ],
    ['a name no disk can hold', 'layer.name-too-long', [[`configs/${'b'.repeat(300)}`, 'x']]],
    [
      'a directory that is a link',
      'layer.directory-missing',
      [['configs', { type: 'symlink', linkname: '/etc' }]],
    ],
  ])('with %s is refused and leaves nothing behind', async (_what, code, entries) => {
    await expect(extract(entries)).rejects.toThrow(expect.objectContaining({ code }));
    expect(await readdir(folder)).toEqual([]);
  });

  it('writes nothing outside the tree through a file below a link', async () => {
    const entries = [
      ['configs/b', { type: 'symlink', linkname: 'a' }],
      ['configs/b/c', 'x'],
      ['configs/d', 'file'],
      ['configs/d/e', 'below a file'],
    ] as const;
    expect(await extract(entries)).toEqual({ files: 3, size: 6 });
    expect((await readdir(join(folder, 'out'))).sort()).toEqual(['a', 'b', 'd']);
  });
});
