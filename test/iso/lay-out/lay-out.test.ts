import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { checkStructure } from '../../../src/iso/check/structure.ts';
import type { Extent, FileContent, Layout, TreeFile } from '../../../src/iso/extent.ts';
import { layOutIso, type LayoutOptions } from '../../../src/iso/lay-out/lay-out.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { decodeRockRidge } from '../../../src/iso/directory/rock-ridge.ts';
import { scanBaseIso, type BaseImage } from '../../../src/iso/lay-out/scan.ts';
import { decodeSystemUse } from '../../../src/iso/directory/system-use.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';
import { writeLayout } from '../../support/write-layout.ts';
import { runs } from '../../support/properties.ts';

const EPOCH = 1_767_323_045; // 2026-01-02T03:04:05Z
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const small = (text: string): FileContent => ({ kind: 'bytes', bytes: encode(text) });
/** What the blobs of this file hold, by digest. */
const blobs = new Map<string, Uint8Array>();
const blob = (text: string): FileContent => {
  const bytes = encode(text);
  const digest = digestOf(bytes);
  blobs.set(digest, bytes);
  return { kind: 'blob', digest, size: bytes.length };
};
const HEX = digestOf('payload').slice(7);

let directory: string;
let base: BaseImage;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-layout-'));
  await writeFile(join(directory, 'base.iso'), makeTinyIso());
  base = await scanBaseIso(join(directory, 'base.iso'));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

const layOut = (options: Partial<LayoutOptions>): Layout =>
  layOutIso({ base, files: [], remove: [], patches: [], epoch: EPOCH, ...options });

const byPath = ({ extents }: Layout, path: string): Extent => {
  const found = extents.find(({ paths }) => paths.includes(path));
  if (!found) throw new Error(`no extent for ${path}`);
  return found;
};

/** One line an extent, as a person would check it. */
const describeExtents = ({ extents }: Layout): string[] =>
  extents.map(({ offset, size, source, digest, paths }) =>
    [offset, size, source.kind, digest?.slice(7, 15) ?? '-', ...paths].join(' '),
  );

const registry: readonly TreeFile[] = [
  { path: `/registry/docker/registry/v2/blobs/sha256/aa/${HEX}/data`, content: blob('payload') },
  { path: `/registry/images/registry/${HEX}`, content: blob('payload') },
  {
    path: '/registry/images/registry/version',
    content: small('Directory Transport Version: 1.1\n'),
  },
  { path: '/sub/readme', content: small('new in an old directory') },
  { path: '/readme.txt', content: small('replaced'), mode: 0o600 },
];

