import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { FILE_FLAG } from '../../../src/iso/directory/record.ts';
import { openIso, type IsoImage } from '../../../src/iso/read/open.ts';
import {
  makeCoreosIso,
  makeIso,
  makeTestDirectory,
  TEST_TIME,
  TEST_VOLUME_ID,
  type TestContent,
} from '../../support/iso.ts';
import { makeImage, named, SUBDIRECTORY } from '../../support/raw-image.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'xorriso', 'isoinfo', 'bsdtar'].map(requireTool).every(Boolean);
const hasBootTools = ['isohybrid', 'mformat'].map(requireTool).every(Boolean);

const DEEP =
  'docker/registry/v2/repositories/openshift/release/_manifests/tags/latest/index/sha256';
const LONG = 'n'.repeat(240);
const FILES: Readonly<Record<string, TestContent>> = {
  'README.txt': 'hello\n',
  'empty': '',
  'two names.with.dots.txt': 'dots',
  'größe/ünï-çödé': 'names are UTF-8',
  [LONG]: 'a name of 240 bytes',
  'links/absolute': { symlink: '/usr/../lib/./name' },
  'links/relative': { symlink: `../${'long/'.repeat(20)}./${'t'.repeat(30)}` },
  [`${DEEP}/link`]: 'sha256:abc',
  'large.bin': Buffer.alloc(3_000_001, 'sealift'),
  ...Object.fromEntries(
    Array.from({ length: 120 }, (_, index) => [`many/file-${index}-${'x'.repeat(60)}`, `${index}`]),
  ),
};

/** Every path, with the digest of a file's bytes or the target of a link. */
async function listAll(iso: IsoImage): Promise<Map<string, string>> {
  const listing = new Map<string, string>();
  for await (const { path, node } of iso.walk()) {
    if (node.kind === 'symlink') listing.set(path, node.target);
    if (node.kind === 'directory') listing.set(path, 'directory');
    if (node.kind !== 'file') continue;
    const hash = createHash('sha256');
    for await (const chunk of iso.stream(node)) hash.update(chunk as Buffer);
    listing.set(path, hash.digest('hex'));
  }
  return listing;
}

const digestOfContent = (content: TestContent): string => {
  if (typeof content === 'object' && 'symlink' in content) return content.symlink;
  const bytes = typeof content === 'number' ? new Uint8Array(content) : content;
  return createHash('sha256').update(bytes).digest('hex');
};

const withoutDirectories = (listing: ReadonlyMap<string, string>): Map<string, string> =>
  new Map([...listing].filter(([, value]) => value !== 'directory').sort());

