import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RandomAccess } from '../../src/base/random-access.ts';
import { encodeSmallIso } from '../../src/iso/index.ts';
import { proveImage } from '../../src/media/proof.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { verifyIso } from '../../src/media/verify.ts';
import { TEST_SSH_KEY, writeInstallationConfig } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { runs } from '../support/properties.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat'].map(requireTool).every(Boolean);

const signal = new AbortController().signal;
const ignore = (): void => undefined;

/** The image in memory, with one byte that differs. */
const withFlip = (image: Buffer, at: number, mask: number): RandomAccess => ({
  path: 'flipped.iso',
  size: image.length,
  read(offset, size, buffer = Buffer.alloc(size)) {
    const bytes = buffer.subarray(0, size);
    image.copy(bytes, 0, offset, offset + size);
    if (at >= offset && at < offset + size) bytes[at - offset] = (image[at] ?? 0) ^ mask;
    return Promise.resolve(bytes);
  },
  close: () => Promise.resolve(),
});

const verify = (image: Buffer, at: number, mask: number): Promise<Verification> =>
  verifyIso(withFlip(image, at, mask), { signal, onProgress: ignore });

describe.skipIf(!hasTools)('a flipped byte, at any place of', () => {
  let world: LiveWorld;
  const products = new Map<string, Buffer>();

  beforeAll(async () => {
    world = await createLiveWorld();
    const run = async (...args: string[]): Promise<void> => {
      const { exitCode, stderr } = await world.run(...args);
      expect(exitCode, stderr).toBe(0);
    };
    await writeInstallationConfig(world.directory, { sshKey: TEST_SSH_KEY });
    await run('build', 'installation-iso', '--base-iso', 'test.iso', '--output', 'ibi.iso');
    await world.writeConfig();
    await run('build', '--base-iso', 'test.iso', '--output', 'live.iso');
    await run('customize', 'live.iso', '--ssh-key', TEST_SSH_KEY, '--output', 'custom.iso');
    for (const name of await readdir(world.directory)) {
      if (name.endsWith('.iso')) products.set(name, await readFile(join(world.directory, name)));
    }
    const config = encodeSmallIso({
      volumeId: 'cluster-config',
      epoch: 0,
      directories: [],
      files: [{ path: '/a', bytes: Buffer.alloc(5000, 'a') }],
    });
    proveImage(config, { product: 'config-iso', program: '1.0.0', of: 'site-0001' });
    products.set('config.iso', Buffer.from(config));
  });
  afterAll(() => world.close());

  it.each([
    ['a live ISO', 'live.iso'],
    ['a customised live ISO', 'custom.iso'],
    ['an installation ISO without images', 'ibi.iso'],
    ['a configuration ISO', 'config.iso'],
  ])('%s is found, and the ISO is whole without it', async (_what, name) => {
    const image = products.get(name) ?? Buffer.alloc(0);
    const { state, problems, notCompared } = await verify(image, -1, 0);
    expect({ state, problems, notCompared }).toEqual({ state: 'whole', problems: [] });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: image.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, mask) => {
          expect((await verify(image, at, mask)).state).toBe('damaged');
        },
      ),
      { numRuns: runs(25) },
    );
  });

  it('an ISO without a proof is not called whole', async () => {
    const { state, because, compared } = await verify(
      products.get('test.iso') ?? Buffer.alloc(0),
      -1,
      0,
    );
    expect({ state, because, bytes: compared.bytes }).toEqual({
      state: 'not provable',
      because: 'no proof',
      bytes: 0,
    });
  });
});