describe('the layout of an ISO', () => {
  it('keeps the base, then has path tables, directories, small files, and blobs', () => {
    expect(describeExtents(layOut({ files: registry }))).toMatchInlineSnapshot(`
      [
        "0 32768 base c3502047",
        "32768 4096 bytes aae826cb",
        "36864 8192 base 0811479b",
        "45056 5 base 2cf24dba",
        "45061 2043 base 4a5560d2",
        "47104 2048 base e4fde89f /sub/data.bin",
        "49152 184 bytes eef56a6d",
        "49336 1864 zero -",
        "51200 184 bytes 401f5acc",
        "51384 1864 zero -",
        "53248 26624 bytes 1693e311",
        "79872 8 bytes 6c1aa504 /readme.txt",
        "79880 2040 zero -",
        "81920 33 bytes c08ff8b6 /registry/images/registry/version",
        "81953 2015 zero -",
        "83968 23 bytes 5c3621f2 /sub/readme",
        "83991 2025 zero -",
        "86016 7 blob 239f59ed /registry/docker/registry/v2/blobs/sha256/aa/239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5/data /registry/images/registry/239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5",
        "86023 2041 zero -",
      ]
    `);
  });

  it('covers every byte once, in order, and has the digest of everything except padding', () => {
    fc.assert(
      fc.property(fc.array(arbitraryFile, { maxLength: 40 }), (files) => {
        const layout = layOut({ files: uniquePaths(files) });
        let end = 0;
        for (const { offset, size, source, digest } of layout.extents) {
          expect(offset).toBe(end);
          expect(size).toBeGreaterThan(0);
          expect(digest === undefined).toBe(source.kind === 'zero');
          if (source.kind === 'bytes') expect(digestOf(source.bytes)).toBe(digest);
          if (source.kind === 'blob') expect(offset % 4096).toBe(0);
          end = offset + size;
        }
        expect(end).toBe(layout.size);
        expect(layout.size % 2048).toBe(0);
      }),
      { numRuns: runs(50) },
    );
  });

  it('is read back as exactly the requested tree', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryFile, { maxLength: 40 }), async (some) => {
        const files = uniquePaths(some);
        const found = await readBack(layOut({ files }));
        const expected = new Map([
          ['/readme.txt', digestOf('hello')],
          ['/sub/data.bin', digestOf(new Uint8Array(2048).fill(7))],
          ...files.map(({ path, content }) => [path, digestOfContent(content)] as const),
        ]);
        expect([...found].sort()).toEqual([...expected].sort());
      }),
      { numRuns: runs(25) },
    );
  });

  it('is the same for the same files in any order', () => {
    const forward = layOut({ files: registry });
    const backward = layOut({ files: [...registry].reverse() });
    expect(backward).toEqual(forward);
  });

  it('has one extent for equal contents, regardless of the number of their paths', () => {
    const layout = layOut({
      files: [
        { path: '/b', content: small('equal') },
        { path: '/a', content: small('equal') },
        { path: '/blob-and-bytes', content: blob('equal') },
      ],
    });
    const { paths, source } = byPath(layout, '/a');
    expect(paths).toEqual(['/a', '/b', '/blob-and-bytes']);
    expect(source.kind).toBe('bytes');
  });

  it('has no removed files, and no removed directories with their contents', async () => {
    const layout = layOut({ remove: ['/sub', '/not-there/at-all'] });
    expect([...(await readBack(layout)).keys()]).toEqual(['/readme.txt']);
    expect(layout.extents.some(({ paths }) => paths.includes('/sub/data.bin'))).toBe(false);
  });

  it('gives new entries the owner root, the modes 0755 and 0644 and one time, and does not change old ones', async () => {
    const path = await write(layOut({ files: registry }));
    const iso = await openIso(path);
    const look = async (name: string): Promise<unknown[]> => {
      const node = await iso.find(name);
      return [node?.mode.toString(8), node?.uid, node?.gid, node?.modifiedAt?.toISOString()];
    };
    const time = '2026-01-02T03:04:05.000Z';
    expect(await look('/registry/images')).toEqual(['40755', 0, 0, time]);
    expect(await look('/registry/images/registry/version')).toEqual(['100644', 0, 0, time]);
    expect(await look('/readme.txt')).toEqual(['100600', 0, 0, time]);
    expect(await look('/sub')).toEqual(['40555', 0, 0, time]);
    expect(await look('/sub/data.bin')).toEqual(['100444', 0, 0, time]);
    expect((await iso.find('/sub/readme'))?.isoIdentifier).toEqual(
      Uint8Array.from(Buffer.from('README.;1')),
    );
    expect((await iso.find('/readme.txt'))?.isoIdentifier).toEqual(
      Uint8Array.from(Buffer.from('README.TXT;1')),
    );
    await iso.close();
  });

  it('counts a directory itself, its name, and its directories as its links', async () => {
    const files = ['/sub/x/1', '/sub/y/2', '/sub/y/z/3'].map((path) => ({
      path,
      content: small(path),
    }));
    const iso = await openIso(await write(layOut({ files })));
    const links = async (name: string): Promise<number | undefined> => {
      const records = await iso.find(name);
      return records?.records[0] && readLinks(records.records[0].systemUse);
    };
    expect([await links('/sub'), await links('/sub/y'), await links('/sub/x')]).toEqual([4, 3, 2]);
    await iso.close();
  });
});

describe('patches of the base', () => {
  it('turn the pieces that they touch into bytes with their own digest', () => {
    const bytes = encode('PATCHED');
    const layout = layOut({ patches: [{ offset: 23 * 2048 + 100, bytes }] });
    const extent = byPath(layout, '/sub/data.bin');
    const expected = new Uint8Array(2048).fill(7);
    expected.set(bytes, 100);
    expect(extent.digest).toBe(digestOf(expected));
    expect(extent.source).toEqual({ kind: 'bytes', bytes: expected });
    expect(byPath(layout, '/readme.txt').source.kind).toBe('base');
  });

  it('may cross from one piece into the next', () => {
    const bytes = new Uint8Array(2048 + 10).fill(1);
    const layout = layOut({ patches: [{ offset: 22 * 2048 + 2, bytes }] });
    expect(byPath(layout, '/readme.txt').digest).toBe(
      digestOf(Buffer.from('he\u0001\u0001\u0001')),
    );
    expect(byPath(layout, '/sub/data.bin').digest).not.toBe(digestOf(new Uint8Array(2048).fill(7)));
  });

  it('that change no byte leave the base unchanged', () => {
    const layout = layOut({ patches: [{ offset: 22 * 2048, bytes: encode('hello') }] });
    expect(byPath(layout, '/readme.txt').source.kind).toBe('base');
  });
});

