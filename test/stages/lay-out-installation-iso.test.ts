import { mkdtemp, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeBaseScan, scanBaseIso } from '../../src/iso/base/scan-base.ts';
import { findEmbedArea } from '../../src/iso/coreos/embed-area.ts';
import type { Layout } from '../../src/iso/extent.ts';
import { openIso } from '../../src/iso/open-iso.ts';
import { layOutInstallationIso } from '../../src/stages/lay-out-installation-iso.ts';
import { readEmbedded } from '../support/installation-iso.ts';
import { makeCoreosIso, type TestCoreosOptions } from '../support/iso.ts';
import { requireTool } from '../support/tools.ts';
import { writeLayout } from '../support/write-layout.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat'].map((tool) => requireTool(tool));

const part = (place: object): TestCoreosOptions => ({
  files: {
    'coreos/igninfo.json': JSON.stringify({ file: 'images/ignition.img', ...place }),
    'images/ignition.img': Buffer.alloc(262_144, 'x'),
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
  ): Promise<{ readonly base: string; readonly layout: Layout }> {
    const base = await makeCoreosIso(directory, options);
    const scan = encodeBaseScan(await scanBaseIso(base));
    const layout = await layOutInstallationIso({ base: { path: base }, scan, ignition });
    return { base, layout };
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
  ])('changes nothing but the embed area where that is %s', async (_what, options) => {
    const { base, layout } = await layOut(options, '{"ignition":{"version":"3.2.0"}}');
    const output = join(directory, 'output.iso');
    await writeLayout(output, layout, { basePath: base });
    const area = await locateArea(base);
    expect(await readEmbedded(output, area.offset)).toBe('{"ignition":{"version":"3.2.0"}}');
    const [made, before] = [await readFile(output), await readFile(base)];
    for (const bytes of [made, before]) bytes.fill(0, area.offset, area.offset + area.size);
    expect(made.equals(before)).toBe(true);
  });

  it('leaves zeros behind the configuration, whatever was there', async () => {
    const { base, layout } = await layOut(part({ offset: 5000, length: 4096 }), '{}');
    const output = join(directory, 'output.iso');
    await writeLayout(output, layout, { basePath: base });
    const { offset } = await locateArea(base);
    const bytes = await readFile(output);
    expect(bytes.subarray(offset + 300, offset + 4096)).toEqual(Buffer.alloc(3796));
    expect(bytes.toString('latin1', offset + 4096, offset + 4100)).toBe('xxxx');
    expect(bytes.toString('latin1', offset - 4, offset)).toBe('xxxx');
  });

  it('has no room for a configuration that is larger than a part of a file', async () => {
    const work = layOut(part({ offset: 0, length: 64 }), '{"a":1}');
    await expect(work).rejects.toMatchObject({ code: 'base-iso.fixed-embed-area' });
    await expect(work).rejects.toThrow(/^content length \(\d+\) exceeds embed area size \(64\)$/);
  });

  it('is not made of a base that has changed since it was scanned', async () => {
    const base = await makeCoreosIso(directory, {});
    const scan = encodeBaseScan(await scanBaseIso(base));
    const { offset } = await locateArea(base);
    const bytes = await readFile(base);
    bytes[offset] = 1;
    await writeFile(base, bytes);
    await utimes(base, 1, 1);
    const parts = { base: { path: base }, scan, ignition: '{}' };
    await expect(layOutInstallationIso(parts)).rejects.toMatchObject({ code: 'iso.base-changed' });
    await truncate(base, offset);
    await expect(layOutInstallationIso(parts)).rejects.toMatchObject({ exitCode: 5 });
  });
});
