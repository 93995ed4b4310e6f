import { execFileSync } from 'node:child_process';
import { link, mkdir, open, readFile, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hexOf } from '../../src/base/digest.ts';
import { hasFile } from '../../src/base/disk/files.ts';
import type { Layout } from '../../src/iso/extent.ts';
import type { EarlierIso } from '../../src/pour/start.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { makeLayout, MIB, openFrom, pourAndPublish } from '../support/pour-layout.ts';
import { buildLayeredImage } from '../support/release.ts';
import { mayMountXfs, mountXfs, type XfsMount } from '../support/xfs.ts';

/** Judged by sha256sum(1), cmp(1) and the free space that the kernel counts. */
describe.skipIf(!mayMountXfs())('on a file system that can clone', () => {
  let xfs: XfsMount;
  const temporary = process.env['TMPDIR'];

  beforeAll(() => {
    xfs = mountXfs();
    process.env['TMPDIR'] = xfs.path;
  });
  afterAll(() => {
    process.env['TMPDIR'] = temporary ?? '';
    if (temporary === undefined) delete process.env['TMPDIR'];
    xfs.close();
  });
  const used = async (): Promise<number> => {
    execFileSync('sync', ['-f', xfs.path]);
    const { blocks, bfree, bsize } = await statfs(xfs.path);
    return (blocks - bfree) * bsize;
  };

  describe('a pour', () => {
    const night = makeLayout([3 * MIB, 5 * MIB + 17, 2 * MIB, 4 * MIB]);
    let earlier: EarlierIso;
    let before: Buffer;
    const path = (name: string): string => join(xfs.path, name);

    beforeAll(async () => {
      // Yesterday's ISO had another third blob, and was longer.
      before = Buffer.concat([night.whole, Buffer.alloc(MIB, 7)]);
      const third = blobsOf(night.layout)[2];
      before.fill(9, third?.offset, (third?.offset ?? 0) + (third?.size ?? 0));
      await writeFile(path('old.iso'), before);
      const extents = new Map(
        blobsOf(night.layout).flatMap(({ digest, offset, size }) =>
          digest === undefined || offset === third?.offset
            ? []
            : [[digest, { offset, size }] as const],
        ),
      );
      earlier = { path: path('old.iso'), extents, isRecorded: true };
    });
    const pour = (name: string, more: object = {}) =>
      pourAndPublish({
        layout: night.layout,
        output: path(name),
        lanes: 2,
        openExtent: openFrom(night.blobs),
        signal: new AbortController().signal,
        earlier,
        ...more,
      });

    test('writes the changes into a clone of the earlier ISO, which stays unchanged', async () => {
      const taken = await used();
      const { digest, reused, fetched } = await pour('a.iso');
      expect({ digest, fetched }).toEqual({ digest: undefined, fetched: 2 * MIB });
      expect(reused).toBe(12 * MIB + 17);
      expect((await readFile(path('a.iso'))).equals(night.whole)).toBe(true);
      expect((await readFile(path('old.iso'))).equals(before)).toBe(true);
      expect((await used()) - taken).toBeLessThan(4 * MIB);
    });

    test('reads the clone to compute the digest of the ISO if that is requested', async () => {
      const { digest, fetched } = await pour('b.iso', { checksum: true });
      expect(fetched).toBe(2 * MIB);
      expect(digest).toBe(`sha256:${sha256sum(path('b.iso'))}`);
    });

    test('fetches damaged bytes of the earlier ISO if no record vouches for it', async () => {
      const [first] = blobsOf(night.layout);
      const file = await open(path('old.iso'), 'r+');
      await file.write(Buffer.from('flipped'), 0, 7, (first?.offset ?? 0) + 5000);
      await file.close();
      const { fetched } = await pour('c.iso', { earlier: { ...earlier, isRecorded: false } });
      expect(fetched).toBe(5 * MIB);
      expect((await readFile(path('c.iso'))).equals(night.whole)).toBe(true);
      await writeFile(path('old.iso'), before);
    });

    test('ends with the same bytes after it was stopped at any byte', async () => {
      for (const stopAt of [0, MIB, 2 * MIB - 1]) {
        const output = `stopped-${stopAt}.iso`;
        const stop = new AbortController();
        let given = 0;
        const openExtent = openFrom(night.blobs, {
          onBytes(size) {
            given += size;
            if (given > stopAt) stop.abort(new Error('stopped'));
          },
        });
        await expect(pour(output, { openExtent, signal: stop.signal })).rejects.toThrow('stopped');
        const { digest } = await pour(output);
        expect((await readFile(path(output))).equals(night.whole)).toBe(true);
        if (digest !== undefined) expect(hexOf(digest)).toBe(sha256sum(path(output)));
      }
    });
  });

  describe('a build', () => {
    let world: LiveWorld;
    const at = (name: string): string => join(world.directory, name);
    const build = async (...more: readonly string[]) => {
      const args = ['build', '--output', 'a.iso', '--base-iso', 'test.iso', '-o', 'json', ...more];
      const { exitCode, stdout, stderr } = await world.run(...args);
      expect(exitCode, stderr).toBe(0);
      return JSON.parse(stdout) as { digest?: string; isUpToDate: boolean; isoSize: number };
    };

    beforeAll(async () => {
      await mkdir(join(xfs.path, 'tmp'), { recursive: true });
      world = await createLiveWorld();
      await world.writeConfig();
      await build();
      await link(at('a.iso'), at('old.iso'));
      await build(); // its change time is another one since it was linked
      const image = await buildLayeredImage([[['usr/bin/tool', 'new']]]);
      world.registry.add('team/tool', image, '1');
      await world.writeConfig(`additionalImages: [{name: "${world.registry.host}/team/tool:1"}]`);
    });
    afterAll(() => world.close());

    test('clones the ISO that it replaces if the record of its build vouches for it', async () => {
      expect(await build()).not.toHaveProperty('digest');
      expect(await hasFile(at('a.iso.sha256'))).toBe(false);
      expect((await build('--verify')).isUpToDate).toBe(true);
      const cloned = sha256sum(at('a.iso'));
      // Every byte hashed on its way in, and the whole computed: the same bytes.
      expect(await build('--rehash', '--checksum')).toMatchObject({
        digest: `sha256:${cloned}`,
        isUpToDate: false,
      });
      execFileSync('sha256sum', ['--check', '--quiet', 'a.iso.sha256'], { cwd: world.directory });
    });
  });
});

const blobsOf = ({ extents }: Layout) => extents.filter(({ source }) => source.kind === 'blob');

const sha256sum = (path: string): string =>
  execFileSync('sha256sum', [path], { encoding: 'utf8' }).slice(0, 64);
