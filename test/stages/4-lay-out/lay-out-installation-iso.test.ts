import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { encodeInitrd } from '../../../src/ignition/initrd.ts';
import { encodeBaseScan, scanBaseIso, type BaseScan } from '../../../src/iso/lay-out/scan.ts';
import { findEmbedArea } from '../../../src/iso/coreos/embed-area.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import {
  layOutInstallationIso,
  type InstallationIsoParts,
  type InstallationLayout,
} from '../../../src/stages/4-lay-out/lay-out-installation-iso.ts';
import { createFileDigests } from '../../../src/base/disk/file-digests.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
import { createStageContext } from '../../support/stage-context.ts';
import { readEmbedded } from '../../support/installation-iso.ts';
import { makeCoreosIso, type TestCoreosOptions } from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';
import { writeLayout } from '../../support/write-layout.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat', 'isoinfo', 'bsdtar'].map((tool) =>
  requireTool(tool),
);

/** ECMA-119 8.4.32: bytes of the image that the proof takes. */
const APPLICATION_USE = [16 * 2048 + 883, 16 * 2048 + 1395] as const;

const EMBEDDED = encodeInitrd([{ name: 'config.ign', mode: 0o100600, data: randomBytes(3000) }]);

const partsOf = (path: string, scan: BaseScan, ignition: string): InstallationIsoParts => ({
  base: { kind: 'file', path, size: scan.size, digest: scan.digest },
  scan,
  ignition: new Secret(ignition),
  architecture: 'x86_64',
  release: { version: '4.21.0', reference: 'quay.io/seed:4.21.0', architecture: 'x86_64' },
});

/** Without images, no manifest is read. */
const layOutParts = (parts: InstallationIsoParts): Promise<InstallationLayout> =>
  layOutInstallationIso.run(
    parts,
    { cache: createBlobCache('/nowhere'), digests: createFileDigests('/nowhere') },
    createStageContext(),
  );

const part = (place: object): TestCoreosOptions => ({
  files: {
    'coreos/igninfo.json': JSON.stringify({ file: 'images/ignition.img', ...place }),
    'images/ignition.img': Buffer.concat([
      Buffer.alloc(5000, 'x'),
      Buffer.concat([EMBEDDED, Buffer.alloc(4096)]).subarray(0, 4096),
      Buffer.alloc(253_048, 'x'),
    ]),
  },
});