describe.skipIf(!hasTools)('an image made by another program', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
  });
  afterAll(() => rm(directory, { recursive: true }));

  const WRITERS = [
    { name: 'genisoimage', program: 'genisoimage', args: ['-R', '-J', '-V', 'TEST'] },
    { name: 'genisoimage without relocation', program: 'genisoimage', args: ['-R', '-D'] },
    { name: 'xorriso', program: 'xorriso', args: ['-R', '-J'] },
    { name: 'xorriso at level 3', program: 'xorriso', args: ['-R', '-iso-level', '3'] },
  ] as const;

  it.each(WRITERS)('has every file, link and name that was given to $name', async (writer) => {
    const path = await makeIso(directory, { files: FILES, ...writer }, `${writer.name}.iso`);
    const iso = await openIso(path);
    expect(iso.hasRockRidge).toBe(true);
    const expected = Object.entries(FILES).map(
      ([name, content]) => [`/${name}`, digestOfContent(content)] as const,
    );
    expect(withoutDirectories(await listAll(iso))).toEqual(
      new Map([...expected].sort(([a], [b]) => (a < b ? -1 : 1))),
    );
    await iso.close();
  });

  it('lists the same paths as xorriso, isoinfo and bsdtar', async () => {
    const path = await makeIso(directory, { files: FILES, args: ['-R', '-D'] }, 'peers.iso');
    const iso = await openIso(path);
    const ours = [...(await listAll(iso)).keys()].sort();
    const run = async (program: string, args: readonly string[]): Promise<string[]> =>
      (await runProcess(program, args, { env: { LC_ALL: 'C.UTF-8', PATH: '/usr/bin' } })).stdout
        .split('\n')
        .filter((line) => !['', '.', '/', '**BAD RRVERSION (111)'].includes(line))
        .sort();
    const xorriso = await run('xorriso', ['-report_about', 'FATAL', '-indev', path, '-find', '/']);
    expect(xorriso.map((line) => line.slice(1, -1))).toEqual(['/', ...ours]);
    expect(await run('isoinfo', ['-f', '-R', '-i', path])).toEqual(ours);
    expect(await run('bsdtar', ['-tf', path]).then(withSlashes)).toEqual(ours);
    await iso.close();
  });

  it('places every file at the sectors that xorriso reports', async () => {
    const path = await makeIso(directory, { files: FILES, args: ['-R'] }, 'sectors.iso');
    const { stdout } = await runProcess('xorriso', [
      ...['-report_about', 'FATAL', '-indev', path, '-find', '/', '-type', 'f'],
      ...['-exec', 'report_lba'],
    ]);
    const iso = await openIso(path);
    let compared = 0;
    for (const line of stdout.split('\n')) {
      const match = /^File data lba: +(\d+) , +(\d+) , +(\d+) , +(\d+) , '(.*)'$/.exec(line);
      if (!match) continue;
      const [, , sector, , size, name = ''] = match;
      const node = await iso.find(name);
      if (node?.kind !== 'file') throw new Error(`we do not find ${name}`);
      expect(node.size).toBe(Number(size));
      if (node.size > 0) expect(node.extents[0]?.offset).toBe(Number(sector) * 2048);
      compared += 1;
    }
    expect(compared).toBeGreaterThan(100);
    await iso.close();
  });

  it('has mode, owner and time of each file', async () => {
    const path = await makeIso(directory, { files: FILES }, 'posix.iso');
    const iso = await openIso(path);
    const node = await iso.find('/README.txt');
    expect(node).toMatchObject({ kind: 'file', mode: 0o100444, uid: 0, gid: 0 });
    expect(node?.modifiedAt).toEqual(TEST_TIME);
    expect(await iso.find('/links/absolute')).toMatchObject({ kind: 'symlink', mode: 0o120555 });
    expect(iso.joliet?.volumeId).toBe('TEST');
    expect(iso.volume.volumeId).toBe('TEST');
    await iso.close();
  });

  it('has files that are found by Rock Ridge names first, and then by ISO 9660 names in either case', async () => {
    const path = await makeIso(
      directory,
      { files: { 'coreos/features.json': '{}', 'coreos/FEATURES.JSO': 'other' } },
      'find.iso',
    );
    const iso = await openIso(path);
    const read = async (name: string): Promise<string> => {
      const node = await iso.find(name);
      return node ? Buffer.from(await iso.readFile(node)).toString() : 'nothing';
    };
    expect(await read('/coreos/features.json')).toBe('{}');
    expect(await read('coreos/FEATURES.JSO')).toBe('other');
    expect(await read('/COREOS/features.jso')).not.toBe('nothing');
    expect(await read('/coreos/features.json/more')).toBe('nothing');
    expect(await read('/absent')).toBe('nothing');
    expect((await iso.find('/'))?.kind).toBe('directory');
    await iso.close();
  });

  it('has ISO 9660 names without their versions if it has no Rock Ridge', async () => {
    const files = { 'README.txt': 'hello\n', 'a-directory/noextension': 'x' };
    const path = await makeIso(directory, { files, args: ['-V', 'PLAIN'] }, 'plain.iso');
    const iso = await openIso(path);
    expect(iso.hasRockRidge).toBe(false);
    const { stdout } = await runProcess('isoinfo', ['-f', '-i', path]);
    const names = stdout.split('\n').map((line) => line.replace(/\.?;1$/, ''));
    expect([...(await listAll(iso)).keys()].sort()).toEqual(names.sort());
    expect((await iso.find('/README.TXT'))?.modifiedAt).toEqual(TEST_TIME);
    await iso.close();
  });

  it('is read in part, across the pieces of a read', async () => {
    const content = Buffer.alloc(2_500_000, 'abcdefghijk');
    const path = await makeIso(directory, { files: { content } }, 'ranges.iso');
    const iso = await openIso(path);
    const node = await iso.find('/content');
    if (!node) throw new Error('not found');
    for (const [offset, size] of [
      [0, 5],
      [1_048_570, 20],
      [2_499_990, 100],
      [7, 0],
    ] as const) {
      const chunks: Buffer[] = [];
      for await (const chunk of iso.stream(node, { offset, size })) chunks.push(chunk as Buffer);
      expect(Buffer.concat(chunks)).toEqual(content.subarray(offset, offset + size));
    }
    await expect(iso.readFile(node, 100)).rejects.toThrow(/2500000 bytes, more than 100/);
    await iso.close();
  });
});

