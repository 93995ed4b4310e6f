import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { digestFile } from '../../../src/base/disk/files.ts';
import { runProcess } from '../../../src/base/process.ts';
import type { Layout, TreeFile } from '../../../src/iso/extent.ts';
import {
  locateBackupGpt,
  readBackupGpt,
  readPartitionTables,
} from '../../../src/iso/boot/hybrid.ts';
import { layOutIso } from '../../../src/iso/lay-out/lay-out.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { scanBaseIso } from '../../../src/iso/lay-out/scan.ts';
import { makeCoreosIso, makeIso, makeTestDirectory, TEST_VOLUME_ID } from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';
import { writeLayout } from '../../support/write-layout.ts';

const TOOLS = ['genisoimage', 'isohybrid', 'mformat', 'xorriso', 'isoinfo', 'bsdtar'];
const hasTools = TOOLS.map(requireTool).every(Boolean);

const HEX = digestOf('layer').slice(7);
const REGISTRY = '/registry/docker/registry/v2';
const LINK = `${REGISTRY}/repositories/openshift/release/_manifests/tags/${HEX}/index/sha256/${HEX}/link`;

const blobs = new Map<string, Uint8Array>();

function blobOf(bytes: Uint8Array): TreeFile['content'] {
  const digest = digestOf(bytes);
  blobs.set(digest, bytes);
  return { kind: 'blob', digest, size: bytes.length };
}

const layer = blobOf(Buffer.alloc(700_001, 'layer'));
const bytesOf = (text: string): TreeFile['content'] => ({
  kind: 'bytes',
  bytes: Buffer.from(text),
});

const FILES: readonly TreeFile[] = [
  { path: '/EFI/redhat/grub.cfg', content: bytesOf('another menu\n') },
  { path: '/images/bootstrap-appliance.img', content: bytesOf('an initrd') },
  { path: '/registry/images/registry/version', content: bytesOf('Directory Transport 1.1\n') },
  { path: `/registry/images/registry/${HEX}`, content: layer },
  { path: '/registry/empty', content: bytesOf('') },
  { path: `/registry/${'long'.repeat(63)}`, content: bytesOf('a name of 252 bytes') },
  { path: `${REGISTRY}/blobs/sha256/${HEX.slice(0, 2)}/${HEX}/data`, content: layer },
  { path: LINK, content: bytesOf(`sha256:${HEX}`) },
  ...Array.from({ length: 300 }, (_, number) => ({
    path: `${REGISTRY}/blobs/sha256/many/${digestOf(String(number)).slice(7)}`,
    content: number % 3 === 0 ? blobOf(Buffer.from(`blob ${number}`)) : bytesOf(`${number}`),
  })),
];

const makeXorrisoIso = (directory: string): Promise<string> =>
  makeIso(directory, {
    program: 'xorriso',
    files: {
      'EFI/redhat/grub.cfg': 'a menu\n',
      'images/efiboot.img': Buffer.alloc(1_474_560, 'an ESP'),
      'images/ignition.img': 262_144,
    },
    args: [
      ...['-V', TEST_VOLUME_ID, '-r', '-J', '-e', 'images/efiboot.img', '-no-emul-boot'],
      ...['-efi-boot-part', '--efi-boot-image'],
    ],
  });

const makeDeepIso = (directory: string): Promise<string> =>
  makeIso(directory, {
    files: {
      'EFI/redhat/grub.cfg': 'a menu\n',
      'registry/docker/registry/v2/old/a/b/c/d/deep': 'nine levels down',
      'registry/link': { symlink: `docker/../${'x'.repeat(200)}` },
      ...Object.fromEntries(
        Array.from({ length: 90 }, (_, n) => [`many/${'m'.repeat(80)}${n}`, `${n}`]),
      ),
    },
    args: ['-r', '-V', TEST_VOLUME_ID],
  });

type Case = { name: string; makeBase: (directory: string) => Promise<string> };

