import { copyFile, mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerVerify } from '../../src/cli/medium/verify.ts';
import { openIso } from '../../src/iso/read/open.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { verifyIso } from '../../src/media/verify.ts';
import { makeIso } from '../support/iso.ts';
import { blobPath, makeMedium, type TestMedium } from '../support/medium.ts';
import { runs } from '../support/properties.ts';
import { runCommand } from '../support/run-command.ts';
import { makeTinyIso } from '../support/tiny-iso.ts';
import { requireTool } from '../support/tools.ts';

let directory: string;
let medium: TestMedium;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-verify-'));
  medium = await makeMedium(directory);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const verify = (path: string, signal = new AbortController().signal): Promise<Verification> =>
  verifyIso(path, { signal, onProgress: () => undefined });

/** A copy of the medium after something was done to it. */
async function damaged(change: (path: string) => Promise<void>, of = medium.path): Promise<string> {
  const path = join(directory, 'damaged.iso');
  await copyFile(of, path);
  await change(path);
  return path;
}

async function overwrite(path: string, offset: number, bytes: Uint8Array | string): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(Buffer.from(bytes), 0, bytes.length, offset);
  await file.close();
}

/** The last layer of an image: its largest, and its own. */
const ownLayerOf = (name: string): TestMedium['index']['extents'][number] => {
  const image = medium.images.find((image) => image.name === name)?.image;
  const [digest] = [...(image?.blobs.keys() ?? [])].slice(-1);
  return medium.extentOf(blobPath(digest ?? 'sha256:'));
};

describe('verification of a medium', () => {
  it('finds no problem in an intact medium, and reports how much of it was checked', async () => {
    const { ok, problems, oddities, damagedImages, checked } = await verify(medium.path);
    expect({ ok, problems, oddities, damagedImages }).toEqual({
      ok: true,
      problems: [],
      oddities: [],
      damagedImages: [],
    });
    const digested = medium.index.extents.filter(({ digest }) => digest !== undefined);
    expect(checked).toEqual({
      extents: digested.length,
      bytes: digested.reduce((sum, { size }) => sum + size, 0),
      images: 3,
    });
  });

  it('finds a flipped bit anywhere on the medium', async () => {
    const path = await damaged(() => Promise.resolve());
    const end = Math.max(...medium.index.extents.map(({ offset, size }) => offset + size));
    const { offset: layer } = ownLayerOf('etcd');
    const file = await open(path, 'r+');
    const flip = async (at: number, bit: number): Promise<void> => {
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, at);
      byte[0] = (byte[0] ?? 0) ^ (1 << bit);
      await file.write(byte, 0, 1, at);
    };
    // Structures and small files are in front of the layers, and more likely to be misread.
    const place = fc.oneof(fc.nat(Math.min(layer, 120_000)), fc.nat(layer), fc.nat(end - 1));
    await fc.assert(
      fc.asyncProperty(place, fc.nat(7), async (at, bit) => {
        await flip(at, bit);
        expect((await verify(path)).problems.length).toBeGreaterThan(0);
        await flip(at, bit);
      }),
      { numRuns: runs(25) },
    );
    await file.close();
    expect((await verify(path)).ok).toBe(true);
  });

  it('finds garbage in any sector', async () => {
    const path = await damaged(() => Promise.resolve());
    const { offset: layer } = ownLayerOf('etcd');
    const place = fc.oneof(fc.integer({ min: 16, max: 60 }), fc.nat(Math.floor(layer / 2048)));
    const garbage = fc.uint8Array({ minLength: 1, maxLength: 4096 });
    await fc.assert(
      fc.asyncProperty(place, garbage, async (sector, bytes) => {
        const file = await open(path, 'r+');
        const before = Buffer.alloc(bytes.length);
        await file.read(before, 0, bytes.length, sector * 2048);
        await file.write(bytes, 0, bytes.length, sector * 2048);
        const { ok } = await verify(path);
        expect(ok).toBe(before.equals(bytes));
        await file.write(before, 0, before.length, sector * 2048);
        await file.close();
      }),
      { numRuns: runs(15) },
    );
  });

  it('names every image that needs a damaged layer', async () => {
    const { offset, size, digest } = ownLayerOf('etcd');
    const one = await verify(await damaged((path) => overwrite(path, offset + size - 1, 'x')));
    expect(one.damagedImages).toEqual(['etcd']);
    expect(one.problems).toMatchObject([{ kind: 'content', offset, size, expected: digest }]);
    const [etcd] = medium.images;
    const shared = [...(etcd?.image.blobs.keys() ?? [])][1] ?? 'sha256:';
    const at = medium.extentOf(blobPath(shared)).offset;
    const all = await verify(await damaged((path) => overwrite(path, at + 100, 'xxxx')));
    expect(all.damagedImages).toEqual(['cli', 'etcd', 'tools']);
  });

  it('finds a changed version in the index by the digest of the index', async () => {
    const { offset } = medium.extentOf('/sealift/index.json');
    const bytes = Buffer.alloc(60_000);
    const file = await open(medium.path);
    await file.read(bytes, 0, bytes.length, offset);
    await file.close();
    const at = offset + bytes.indexOf('"4.21.3"');
    const { problems } = await verify(await damaged((path) => overwrite(path, at, '"4.21.4"')));
    expect(problems).toMatchObject([
      { kind: 'index', problem: '/sealift/index.json does not have the digest it names' },
    ]);
    expect(problems[0]?.expected).not.toBe(problems[0]?.found);
  });

  it('accepts an index without a digest, which the first versions wrote, and notes that', async () => {
    const folder = await mkdtemp(join(directory, 'old-'));
    const { path } = await makeMedium(folder, (text) =>
      text.replace(/^ {2}"digest": "sha256:[0-9a-f]{64}",\n/m, ''),
    );
    const { ok, oddities } = await verify(path);
    expect({ ok, oddities }).toEqual({
      ok: true,
      oddities: ['/sealift/index.json does not name its own digest'],
    });
  });

  it('checks the contents when the structure is damaged', async () => {
    const layer = ownLayerOf('cli');
    const path = await damaged(async (path) => {
      await overwrite(path, 18 * 2048, new Uint8Array(2048).fill(0xff));
      await overwrite(path, layer.offset, 'damage');
    });
    const { problems, damagedImages } = await verify(path);
    expect(damagedImages).toEqual(['cli']);
    expect(problems.map(({ kind }) => kind)).toContain('content');
  });
});

