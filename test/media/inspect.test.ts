import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerInspect } from '../../src/cli/medium/inspect.ts';
import { encodeInitrd } from '../../src/ignition/initrd.ts';
import { inspectIso } from '../../src/media/inspect.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { blobPath, makeMedium, type TestMedium } from '../support/medium.ts';
import { runCommand } from '../support/run-command.ts';
import { requireTool } from '../support/tools.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-inspect-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('inspection of a medium', () => {
  let medium: TestMedium;
  beforeAll(async () => {
    medium = await makeMedium(directory);
  });

  it('reports the number and size of the images in every set, and counts shared layers once in the payload', async () => {
    const { media } = await inspectIso(medium.path);
    const sizeOf = (names: readonly string[]): number => {
      const files = new Map<string, number>();
      for (const { name, image } of medium.images) {
        if (!names.includes(name)) continue;
        for (const [digest, bytes] of image.blobs) files.set(digest, bytes.length);
        for (const { descriptor } of image.manifests) files.set(descriptor.digest, descriptor.size);
      }
      return [...files.values()].reduce((sum, size) => sum + size, 0);
    };
    expect(media).toMatchObject({
      images: { release: 2, additional: 1 },
      sizes: { release: sizeOf(['etcd', 'cli']), additional: sizeOf(['tools']) },
      payloadSize: sizeOf(['etcd', 'cli', 'tools']),
    });
    expect(media?.payloadSize).toBeLessThan(sizeOf(['etcd', 'cli']) + sizeOf(['tools']));
    const { stdout } = await runCommand(registerInspect, ['inspect', medium.path], { cwd: '/' });
    expect(stdout).toMatch(/^images {9}release: 2, 5\.\d MiB$/m);
    expect(stdout).toMatch(/^images {9}additional: 1, \d+\.\d KiB$/m);
    expect(stdout).toMatch(/^index {10}sha256:[0-9a-f]{64}$/m);
    expect(stdout).toMatch(/^payload {8}5\.\d MiB, shared blobs counted once$/m);
  });

  it('describes the damage of an index, and shows everything else', async () => {
    const path = join(directory, 'damaged.iso');
    await copyFile(medium.path, path);
    const file = await open(path, 'r+');
    await file.write('{{', medium.extentOf('/sealift/index.json').offset);
    await file.close();
    const { exitCode, stdout } = await runCommand(registerInspect, ['inspect', path], { cwd: '/' });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^volume/m);
    expect(stdout).toMatch(/^index {10}damaged: \/sealift\/index\.json is not JSON/m);
    expect((await inspectIso(path)).media).toBeUndefined();
  });

  it('still counts the blobs that are readable in a damaged manifest', async () => {
    const path = join(directory, 'manifest.iso');
    await copyFile(medium.path, path);
    const [etcd] = medium.images;
    const manifest = etcd?.image.manifests[0]?.descriptor.digest ?? 'sha256:';
    const file = await open(path, 'r+');
    await file.write('[', medium.extentOf(blobPath(manifest)).offset);
    await file.close();
    expect((await inspectIso(path)).media).toEqual((await inspectIso(medium.path)).media);
  });

  it('reports why a medium is not a CoreOS live ISO', async () => {
    const { coreos, notCoreos } = await inspectIso(medium.path);
    expect(coreos).toBeUndefined();
    expect(notCoreos).toContain('images/ignition.img');
  });

  it('refuses a file that does not exist', async () => {
    const call = ['inspect', 'none.iso'];
    const { exitCode, stderr } = await runCommand(registerInspect, call, { cwd: directory });
    expect(exitCode).toBe(3);
    expect(stderr).toContain('none.iso cannot be read: it does not exist [iso.unreadable]');
  });
});

const hasTools = requireTool('genisoimage') && requireTool('isohybrid') && requireTool('mformat');

describe.skipIf(!hasTools)('inspection of the embed area', () => {
  const AREA = 262_144;
  const inspectWith = async (content: Uint8Array): ReturnType<typeof inspectIso> => {
    const area = Buffer.alloc(AREA);
    area.set(content);
    const folder = await mkdtemp(join(directory, 'coreos-'));
    return inspectIso(await makeCoreosIso(folder, { files: { 'images/ignition.img': area } }));
  };
  const config = { name: 'config.ign', mode: 0o100600, data: Buffer.from('{"ignition":{}}') };

  it('reports how many bytes of the area are used', async () => {
    const packed = encodeInitrd([config]);
    const { coreos } = await inspectWith(packed);
    expect(coreos).toMatchObject({ ignition: true, embedArea: { size: AREA } });
    expect(coreos?.embedArea.used).toBe(packed.findLastIndex((byte) => byte !== 0) + 1);
    expect(coreos?.embedArea.problem).toBeUndefined();
  });

  it('reports an empty area as unused', async () => {
    const { coreos } = await inspectWith(new Uint8Array(0));
    expect(coreos).toMatchObject({ ignition: false, embedArea: { used: 0, size: AREA } });
  });

  it.each<[string, Uint8Array]>([
    ['text', Buffer.from('this is no archive')],
    ['gzip that breaks off', encodeInitrd([config]).subarray(0, 40)],
    ['gzip of no archive', gzipSync('no cpio')],
    ['broken xz', Buffer.from('fd377a585a0000000000000000ffffffff', 'hex')],
    ['broken zstd', Buffer.from('28b52ffdffffffffffffffffffffffffff', 'hex')],
    ['an archive with garbage behind it', Buffer.concat([encodeInitrd([config]), Buffer.of(7)])],
    ['a full area', Buffer.alloc(AREA, 0x5a)],
  ])(
    'describes an area that holds %s as damaged, and shows everything else',
    async (_what, content) => {
      const { coreos, volume, partitions } = await inspectWith(content);
      expect(coreos?.embedArea.problem).toMatch(/\S/);
      expect(coreos?.embedArea.used).toBeGreaterThan(0);
      expect(coreos).toMatchObject({ ignition: false, bootstrapIgnition: false, kargAreas: 2 });
      expect(volume.id).toBe('rhcos-9.6.20260101-0');
      expect(partitions.length).toBeGreaterThan(0);
    },
  );

  it('prints the used bytes and the damage on the line of the area', async () => {
    const folder = await mkdtemp(join(directory, 'printed-'));
    const area = Buffer.alloc(AREA);
    area.write('garbage', 1000);
    const path = await makeCoreosIso(folder, { files: { 'images/ignition.img': area } });
    const { exitCode, stdout } = await runCommand(registerInspect, ['inspect', path], { cwd: '/' });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^embed area {5}1007 B of 256\.0 KiB used in images\/ignition\.img: damaged: \S/m,
    );
    expect(stdout).toMatch(/^kernel args {4}coreos\.liveiso=/m);
  });
});
