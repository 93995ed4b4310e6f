import { copyFile, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkStructure } from '../../../src/iso/check/structure.ts';
import { digestOf } from '../../../src/base/digest.ts';
import type { TreeFile } from '../../../src/iso/extent.ts';
import { layOutIso } from '../../../src/iso/lay-out/lay-out.ts';
import { openIso, type IsoImage } from '../../../src/iso/read/open.ts';
import { scanBaseIso } from '../../../src/iso/lay-out/scan.ts';
import type { StructureProblem } from '../../../src/iso/check/found.ts';
import {
  makeCoreosIso,
  makeIso,
  makeTestDirectory,
  TEST_TIME,
  type TestContent,
} from '../../support/iso.ts';
import { writeLayout } from '../../support/write-layout.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'xorriso', 'isohybrid', 'mformat'].map(requireTool).every(Boolean);

const DEEP = 'a/b/c/d/e/f/g/h/i/j/k/l/m';
const FILES: Readonly<Record<string, TestContent>> = {
  'one.txt': 'one',
  'empty': '',
  'larger': 5000,
  ['long'.repeat(50)]: 'x',
  [`${DEEP}/file`]: 'deep',
  ...Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`many/directory-${n}/f`, `${n}`])),
};

describe.skipIf(!hasTools)('the structure of an image', () => {
  let directory: string;
  let good: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
    good = join(directory, 'good.iso');
    await copyFile(await makeCoreosIso(directory, { files: FILES }), good);
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function check(path: string): Promise<StructureProblem[]> {
    const iso = await openIso(path);
    const problems: StructureProblem[] = [];
    for await (const problem of checkStructure(iso)) problems.push(problem);
    await iso.close();
    return problems;
  }

  /** Problems of the good image after a change of its bytes. */
  async function checkChanged(
    change: (iso: IsoImage) => Promise<readonly (readonly [number, Uint8Array])[]>,
  ): Promise<StructureProblem[]> {
    const path = join(directory, 'changed.iso');
    await copyFile(good, path);
    const iso = await openIso(path);
    const changes = await change(iso);
    await iso.close();
    const file = await open(path, 'r+');
    for (const [offset, bytes] of changes) await file.write(bytes, 0, bytes.length, offset);
    await file.close();
    return check(path);
  }

  async function flip(iso: IsoImage, offset: number): Promise<readonly [number, Uint8Array]> {
    const [byte = 0] = await iso.readBytes(offset, 1);
    return [offset, Uint8Array.of(byte ^ 1)];
  }

  /** Byte of the image where the directory record of a file begins. */
  async function recordAt(iso: IsoImage, path: string): Promise<number> {
    const parent = await iso.find(path.slice(0, path.lastIndexOf('/')));
    const node = await iso.find(path);
    if (parent?.kind !== 'directory' || !node) throw new Error(`no ${path}`);
    const bytes = Buffer.from(await iso.readBytes(parent.extent.offset, parent.extent.size));
    return parent.extent.offset + bytes.indexOf(node.isoIdentifier) - 33;
  }

  it('of a CoreOS live image that is also a disk has no problem', async () => {
    expect(await check(good)).toEqual([]);
  });

  it.each([
    ['genisoimage with relocated directories', { args: ['-r', '-J', '-joliet-long'] }],
    ['genisoimage with deep directories', { args: ['-r', '-D'] }],
    ['genisoimage without Rock Ridge', { args: ['-D', '-l'] }],
    ['xorriso', { args: ['-r', '-J', '-joliet-long'], program: 'xorriso' as const }],
    ['xorriso without Joliet', { args: ['-r'], program: 'xorriso' as const }],
  ])('made by %s has no damage, and no oddity except the known ones', async (name, options) => {
    const path = await makeIso(directory, { files: FILES, ...options }, `${name}.iso`);
    const problems = await check(path);
    // genisoimage -D: `..` of a directory below the eighth level is the directory itself.
    expect(problems.filter(({ problem }) => !problem.startsWith('its parent is'))).toEqual([]);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('of an image that was grown by a registry has no problem', async () => {
    const bytes = Buffer.from('payload');
    const content = { kind: 'bytes', bytes } as const;
    const digest = digestOf(bytes);
    const blob = { kind: 'blob', digest, size: bytes.length } as const;
    const files: TreeFile[] = Array.from({ length: 100 }, (_, n) => [
      { path: `/registry/${DEEP}/${'f'.repeat(60)}${n}/link`, content },
      { path: `/registry/${DEEP}/${'f'.repeat(60)}${n}/data`, content: blob },
    ]).flat();
    const layout = layOutIso({
      base: await scanBaseIso(good),
      files,
      remove: ['/coreos/miniso.dat'],
      patches: [],
      epoch: TEST_TIME.getTime() / 1000,
    });
    const path = join(directory, 'grown.iso');
    await writeLayout(path, layout, { basePath: good, openBlob: () => bytes });
    expect(await check(path)).toEqual([]);
  });

  it('is odd when records are not in order', async () => {
    const problems = await checkChanged(async (iso) => [
      [(await recordAt(iso, '/one.txt')) + 33, Buffer.from('AAA')],
    ]);
    expect(problems).toMatchObject([
      {
        severity: 'warning',
        path: '/',
        problem: expect.stringMatching(/not in the order/) as string,
      },
    ]);
  });

  // Live ISOs of s390x have the first: genisoimage writes it on machines of their byte order.
  it.each([
    [0, 'warning', 'the record of its parent has the name of the directory itself'],
    [2, 'error', 'record 2 is not the record of its parent'],
  ])('with %i as the name of a parent has the %s that %s', async (name, severity, problem) => {
    const problems = await checkChanged(async (iso) => {
      const many = await iso.find('/many');
      if (many?.kind !== 'directory') throw new Error('no /many');
      const { offset } = many.extent;
      const [own = 0] = await iso.readBytes(offset, 1);
      return [[offset + own + 33, Uint8Array.of(name)]];
    });
    expect(problems).toMatchObject([{ severity, path: '/many', problem }]);
  });

  it('is damaged when the byte orders of a volume descriptor differ', async () => {
    const problems = await checkChanged(async (iso) => [await flip(iso, 16 * 2048 + 87)]);
    expect(problems.map(({ problem }) => problem)).toEqual([
      'both byte orders of the number at byte 80 of volume descriptor 1 differ',
    ]);
  });

  it('is damaged when the byte orders of a directory record differ, and the problem names the file', async () => {
    const problems = await checkChanged(async (iso) => [
      await flip(iso, (await recordAt(iso, '/one.txt')) + 9),
    ]);
    expect(problems).toMatchObject([
      {
        path: '/one.txt',
        problem: expect.stringMatching(/number at byte 2 of the directory/) as string,
      },
    ]);
  });

  it('is damaged when the byte orders of a Rock Ridge entry differ', async () => {
    const problems = await checkChanged(async (iso) => {
      const at = await recordAt(iso, '/one.txt');
      const px = Buffer.from(await iso.readBytes(at, 120)).indexOf('PX');
      return [await flip(iso, at + px + 8)];
    });
    expect(problems).toMatchObject([
      { path: '/one.txt', problem: expect.stringMatching(/system use entry PX differ/) as string },
    ]);
  });

  it('is damaged when a path table names another place or another parent', async () => {
    for (const field of [2, 6]) {
      const problems = await checkChanged(async (iso) => [
        await flip(iso, iso.volume.lPathTable * 2048 + 10 + field),
      ]);
      expect(problems.length).toBeGreaterThan(0);
      for (const { problem } of problems) expect(problem).toMatch(/^type L path table: record/);
    }
    const problems = await checkChanged(async (iso) => [
      await flip(iso, iso.volume.mPathTable * 2048 + 10 + 8),
    ]);
    expect(problems.map(({ problem }) => problem).join()).toMatch(
      /^type M path table: .*identifier/,
    );
  });

  it('is damaged when two files overlap, and the problem names both', async () => {
    const problems = await checkChanged(async (iso) => {
      const larger = await iso.find('/larger');
      const sector = (larger?.kind === 'file' ? (larger.extents[0]?.offset ?? 0) : 0) / 2048;
      const at = await recordAt(iso, '/one.txt');
      const both = Buffer.alloc(8);
      both.writeUInt32LE(sector + 1);
      both.writeUInt32BE(sector + 1, 4);
      return [[at + 2, both]];
    });
    expect(problems).toMatchObject([
      {
        path: '/one.txt',
        problem: expect.stringMatching(/overlap bytes .* of \/larger/) as string,
      },
    ]);
  });

  it('is damaged when a file ends after the end of the volume', async () => {
    const problems = await checkChanged(async (iso) => {
      const both = Buffer.alloc(8);
      both.writeUInt32LE(iso.volume.volumeSpaceSize);
      both.writeUInt32BE(iso.volume.volumeSpaceSize, 4);
      return [[(await recordAt(iso, '/one.txt')) + 2, both]];
    });
    expect(problems.map(({ path }) => path)).toContain('/one.txt');
    expect(problems.map(({ problem }) => problem).join()).toMatch(/the volume at/);
  });

  it('is damaged when the CRC of either GPT or the backup is wrong', async () => {
    const primary = await checkChanged(async (iso) => [await flip(iso, 512 + 40)]);
    expect(primary.map(({ problem }) => problem)).toEqual([
      'CRC of the primary GPT header does not match its bytes',
    ]);
    const backup = await checkChanged(async (iso) => [await flip(iso, iso.fileSize - 512 + 40)]);
    expect(backup.map(({ problem }) => problem)).toEqual([
      'CRC of the backup GPT header does not match its bytes',
    ]);
    const absent = await checkChanged((iso) =>
      Promise.resolve([[iso.fileSize - 512, new Uint8Array(8)]]),
    );
    expect(absent.map(({ problem }) => problem).join()).toMatch(/there is no backup GPT at block/);
  });

  it('is damaged when a boot image is after the end of the volume', async () => {
    const problems = await checkChanged((iso) =>
      Promise.resolve([[(iso.bootCatalog ?? 0) * 2048 + 32 + 8, Uint8Array.of(255, 255, 255, 0)]]),
    );
    expect(problems.map(({ problem }) => problem)).toEqual([
      expect.stringMatching(/^boot entry 1 \(bios\) ends at sector/),
    ]);
  });

  it('is damaged when a directory contains itself, and the check still ends', async () => {
    const problems = await checkChanged(async (iso) => {
      const at = await recordAt(iso, '/coreos');
      const root = await iso.readBytes(16 * 2048 + 156 + 2, 16);
      return [[at + 2, root]];
    });
    const all = problems.map(({ problem }) => problem).join('\n');
    expect(all).toMatch(/directory \/coreos has the same extent as directory \//);
    expect(all).toMatch(/which has no directory/);
  });
});