describe('verification of a truncated image', () => {
  const cutAt = (size: number): Promise<string> => damaged((path) => truncate(path, size));

  it('lists every lost path and image, and checks the bytes that remain', async () => {
    const { offset } = ownLayerOf('tools');
    const { problems, damagedImages, checked } = await verify(await cutAt(offset + 100));
    const gone = medium.index.extents.filter(
      (extent) => extent.offset + extent.size > offset + 100,
    );
    expect(problems[0]).toMatchObject({ kind: 'structure' });
    expect(problems[0]?.problem).toContain('ISO image is incomplete');
    const lost = problems.slice(1);
    expect(lost.every(({ kind }) => kind === 'lost')).toBe(true);
    expect(lost.map(({ path }) => path)).toEqual(gone.flatMap(({ paths }) => paths));
    expect(damagedImages).toContain('tools');
    expect(checked.extents).toBeGreaterThan(10);
  });

  it('reports whether an extent is lost entirely or in part', async () => {
    const { offset, size } = ownLayerOf('etcd');
    const { problems } = await verify(await cutAt(offset + size - 1));
    const own = problems.find((problem) => problem.offset === offset);
    expect(own?.problem).toBe('continues past the end of the file');
    const others = problems.filter((problem) => (problem.offset ?? 0) > offset);
    for (const { problem } of others) expect(problem).toBe('is past the end of the file');
  });

  it('reports that the directories are lost', async () => {
    const { ok, problems } = await verify(await cutAt(45_000));
    expect(ok).toBe(false);
    expect(problems[0]?.problem).toContain('ISO image is incomplete');
  });

  it('names the lost files of an image without an index', async () => {
    const path = join(directory, 'tiny-cut.iso');
    await writeFile(path, makeTinyIso().subarray(0, 22 * 2048 + 100));
    const { problems } = await verify(path);
    expect(problems).toMatchObject([
      { kind: 'structure' },
      { kind: 'lost', path: '/sub/data.bin', offset: 23 * 2048, size: 2048 },
    ]);
  });

  it('prints the names of the lost images', async () => {
    const path = await cutAt(medium.extentOf('/sealift/index.json').offset + 65_536);
    const { exitCode, stdout } = await runCommand(registerVerify, ['verify', path], { cwd: '/' });
    expect(exitCode).toBe(8);
    expect(stdout).toMatch(/^lost: \/registry\/docker\S+ is past the end of the file$/m);
    expect(stdout).toMatch(/^damaged images: cli, etcd, tools$/m);
  });
});