describe('the index', () => {
  const render = (extents: readonly Extent[]): Uint8Array =>
    encode(
      JSON.stringify(extents.map(({ source, ...extent }) => ({ ...extent, kind: source.kind }))),
    );
  const index = { path: '/sealift/index.json', render };

  it('lists the extents of the ISO it is in, its own without digest', () => {
    const layout = layOut({ files: registry, index });
    const { source, digest } = byPath(layout, index.path);
    if (source.kind !== 'bytes') throw new Error('index is not rendered');
    expect(digestOf(source.bytes)).toBe(digest);
    const listed = JSON.parse(Buffer.from(source.bytes).toString()) as unknown;
    const expected = layout.extents.map(({ source: { kind }, ...extent }) => ({ ...extent, kind }));
    const own = expected.find(({ paths }) => paths.includes(index.path));
    delete own?.digest;
    expect(listed).toEqual(JSON.parse(JSON.stringify(expected)));
  });

  it('is before the blobs, and is a file like any other', async () => {
    const layout = layOut({ files: registry, index });
    const found = await readBack(layout);
    const own = byPath(layout, index.path);
    expect(found.get(index.path)).toBe(own.digest);
    expect(own.offset).toBeLessThan(byPath(layout, `/registry/images/registry/${HEX}`).offset);
  });

  it('replaces an older one of the base', () => {
    const layout = layOut({ index: { ...index, path: '/readme.txt' } });
    expect(layout.extents.filter(({ paths }) => paths.includes('/readme.txt'))).toHaveLength(1);
  });
});

describe('the layout of an ISO that replaces another', () => {
  it('leaves blobs where the earlier layout has them, in an ISO that every reader finds whole', async () => {
    const files = (texts: readonly string[]): TreeFile[] =>
      texts.map((text) => ({ path: `/blobs/${text.slice(0, 12)}`, content: blob(text) }));
    const first = Array.from({ length: 9 }, (_, i) => `blob ${i} ${'x'.repeat(5000 * (i + 1))}`);
    const index = {
      path: '/index.json',
      render: (extents: readonly Extent[]) =>
        encode(JSON.stringify(extents.map(({ offset, size }) => [offset, size]))),
    };
    const before = layOut({ files: files(first), index });
    const { areas } = before;
    if (!areas) throw new Error('no areas');
    const offsets = before.extents.flatMap(({ digest, offset }) =>
      digest && offset >= areas.structures ? [[digest, offset] as const] : [],
    );
    const places = { areas, offsets };
    const changed = [...first.slice(0, 3), 'another blob', ...first.slice(4)];
    const after = layOut({ files: files(changed), index, places });
    for (const text of first.toSpliced(3, 1)) {
      const path = `/blobs/${text.slice(0, 12)}`;
      expect(byPath(after, path).offset).toBe(byPath(before, path).offset);
    }
    expect(after.size).toBeLessThanOrEqual(before.size + 4096);
    expect(layOut({ files: files(first), index, places })).toEqual(before);
    const path = join(directory, 'kept.iso');
    await writeLayout(path, after, {
      basePath: join(directory, 'base.iso'),
      openBlob: (digest) => blobs.get(digest),
    });
    const iso = await openIso(path);
    try {
      for await (const problem of checkStructure(iso)) expect.fail(JSON.stringify(problem));
      const node = await iso.find('/blobs/another blob');
      if (node?.kind !== 'file') throw new Error('no file');
      expect(Buffer.from(await iso.readFile(node, 100)).toString()).toBe('another blob');
    } finally {
      await iso.close();
    }
  });
});