const CASES: readonly Case[] = [
  { name: 'an x86_64 image made a disk by isohybrid', makeBase: (dir) => makeCoreosIso(dir) },
  {
    name: 'an aarch64 image, El Torito only',
    makeBase: (dir) => makeCoreosIso(dir, { arch: 'aarch64' }),
  },
  {
    name: 'a ppc64le image, HFS+ and an Apple partition map',
    makeBase: (dir) => makeCoreosIso(dir, { arch: 'ppc64le' }),
  },
  { name: 'an image of xorriso with a GPT and an EFI partition', makeBase: makeXorrisoIso },
  { name: 'an image with links and relocated directories', makeBase: makeDeepIso },
];

describe.skipIf(!hasTools).each(CASES)('a tree grafted onto $name', ({ makeBase }) => {
  let directory: string;
  let base: string;
  let grown: string;
  let layout: Layout;

  beforeAll(async () => {
    directory = await makeTestDirectory();
    base = await makeBase(directory);
    grown = join(directory, 'grown.iso');
    layout = layOutIso({
      base: await scanBaseIso(base),
      files: FILES,
      remove: ['/coreos/miniso.dat'],
      patches: [],
      epoch: 1_767_323_045,
    });
    const openBlob = (digest: string): Uint8Array | undefined => blobs.get(digest);
    await writeLayout(grown, layout, { basePath: base, openBlob });
  });

  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('is extracted by bsdtar, file by file', async () => {
    const expected = await extractDigests(base, join(directory, 'before'));
    expected.delete('/coreos/miniso.dat');
    for (const { path, content } of FILES) expected.set(path, digestOfContent(content));
    const found = await extractDigests(grown, join(directory, 'after'));
    expect([...found].sort()).toEqual([...expected].sort());
  });

  it('is found by xorriso at the sectors where our reader finds it', async () => {
    const report = await xorriso(grown, ['-find', '/', '-type', 'f', '-exec', 'report_lba']);
    const lines = report.matchAll(/^File data lba: +\d+ , +(\d+) , +\d+ , +(\d+) , '(.*)'$/gm);
    const theirs = [...lines].map(([, lba, size, path]) => [path, Number(size), Number(lba)]);
    const ours: unknown[] = [];
    const iso = await openIso(grown);
    for await (const { path, node } of iso.walk()) {
      if (node.kind !== 'file' || node.size === 0) continue;
      const sector = (node.extents[0]?.offset ?? 0) / 2048;
      // The boot catalog is not a file to xorriso.
      if (sector !== iso.bootCatalog) ours.push([path, node.size, sector]);
    }
    await iso.close();
    const isNotEmpty = ([, size]: (string | number | undefined)[]): boolean => size !== 0;
    expect(theirs.filter(isNotEmpty).sort()).toEqual(ours.sort());
  });

  it('is listed by isoinfo, under Rock Ridge names and with no Joliet tree', async () => {
    const { stdout } = await runProcess('isoinfo', ['-R', '-f', '-i', grown]);
    const iso = await openIso(grown);
    const paths: string[] = [];
    for await (const { path } of iso.walk()) paths.push(path);
    await iso.close();
    expect(stdout.split('\n').filter(Boolean).sort()).toEqual(paths.sort());
    const { stdout: descriptors } = await runProcess('isoinfo', ['-d', '-i', grown]);
    expect(descriptors).toContain('NO Joliet present');
    expect(descriptors).toContain(`Volume id: ${TEST_VOLUME_ID}`);
  });

  it('has the boot catalog and boot images of the base, and is readable to its end', async () => {
    const report = ['-report_el_torito', 'plain'];
    expect(await xorriso(grown, report)).toBe(await xorriso(base, report));
    expect(await xorriso(grown, ['-check_media', '--'])).not.toMatch(/[-] (error|unreadable)/);
    expect((await stat(grown)).size).toBe(layout.size);
  });

  it('has partitions at their old places, and the one that reached the end reaches it again', async () => {
    const report = ['-report_system_area', 'plain'];
    const partitionsOf = async (path: string): Promise<string[]> =>
      (await xorriso(path, report))
        .split('\n')
        .filter((line) => /^(MBR partition|GPT start|GPT type|GPT partname|GPT lba) /.test(line));
    const [before, after] = [await partitionsOf(base), await partitionsOf(grown)];
    expect(after).toHaveLength(before.length);
    const blocks = layout.size / 512;
    for (const [index, line] of after.entries()) {
      if (line === before[index]) continue;
      const numbers = [...line.matchAll(/\d+/g)].map(Number);
      const [start = 0, count = 0] = numbers.slice(-2);
      const end = line.startsWith('GPT lba') ? count + 1 : start + count;
      expect(end).toBeLessThanOrEqual(blocks);
      expect(blocks - end).toBeLessThan(70);
    }
    await expectSoundGpt(grown);
  });
});