describe.skipIf(!requireTool('genisoimage'))('verification of an image of another maker', () => {
  it('reports a damaged boot catalog, and still checks the rest', async () => {
    const foreign = await makeIso(directory, {
      files: { 'boot/x.img': 4096, 'a.txt': 'hello\n' },
      args: ['-r', '-b', 'boot/x.img', '-no-emul-boot', '-c', 'boot/boot.cat'],
    });
    expect((await verify(foreign)).ok).toBe(true);
    const path = await damaged(async (path) => {
      const bytes = Buffer.alloc(2048);
      const file = await open(path, 'r+');
      await file.read(bytes, 0, 2048, 17 * 2048);
      await file.write(Buffer.alloc(64, 0xff), 0, 64, bytes.readUInt32LE(71) * 2048);
      await file.close();
    }, foreign);
    const { problems } = await verify(path);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ kind: 'structure' });
    expect(problems[0]?.problem).toContain('boot catalog');
  });

  it('prints twenty lost paths and the number of the others, and lists all of them in JSON', async () => {
    const names = Array.from({ length: 33 }, (_, number) => `file-${number}`);
    const files = Object.fromEntries(names.map((name) => [name, name.repeat(1000)]));
    const many = await makeIso(directory, { files, args: ['-r'] }, 'many.iso');
    const iso = await openIso(many);
    const nodes = await iso.children(iso.root);
    const starts = nodes.map((node) => (node.kind === 'file' ? (node.extents[0]?.offset ?? 0) : 0));
    await iso.close();
    const path = await damaged((path) => truncate(path, Math.min(...starts)), many);
    const text = await runCommand(registerVerify, ['verify', path], { cwd: '/' });
    const json = await runCommand(registerVerify, ['verify', path, '-o', 'json'], { cwd: '/' });
    expect([text.exitCode, json.exitCode]).toEqual([8, 8]);
    expect(text.stdout.match(/^lost: \/file-/gm)).toHaveLength(20);
    expect(text.stdout).toContain('lost: and 13 more; -o json lists all');
    const { problems } = JSON.parse(json.stdout) as Verification;
    const lost = problems.filter(({ kind }) => kind === 'lost').map(({ path }) => path);
    expect(lost.sort()).toEqual(names.map((name) => `/${name}`).sort());
  });
});

describe('verification of a path that is not an image', () => {
  it.each([
    ['a file that does not exist', () => join(directory, 'none.iso'), 'it does not exist'],
    ['a directory without a list of sites', () => directory, 'has no sites.json'],
    ['a device', () => '/dev/null', 'it is neither a regular file nor a block device'],
  ])('refuses %s', async (_what, path, reason) => {
    const { exitCode, stderr } = await runCommand(registerVerify, ['verify', path()], {
      cwd: directory,
    });
    expect(exitCode).toBe(3);
    expect(stderr).toContain(reason);
  });

  it('reports that a file of zeros is not an ISO image', async () => {
    const path = join(directory, 'zeros.iso');
    await writeFile(path, new Uint8Array(100_000));
    const { ok, problems } = await verify(path);
    expect(ok).toBe(false);
    expect(problems[0]?.kind).toBe('structure');
  });
});