describe.skipIf(!hasTools)('a file of several extents', () => {
  it('is one file with all their bytes, as xorriso and bsdtar read it', async () => {
    const directory = await makeTestDirectory();
    const path = join(directory, 'extents.iso');
    const first = named('file', { extent: SUBDIRECTORY, size: 4096, flags: FILE_FLAG.multiExtent });
    const last = named('file', { extent: 23, size: 4 });
    const body = Buffer.alloc(4096, 'several ');
    await writeFile(
      path,
      makeImage({ root: [first, last], patches: [[SUBDIRECTORY * 2048, body]] }),
    );
    const iso = await openIso(path);
    const node = await iso.find('/file');
    if (node?.kind !== 'file') throw new Error('no file');
    expect(node).toMatchObject({ size: 4100, records: { length: 2 } });
    expect(node.extents).toEqual([
      { offset: SUBDIRECTORY * 2048, size: 4096 },
      { offset: 23 * 2048, size: 4 },
    ]);
    const whole = `${body.toString()}data`;
    expect(Buffer.from(await iso.readFile(node)).toString()).toBe(whole);
    const part: Buffer[] = [];
    for await (const chunk of iso.stream(node, { offset: 4090, size: 8 })) {
      part.push(chunk as Buffer);
    }
    expect(Buffer.concat(part).toString()).toBe(whole.slice(4090, 4098));
    await iso.close();
    expect((await runProcess('bsdtar', ['-xOf', path, 'file'])).stdout).toBe(whole);
    const copy = join(directory, 'copy');
    await runProcess('xorriso', ['-osirrox', 'on', '-indev', path, '-extract', '/FILE', copy]);
    expect(await readFile(copy, 'utf8')).toBe(whole);
    await rm(directory, { recursive: true });
  });
});

describe.skipIf(!hasTools || !hasBootTools)('a live image of CoreOS', () => {
  it('names its boot images as xorriso does', async () => {
    const directory = await makeTestDirectory();
    const path = await makeCoreosIso(directory);
    const iso = await openIso(path);
    const { stdout } = await runProcess('xorriso', [
      ...['-report_about', 'FATAL', '-indev', path, '-report_el_torito', 'plain'],
    ]);
    const reported = [...stdout.matchAll(/^El Torito boot img : +\d+ +(BIOS|UEFI) +y .* (\d+)$/gm)];
    expect(iso.bootEntries.map(({ platform, sector }) => [platform, sector])).toEqual(
      reported.map(([, platform, sector]) => [
        platform === 'BIOS' ? 'bios' : 'efi',
        Number(sector),
      ]),
    );
    expect(iso.bootEntries).toHaveLength(2);
    const esp = await iso.find('/images/efiboot.img');
    expect(esp?.kind === 'file' && esp.extents[0]?.offset).toBe(
      (iso.bootEntries[1]?.sector ?? 0) * 2048,
    );
    expect(iso.volume.volumeId).toBe(TEST_VOLUME_ID);
    expect(iso.volume.volumeSetId).toBe(TEST_VOLUME_ID);
    expect(iso.fileSize).toBe((await readFile(path)).length);
    await iso.close();
    await rm(directory, { recursive: true });
  });
});

const withSlashes = (lines: readonly string[]): string[] => lines.map((line) => `/${line}`);