describe.skipIf(!hasTools)('a file of 9 GiB', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('has its size and its end for every reader, and so has the file after it', async () => {
    const base = await makeCoreosIso(directory);
    const size = 9 * 2 ** 30 + 5;
    const layout = layOutIso({
      base: await scanBaseIso(base),
      files: [
        { path: '/registry/huge', content: { kind: 'blob', digest: digestOf('huge'), size } },
        { path: '/registry/later', content: blobOf(Buffer.from('behind it')) },
      ],
      remove: [],
      patches: [],
      epoch: 0,
    });
    const path = join(directory, 'huge.iso');
    await writeLayout(path, layout, {
      basePath: base,
      openBlob: (digest) => blobs.get(digest),
    });
    const { stdout: listing } = await runProcess('bsdtar', ['-tvf', path, 'registry/huge']);
    expect(listing).toContain(` ${size} `);
    const later = await runProcess('bsdtar', ['-xOf', path, 'registry/later']);
    expect(later.stdout).toBe('behind it');
    const found = await xorriso(path, ['-find', '/registry', '-exec', 'lsdl']);
    expect(found).toMatch(new RegExp(` ${size} .*'/registry/huge'`));
    const last = await xorriso(path, ['-find', '/registry/huge', '-exec', 'report_sections']);
    const sections = [...last.matchAll(/^File data lba: +\d+ , +\d+ , +\d+ , +(\d+) ,/gm)];
    expect(sections.map(([, bytes]) => Number(bytes))).toEqual([
      2 ** 32 - 2048,
      2 ** 32 - 2048,
      2 ** 30 + 5 + 4096,
    ]);
  });
});

/** Both copies have right CRCs and point to each other, and the second ends the image. */
async function expectSoundGpt(path: string): Promise<void> {
  const bytes = await readFile(path);
  const { gpt } = readPartitionTables(bytes.subarray(0, 32_768));
  if (!gpt) return;
  const range = locateBackupGpt(gpt, bytes.length);
  if (!range) throw new Error('backup GPT is nowhere');
  expect(range.offset + range.size).toBe(bytes.length);
  const backup = readBackupGpt(gpt, bytes.subarray(range.offset));
  expect([gpt.crcOk, backup?.crcOk]).toEqual([true, true]);
  expect([backup?.block, backup?.otherBlock]).toEqual([gpt.otherBlock, gpt.block]);
  expect(backup?.partitions).toEqual(gpt.partitions);
}

async function xorriso(path: string, commands: readonly string[]): Promise<string> {
  const { stdout } = await runProcess('xorriso', ['-indev', path, ...commands]);
  return stdout;
}

async function extractDigests(iso: string, target: string): Promise<Map<string, string>> {
  await mkdir(target);
  await runProcess('bsdtar', ['-xf', iso, '-C', target, '--no-same-permissions']);
  const digests = new Map<string, string>();
  const entries = await readdir(target, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((each) => each.isFile())) {
    const path = join(entry.parentPath, entry.name);
    digests.set(path.slice(target.length), await digestFile(path));
  }
  return digests;
}

const digestOfContent = (content: TreeFile['content']): string => {
  if (content.kind === 'image') throw new Error('no image is a file here');
  return content.kind === 'blob' ? content.digest : digestOf(content.bytes);
};
