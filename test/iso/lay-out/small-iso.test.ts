import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkStructure } from '../../../src/iso/check/structure.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { encodeSmallIso, type SmallIso } from '../../../src/iso/lay-out/lay-out.ts';
import { requireTool } from '../../support/tools.ts';
import { runs } from '../../support/properties.ts';

const LONG_NAME = `${'a-very-long-manifest-name'.repeat(6)}.yaml`;
const EPOCH = Date.parse('2026-01-02T03:04:05Z') / 1000;
const SAMPLE: SmallIso = {
  volumeId: 'cluster-config',
  directories: ['/cluster-configuration', '/cluster-configuration/manifests', '/extra-manifests'],
  files: [
    { path: '/cluster-configuration/manifest.json', bytes: Buffer.from('{}'), mode: 0o600 },
    { path: '/extra-manifests/50-Worker.yaml', bytes: Buffer.from('kind: A\n') },
    { path: '/extra-manifests/50-worker.yaml', bytes: Buffer.from('kind: B\n') },
    { path: '/extra-manifests/ünïcode.json', bytes: Buffer.alloc(5000, 'x') },
    { path: `/extra-manifests/${LONG_NAME}`, bytes: Buffer.from('kind: A\n') },
    { path: '/extra-manifests/empty.yaml', bytes: new Uint8Array(0) },
  ],
  epoch: EPOCH,
};

describe('a small ISO', () => {
  let directory: string;
  let path: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-small-'));
    path = join(directory, 'small.iso');
    await writeFile(path, encodeSmallIso(SAMPLE));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('has exactly the directories and files it was given, each with its bytes and mode', async () => {
    expect(await readTree(path)).toEqual(expectedTree(SAMPLE));
  });

  it('has a sound structure and the label as written, in lower case', async () => {
    const iso = await openIso(path);
    try {
      const problems = [];
      for await (const problem of checkStructure(iso)) problems.push(problem);
      expect(problems).toEqual([]);
      expect(iso.volume.volumeId).toBe('cluster-config');
      expect([iso.joliet, iso.bootCatalog]).toEqual([undefined, undefined]);
    } finally {
      await iso.close();
    }
  });

  it('takes less than 60 KiB beyond its content, and at least 128 KiB', () => {
    expect(encodeSmallIso(SAMPLE).length).toBe(128 * 1024);
    const files = SAMPLE.files.map((file) => ({
      ...file,
      bytes: Buffer.alloc(100_000, file.path),
    }));
    const content = files.length * 100_000;
    expect(encodeSmallIso({ ...SAMPLE, files }).length - content).toBeLessThan(60 * 1024);
  });

  it('has the same bytes for the same input in any order of its files', () => {
    const files = [...SAMPLE.files].reverse();
    const directories = [...SAMPLE.directories].reverse();
    const other = encodeSmallIso({ ...SAMPLE, files, directories });
    expect(Buffer.compare(other, encodeSmallIso(SAMPLE))).toBe(0);
  });

  it('refuses a name that Linux would not read', () => {
    const files = [{ path: `/${'n'.repeat(254)}`, bytes: new Uint8Array(1) }];
    expect(() => encodeSmallIso({ ...SAMPLE, files })).toThrow(/has 254 bytes/);
  });

  it.skipIf(!requireTool('isoinfo'))('is read by isoinfo, with Rock Ridge and no Joliet', () => {
    const about = run('isoinfo', ['-d', '-i', path]);
    expect(about).toContain('Volume id: cluster-config\n');
    expect(about).toContain('Rock Ridge signatures version 1 found');
    expect(about).toContain('NO Joliet present');
    expect(about).not.toContain('El Torito VD');
    const files = run('isoinfo', ['-R', '-f', '-i', path]).trim().split('\n').sort();
    expect(files).toEqual([...expectedTree(SAMPLE).keys()].sort());
    const plain = run('isoinfo', ['-f', '-i', path]);
    expect(plain).toContain('/CLUSTER_CONFIGURATION/MANIFEST.JSON;1');
    expect(run('isoinfo', ['-R', '-x', '/extra-manifests/50-worker.yaml', '-i', path])).toBe(
      'kind: B\n',
    );
  });

  it.skipIf(!requireTool('bsdtar'))('is read by bsdtar', () => {
    const listed = run('bsdtar', ['-tf', path]).trim().split('\n').sort();
    const names = [...expectedTree(SAMPLE).keys()].map((name) => name.slice(1));
    const withoutSlash = listed.map((name) => name.replace(/\/$/, '')).filter((n) => n !== '.');
    expect(withoutSlash).toEqual(names.sort());
    expect(run('bsdtar', ['-xOf', path, `extra-manifests/${LONG_NAME}`])).toBe('kind: A\n');
  });

  it.skipIf(!requireTool('xorriso'))('is read by xorriso, with modes and times', () => {
    const found = run('xorriso', [
      ...['-osirrox', 'on', '-indev', path, '-find', '/', '-exec', 'lsdl'],
    ]);
    expect(found).toMatch(/-rw-------.* '\/cluster-configuration\/manifest\.json'/);
    expect(found).toMatch(/drwxr-xr-x.* '\/cluster-configuration\/manifests'/);
    const report = run('xorriso', ['-indev', path, '-toc', '-pvd_info']);
    expect(report).toContain('Volume Id    : cluster-config\n');
  });

  it.skipIf(!requireTool('blkid'))('is found by its label', () => {
    const label = run('blkid', ['-p', '-o', 'value', '-s', 'LABEL', path]);
    expect(label.trim()).toBe('cluster-config');
    expect(run('blkid', ['-p', '-o', 'value', '-s', 'TYPE', path]).trim()).toBe('iso9660');
  });

  it('is read back with any content as it was written', async () => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
      .filter((text) => !/[/\0]/.test(text) && !['.', '..'].includes(text));
    const trees = fc.record({
      directories: fc.uniqueArray(name, { maxLength: 5 }),
      files: fc.dictionary(name, fc.uint8Array({ maxLength: 5000 }), { maxKeys: 40 }),
    });
    await fc.assert(
      fc.asyncProperty(trees, async ({ directories, files }) => {
        const input: SmallIso = {
          volumeId: 'any',
          epoch: EPOCH,
          directories: directories.map((d) => `/dirs/${d}`),
          files: Object.entries(files).map(([n, bytes]) => ({ path: `/files/${n}`, bytes })),
        };
        const other = join(directory, 'any.iso');
        await writeFile(other, encodeSmallIso(input));
        expect(await readTree(other)).toEqual(expectedTree(input));
      }),
      { numRuns: runs(40) },
    );
  });
});

