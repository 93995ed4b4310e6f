import { open, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCoreosLive, type CoreosLive } from '../../../src/iso/coreos/live.ts';
import { findEmbedArea } from '../../../src/iso/coreos/embed-area.ts';
import { readKargAreas, type KargAreas } from '../../../src/iso/coreos/kargs.ts';
import { openIso, type IsoImage } from '../../../src/iso/read/open.ts';
import {
  makeCoreosIso,
  makeIso,
  makeTestDirectory,
  TEST_VOLUME_ID,
  type TestCoreosOptions,
} from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('a live ISO of CoreOS', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function withIso<Result>(
    path: string,
    work: (iso: IsoImage) => Promise<Result>,
  ): Promise<Result> {
    const iso = await openIso(path);
    try {
      return await work(iso);
    } finally {
      await iso.close();
    }
  }

  const read = async (options: TestCoreosOptions): Promise<CoreosLive> =>
    withIso(await makeCoreosIso(directory, options), readCoreosLive);

  const causeOf = async (options: TestCoreosOptions): Promise<string> => {
    const error = await read(options).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'base-iso.not-coreos' });
    return error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
  };

  it('is read with its embed area, its kernel arguments and its features', async () => {
    const path = await makeCoreosIso(directory);
    await withIso(path, async (iso) => {
      const live = await readCoreosLive(iso);
      const ignition = await iso.find('/images/ignition.img');
      expect(live.embedArea).toEqual({
        file: 'images/ignition.img',
        offset: ignition?.kind === 'file' && ignition.extents[0]?.offset,
        size: 262_144,
        grown: false,
      });
      expect(live.features).toEqual({
        installerConfig: true,
        installerConfigDirectives: ['append-karg', 'console'],
        liveInitrdNetwork: true,
      });
      const text = `coreos.liveiso=${TEST_VOLUME_ID} ignition.firstboot ignition.platform.id=metal`;
      expect(live.kargs).toMatchObject({ text, default: text, size: text.length + 1024 });
      expect(live.liveisoLabel).toBe(TEST_VOLUME_ID);
      expect(live.hasMinimalRecipe).toBe(true);
      for (const area of live.kargs.areas) {
        const around = await iso.readBytes(area.offset + live.kargs.size, 25);
        expect(Buffer.from(around).toString()).toBe('# COREOS_KARG_EMBED_AREA\n');
      }
      expect(live.kargs.areas.map(({ path: file }) => file)).toEqual([
        'EFI/redhat/grub.cfg',
        'isolinux/isolinux.cfg',
      ]);
    });
  });

  it('for aarch64 is read in the same way', async () => {
    const live = await read({ arch: 'aarch64', kargs: 'a b' });
    expect(live.kargs.text).toBe(`coreos.liveiso=${TEST_VOLUME_ID} a b`);
  });

  it('has its embed area in images/ignition.img unless igninfo.json names another file', async () => {
    const { embedArea } = await read({ without: ['coreos/igninfo.json'] });
    expect(embedArea).toMatchObject({ file: 'images/ignition.img', size: 262_144 });
  });

  it('has its embed area at the place in igninfo.json, grown or inside another file', async () => {
    const grown = await read({ files: { 'images/ignition.img': 1_000_000 } });
    expect(grown.embedArea).toMatchObject({ size: 1_000_000, grown: true });
    const info = '{"file": "images/pxeboot/rootfs.img", "offset": 1000, "length": 2000}';
    const path = await makeCoreosIso(directory, { files: { 'coreos/igninfo.json': info } });
    await withIso(path, async (iso) => {
      const rootfs = await iso.find('/images/pxeboot/rootfs.img');
      const start = rootfs?.kind === 'file' ? rootfs.extents[0]?.offset : undefined;
      expect(await findEmbedArea(iso)).toMatchObject({ offset: (start ?? 0) + 1000, size: 2000 });
    });
  });

  it('made before 2022 has its kernel argument areas in the header of the System Area', async () => {
    const path = await makeCoreosIso(directory, { hybrid: false });
    const modern = await withIso(path, readKargAreas);
    const legacyPath = await makeCoreosIso(directory, {
      hybrid: false,
      without: ['coreos/kargs.json'],
    });
    const located = await withIso(legacyPath, (iso) => locateByFile(iso, modern));
    await writeLegacyHeader(legacyPath, modern.size, located);
    const legacy = await withIso(legacyPath, readKargAreas);
    expect(legacy.text).toBe(modern.text);
    expect(legacy.default).toBe(modern.default);
    expect(legacy.areas.map(({ offset }) => offset)).toEqual(located);
  });

  it('is refused without an embed area', async () => {
    const without = ['images/ignition.img', 'coreos/igninfo.json'];
    expect(await causeOf({ without })).toMatch(/images\/ignition.img of the embed area is absent/);
  });

  it('is refused without kernel argument areas', async () => {
    expect(await causeOf({ without: ['coreos/kargs.json'] })).toMatch(/no kernel argument areas/);
  });

  it('is refused when coreos.liveiso= is missing or names another volume', async () => {
    const files = {
      'isolinux/isolinux.cfg': 'quiet\n######',
      'EFI/redhat/grub.cfg': 'quiet\n######',
    };
    const entry = (path: string): unknown => ({ end: '\n', offset: 0, pad: '#', path });
    const kargs = JSON.stringify({
      default: 'quiet',
      files: Object.keys(files).map(entry),
      size: 10,
    });
    expect(await causeOf({ files: { ...files, 'coreos/kargs.json': kargs } })).toMatch(
      /"quiet" lack coreos.liveiso=/,
    );
    const path = await makeCoreosIso(directory, { hybrid: false });
    const file = await open(path, 'r+');
    await file.write(Buffer.from('other'.padEnd(32)), 0, 32, 16 * 2048 + 40);
    await file.close();
    await expect(withIso(path, readCoreosLive)).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/but the volume is "other"/) as string },
    });
  });

  it('is refused when its kernel argument areas differ', async () => {
    const path = await makeCoreosIso(directory, { hybrid: false });
    const { areas } = await withIso(path, readKargAreas);
    const file = await open(path, 'r+');
    await file.write(Buffer.from('COREOS'), 0, 6, areas[1]?.offset ?? 0);
    await file.close();
    await expect(withIso(path, readKargAreas)).rejects.toMatchObject({
      code: 'kargs.areas-differ',
    });
  });

  it.each([
    ['coreos/kargs.json', '{', 'iso.malformed-json'],
    ['coreos/kargs.json', '[]', 'iso.malformed-json'],
    ['coreos/kargs.json', '{"default": "", "files": [], "size": 10}', 'kargs.no-areas'],
    ['coreos/kargs.json', '{"default": "12345", "files": [], "size": 4}', 'iso.malformed-json'],
    ['coreos/kargs.json', kargsWith({ offset: -1 }), 'iso.malformed-json'],
    ['coreos/kargs.json', kargsWith({ offset: 1e6 }), 'iso.out-of-bounds'],
    ['coreos/kargs.json', kargsWith({ pad: '##' }), 'iso.malformed-json'],
    ['coreos/kargs.json', kargsWith({ path: 'absent' }), 'iso.no-embed-area'],
    ['coreos/kargs.json', kargsWith({}, 4096), 'kargs.area-too-large'],
    ['coreos/igninfo.json', '{"file": 7}', 'iso.malformed-json'],
    [
      'coreos/igninfo.json',
      '{"file": "images/ignition.img", "offset": 262144}',
      'iso.no-embed-area',
    ],
    [
      'coreos/igninfo.json',
      '{"file": "images/ignition.img", "length": 1e99}',
      'iso.malformed-json',
    ],
    ['coreos/igninfo.json', '{"file": "images"}', 'iso.no-embed-area'],
    ['coreos/features.json', 'no JSON', 'iso.malformed-json'],
  ])('is refused when %s is %s', async (name, content, code) => {
    await expect(read({ files: { [name]: content }, hybrid: false })).rejects.toMatchObject({
      cause: { code },
    });
  });

  it('is refused when it is any other image', async () => {
    const path = await makeIso(directory, { files: { file: 'x' } });
    await expect(withIso(path, readCoreosLive)).rejects.toThrow(/is not a live ISO of CoreOS/);
  });
});

function kargsWith(change: Readonly<Record<string, unknown>>, size = 20): string {
  const file = { path: 'images/pxeboot/rootfs.img', offset: 0, pad: '#', end: '\n', ...change };
  return JSON.stringify({ default: '', files: [file], size });
}

async function locateByFile(iso: IsoImage, modern: KargAreas): Promise<number[]> {
  const offsets: number[] = [];
  for (const { path } of modern.areas) {
    const node = await iso.find(path ?? '');
    if (node?.kind !== 'file') throw new Error(`no ${path ?? ''}`);
    const at = Buffer.from(await iso.readFile(node)).indexOf('coreos.liveiso=');
    offsets.push((node.extents[0]?.offset ?? 0) + at);
  }
  return offsets;
}

async function writeLegacyHeader(
  path: string,
  size: number,
  offsets: readonly number[],
): Promise<void> {
  const header = Buffer.alloc(72);
  header.write('coreKarg');
  [size, offsets[0] ?? 0, ...offsets].forEach((value, index) =>
    header.writeBigUInt64LE(BigInt(value), 8 + index * 8),
  );
  const file = await open(path, 'r+');
  await file.write(header, 0, header.length, 32_672);
  await file.close();
}