describe('a large payload', () => {
  it('of files over 4 GiB has several extents in the directory, but one in the layout', async () => {
    const size = 2 ** 33 + 12_345;
    const files: TreeFile[] = [
      { path: '/huge', content: { kind: 'blob', digest: digestOf('huge'), size } },
      { path: '/behind', content: blob('behind') },
    ];
    const layout = layOut({ files });
    expect(byPath(layout, '/huge').size).toBe(size);
    const iso = await openIso(await write(layout));
    const node = await iso.find('/huge');
    if (node?.kind !== 'file') throw new Error('no file');
    expect(node.size).toBe(size);
    expect(node.extents.map((extent) => extent.size)).toEqual([
      2 ** 32 - 2048,
      2 ** 32 - 2048,
      12_345 + 4096,
    ]);
    expect(node.records.map(({ flags }) => flags)).toEqual([0x80, 0x80, 0]);
    const ends = node.extents.map((extent) => extent.offset + extent.size);
    expect(node.extents.slice(1).map(({ offset }) => offset)).toEqual(ends.slice(0, -1));
    await iso.close();
  });

  it('of 30,000 files is laid out in seconds of processor time', () => {
    const files = Array.from({ length: 30_000 }, (_, number): TreeFile => {
      const hex = digestOf(String(number)).slice(7);
      const content: FileContent =
        number % 2 === 0 ? small(hex) : { kind: 'blob', digest: `sha256:${hex}`, size: 5000 };
      return { path: `/registry/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`, content };
    });
    const start = process.cpuUsage();
    const render = (extents: readonly Extent[]): Uint8Array =>
      encode(JSON.stringify(extents.length));
    const layout = layOut({ files, index: { path: '/index', render } });
    expect(process.cpuUsage(start).user).toBeLessThan(15_000_000);
    expect(layout.extents.length).toBeGreaterThan(30_000);
  });
});

const component = fc.oneof(
  fc.constantFrom('a', 'b', 'sub', 'A', 'a.b', '_layers', 'new'),
  fc.stringMatching(/^[a-zA-Z0-9_ ~.-]{1,100}$/).filter((name) => !/^\.\.?$/.test(name)),
  fc.constantFrom('n'.repeat(253), 'ü'.repeat(120), HEX),
);

const arbitraryFile: fc.Arbitrary<TreeFile> = fc.record({
  path: fc
    .array(component, { minLength: 1, maxLength: 12 })
    .map((components) => `/${components.join('/')}`),
  content: fc.oneof(
    fc.string({ maxLength: 3000 }).map(small),
    fc.string({ minLength: 1, maxLength: 9000 }).map(blob),
  ),
});

/** Without files at or below the paths of others. */
function uniquePaths(files: readonly TreeFile[]): TreeFile[] {
  const taken = new Set(['/readme.txt', '/sub', '/sub/data.bin']);
  const parents = new Set<string>();
  const kept: TreeFile[] = [];
  for (const file of files) {
    const above = file.path
      .split('/')
      .slice(1, -1)
      .map((_, index, all) => `/${all.slice(0, index + 1).join('/')}`);
    const isBelowFile = above.some((path) => path !== '/sub' && taken.has(path));
    if (taken.has(file.path) || parents.has(file.path) || isBelowFile) continue;
    taken.add(file.path);
    for (const path of above) parents.add(path);
    kept.push(file);
  }
  return kept;
}

const digestOfContent = (content: TreeFile['content']): string => {
  if (content.kind === 'image') throw new Error('no image is a file here');
  return content.kind === 'blob' ? content.digest : digestOf(content.bytes);
};

async function write(layout: Layout): Promise<string> {
  const path = join(directory, 'out.iso');
  await writeLayout(path, layout, { basePath: base.path, openBlob: (digest) => blobs.get(digest) });
  return path;
}

/** Digests of the files that our reader finds, by path; nothing may be wrong with the structure. */
async function readBack(layout: Layout): Promise<Map<string, string>> {
  const iso = await openIso(await write(layout));
  const found = new Map<string, string>();
  for await (const problem of checkStructure(iso)) throw new Error(JSON.stringify(problem));
  for await (const { path, node } of iso.walk()) {
    if (node.kind === 'file') found.set(path, digestOf(await iso.readFile(node)));
  }
  await iso.close();
  return found;
}

const readLinks = (systemUse: Uint8Array): number | undefined =>
  decodeRockRidge(decodeSystemUse(systemUse)).links;