const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, [...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      ...process.env,
      PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
      LC_ALL: 'C.UTF-8',
    },
  });

/** Paths with mode and content; directories have none. */
type Tree = ReadonlyMap<string, string>;

async function readTree(path: string): Promise<Tree> {
  const iso = await openIso(path);
  try {
    const tree = new Map<string, string>();
    for await (const { path: at, node } of iso.walk()) {
      const content =
        node.kind === 'file' ? Buffer.from(await iso.readFile(node)).toString('hex') : '';
      tree.set(at, `${node.mode.toString(8)} ${content}`);
    }
    return tree;
  } finally {
    await iso.close();
  }
}

function expectedTree({ directories, files }: SmallIso): Tree {
  const tree = new Map<string, string>();
  const addParents = (path: string): void => {
    for (let at = path.indexOf('/', 1); at > 0; at = path.indexOf('/', at + 1)) {
      tree.set(path.slice(0, at), '40755 ');
    }
  };
  for (const path of directories) addParents(`${path}/`);
  for (const { path, bytes, mode } of files) {
    addParents(path);
    const content = Buffer.from(bytes).toString('hex');
    tree.set(path, `${(0o100000 | (mode ?? 0o644)).toString(8)} ${content}`);
  }
  return tree;
}

/** Kept beside the judges so that a change of the format is seen. */
describe('the structures of a small ISO', () => {
  it('are descriptors at sector 16, path tables at 18 and the root directory at 20', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sealift-small-'));
    try {
      const path = join(directory, 'x.iso');
      await writeFile(path, encodeSmallIso({ ...SAMPLE, files: [] }));
      const iso = await openIso(path);
      expect(iso.volume.rootRecord.extent).toBe(20);
      expect([iso.volume.lPathTable, iso.volume.mPathTable]).toEqual([18, 19]);
      await iso.close();
      expect((await readFile(path)).length % 2048).toBe(0);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