describe.skipIf(!hasTools.every(Boolean))('the layout of an installation ISO', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-installation-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  async function layOut(
    options: TestCoreosOptions,
    ignition: string,
  ): Promise<InstallationLayout & { readonly base: string }> {
    const base = await makeCoreosIso(directory, options);
    const scan = encodeBaseScan(await scanBaseIso(base));
    return { base, ...(await layOutParts(partsOf(base, scan, ignition))) };
  }

  async function locateArea(path: string) {
    const iso = await openIso(path);
    try {
      return await findEmbedArea(iso);
    } finally {
      await iso.close();
    }
  }

  it.each<readonly [string, TestCoreosOptions]>([
    ['the whole file', {}],
    ['the whole file of an old image', { without: ['coreos/igninfo.json'] }],
    ['the whole file of an image for arm64', { arch: 'aarch64' }],
    ['a part of the file', part({ offset: 5000, length: 4096 })],
  ])('changes only the embed area and the proof if the area is %s', async (_what, options) => {
    const { base, layout } = await layOut(options, '{"ignition":{"version":"3.2.0"}}');
    const output = join(directory, 'output.iso');
    await writeLayout(output, layout, { basePath: base });
    const area = await locateArea(base);
    expect(await readEmbedded(output, area.offset)).toBe('{"ignition":{"version":"3.2.0"}}');
    const [made, before] = [await readFile(output), await readFile(base)];
    for (const bytes of [made, before]) {
      bytes.fill(0, area.offset, area.offset + area.size);
      bytes.fill(0, ...APPLICATION_USE);
    }
    expect(made.equals(before)).toBe(true);
  });

  it('has zeros behind the configuration, and lists the files that were there', async () => {
    const { base, layout, embedArea } = await layOut(part({ offset: 5000, length: 4096 }), '{}');
    expect(embedArea).toMatchObject({ size: 4096, replaced: ['config.ign'] });
    const output = join(directory, 'output.iso');
    await writeLayout(output, layout, { basePath: base });
    const { offset } = await locateArea(base);
    const bytes = await readFile(output);
    expect(bytes.subarray(offset + 300, offset + 4096)).toEqual(Buffer.alloc(3796));
    expect(bytes.toString('latin1', offset + 4096, offset + 4100)).toBe('xxxx');
    expect(bytes.toString('latin1', offset - 4, offset)).toBe('xxxx');
  });

  it('is refused if the area is part of a file and the configuration is larger', async () => {
    const work = layOut(part({ offset: 200_000, length: 64 }), '{"a":1}');
    await expect(work).rejects.toMatchObject({ code: 'base-iso.fixed-embed-area' });
    await expect(work).rejects.toThrow(/^content length \(\d+\) exceeds embed area size \(64\)$/);
  });

  it.each<readonly [string, TestCoreosOptions, string]>([
    ['no archive', part({ offset: 4000, length: 5000 }), 'iso.no-embed-area'],
    ['beyond its file', part({ offset: 5000, length: 262_144 }), 'iso.no-embed-area'],
    ['behind its file', part({ offset: 300_000 }), 'iso.no-embed-area'],
    ['of no size', part({ length: 0 }), 'iso.no-embed-area'],
    ['before its file', part({ offset: -1 }), 'iso.malformed-json'],
    ['broken', part({ offset: 0.5 }), 'iso.malformed-json'],
    ['in a file that is absent', part({ file: 'images/other.img' }), 'iso.no-embed-area'],
    ['in a directory', part({ file: 'images' }), 'iso.no-embed-area'],
    ['in no file', part({ file: 7 }), 'iso.malformed-json'],
    ['the kernel', part({ file: 'images/pxeboot/vmlinuz' }), 'iso.no-embed-area'],
    ['the root file system', part({ file: 'images/pxeboot/rootfs.img' }), 'iso.no-embed-area'],
    ['no JSON', { files: { 'coreos/igninfo.json': 'x' } }, 'iso.malformed-json'],
  ])('is refused if the area is described as %s', async (_what, options, code) => {
    await expect(layOut(options, '{}')).rejects.toMatchObject({ code, exitCode: 5 });
  });

  it.each([
    { what: 'x86_64', offset: 0x202, magic: 'HdrS', isOurs: true },
    { what: 'arm64', offset: 56, magic: 'ARMd', isOurs: false },
    { what: 'arm64 under UEFI', offset: 64, magic: 'PE\0\0\x64\xaa', isOurs: false },
    { what: 'x86_64 under UEFI', offset: 64, magic: 'PE\0\0\x64\x86', isOurs: true },
    {
      what: 'ppc64le',
      offset: 0,
      magic: '\x7fELF\x02\x01'.padEnd(18, '\0') + '\x15',
      isOurs: false,
    },
    { what: 'who knows what', offset: 0, magic: 'MZ', isOurs: true },
    { what: 'what is too far off', offset: 4095, magic: 'P', isOurs: true },
  ])('is made only for the architecture of its kernel: $what', async (row) => {
    const { offset, magic, isOurs } = row;
    const kernel = Buffer.alloc(4096);
    kernel.write(magic, offset, 'latin1');
    kernel.writeUInt32LE(offset, 0x3c);
    const work = layOut({ files: { 'images/pxeboot/vmlinuz': kernel } }, '{}');
    if (isOurs) await work;
    else await expect(work).rejects.toMatchObject({ code: 'base-iso.architecture', exitCode: 3 });
  });

  describe('with a configuration that is larger than the area', () => {
    const ignition = JSON.stringify({ noise: randomBytes(300_000).toString('base64') });

    /** As coreos-installer does: by ISO 9660's names, in upper case. */
    function extract(iso: string, name: string): Buffer {
      const args = ['-i', iso, '-x', name];
      return execFileSync('isoinfo', args, { maxBuffer: 1 << 24 });
    }

    it.each<readonly [string, TestCoreosOptions]>([
      ['with a description', {}],
      ['without one', { without: ['coreos/igninfo.json'] }],
      ['with one in upper case', part({ file: 'IMAGES/IGNITION.IMG', offset: 0 })],
      ['for arm64', { arch: 'aarch64' }],
    ])(
      'has a larger area, which every tool finds instead of the old one: a base %s',
      async (_, own) => {
        const isWhole = own.files !== undefined;
        const options = isWhole
          ? { files: { ...own.files, 'images/ignition.img': Buffer.alloc(262_144) } }
          : own;
        const { base, layout, embedArea } = await layOut(options, ignition);
        expect(embedArea).toMatchObject({ size: 262_144, grownTo: 393_216, replaced: [] });
        const output = join(directory, 'output.iso');
        await writeLayout(output, layout, { basePath: base });
        const area = await locateArea(output);
        expect(area).toMatchObject({ size: 393_216 });
        expect(await readEmbedded(output, area.offset, area.size)).toBe(ignition);
        const byIsoName = extract(output, '/IMAGES/IGNITION.IMG;1');
        const byRockRidge = execFileSync('bsdtar', ['-xOf', output, 'images/ignition.img'], {
          maxBuffer: 1 << 24,
        });
        expect(byIsoName.equals(byRockRidge)).toBe(true);
        expect(byIsoName).toHaveLength(area.size);
        await writeFile(join(directory, 'area'), byIsoName);
        expect(await readEmbedded(join(directory, 'area'), 0, area.size)).toBe(ignition);
        const names = execFileSync('bsdtar', ['-tf', output], { encoding: 'utf8' });
        expect(names).not.toMatch(/IMAGES|miniso/);
        if (own.without) return;
        const info = JSON.parse(extract(output, '/COREOS/IGNINFO.JSO;1').toString()) as object;
        expect(info).toMatchObject({ length: area.size });
      },
    );
  });

  it('is refused if the base has changed since it was scanned', async () => {
    const base = await makeCoreosIso(directory, {});
    const scan = encodeBaseScan(await scanBaseIso(base));
    const { offset } = await locateArea(base);
    const bytes = await readFile(base);
    bytes.set(EMBEDDED, offset);
    await writeFile(base, bytes);
    await utimes(base, 1, 1);
    const parts = partsOf(base, scan, '{}');
    await expect(layOutParts(parts)).rejects.toMatchObject({ code: 'iso.base-changed' });
    await truncate(base, offset);
    await expect(layOutParts(parts)).rejects.toMatchObject({ exitCode: 5 });
  });
});
