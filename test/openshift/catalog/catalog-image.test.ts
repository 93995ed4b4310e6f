import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Platform } from '../../../src/registry/descriptor.ts';
import type { Reference } from '../../../src/registry/reference.ts';
import { hexOf } from '../../../src/base/digest.ts';
import {
  extractCatalog,
  openCatalogImage,
} from '../../../src/openshift/catalog/image/catalog-image.ts';
import { openOciLayout } from '../../../src/registry/layout/oci-layout.ts';
import {
  buildCatalogImage,
  writeOciLayout,
  type CatalogImageOptions,
} from '../../support/catalog-images.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { buildIndex, descriptorOf, type TestImage } from '../../support/images.ts';

const AMD64: Platform = { os: 'linux', architecture: 'amd64' };
const ARM64: Platform = { os: 'linux', architecture: 'arm64' };

let world: ImageWorld;

beforeAll(async () => {
  world = await createImageWorld();
});
afterAll(() => world.close());

function serve(name: string, image: TestImage): Reference {
  world.registry.add(name, image, 'v1');
  return { registry: world.registry.host, repository: name, tag: 'v1' };
}

const imageOf = (options: CatalogImageOptions = {}): Promise<TestImage> =>
  buildCatalogImage(
    [
      {
        entries: [
          ['bin/opm', 'opm'],
          ['configs/a/catalog.json', 'old'],
        ],
      },
      {
        entries: [
          ['configs/a/.wh..wh..opq', ''],
          ['configs/a/catalog.json', '{}'],
        ],
        compression: 'none',
      },
    ],
    options,
  );

const fails = (code: string, message = ''): unknown =>
  expect.objectContaining({ code, message: expect.stringContaining(message) as string });

describe('a catalog image', () => {
  it('says by its label where its catalog is', async () => {
    const image = await imageOf({ label: '/opt//catalog/' });
    const opened = await openCatalogImage(world, serve('label', image), 'all');
    expect(opened.configsDirectory).toBe('opt/catalog');
    expect(opened.top).toEqual(image.manifests[0]);
    expect(opened.reference.digest).toBe(image.manifests[0]?.descriptor.digest);
    expect(opened.images).toMatchObject([{ platform: AMD64, stored: image.manifests[0] }]);
  });

  it('is opened for one platform of its index or for all, attestations left out', async () => {
    const absent = {
      ...descriptorOf(Buffer.from('{}'), 'application/vnd.oci.image.manifest.v1+json'),
      platform: { os: 'unknown', architecture: 'unknown' },
    };
    const [amd64, arm64] = [await imageOf(), await imageOf({ architecture: 'arm64' })];
    const index = buildIndex(
      [
        [AMD64, amd64],
        [ARM64, arm64],
      ],
      { absent },
    );
    const reference = serve('index', index);
    const all = await openCatalogImage(world, reference, 'all');
    expect(all.images.map(({ platform }) => platform)).toEqual([AMD64, ARM64]);
    expect(all.selected).toBeUndefined();
    const one = await openCatalogImage(world, reference, ARM64);
    expect(one.images.map(({ stored }) => stored)).toEqual([arm64.manifests[0]]);
    expect([one.top, one.selected]).toEqual([all.top, ARM64]);
    await expect(
      openCatalogImage(world, reference, { os: 'linux', architecture: 's390x' }),
    ).rejects.toThrow(fails('image.no-platform', 'linux/s390x'));
  });

  it('is no catalog without the label, and the labels it has are said', async () => {
    const reference = serve('other', await imageOf({ label: '' }));
    await expect(openCatalogImage(world, reference, 'all')).rejects.toThrow(
      expect.objectContaining({
        code: 'catalog.no-label',
        message: expect.stringContaining('other:v1') as string,
        hint: expect.stringContaining('vendor') as string,
      }),
    );
  });

  it('is refused when its platforms disagree where the catalog is', async () => {
    const index = buildIndex([
      [AMD64, await imageOf()],
      [ARM64, await imageOf({ architecture: 'arm64', label: '/other' })],
    ]);
    await expect(openCatalogImage(world, serve('differ', index), 'all')).rejects.toThrow(
      fails('catalog.labels-differ', 'configs, other'),
    );
  });

  it.each(['/', '..', '/configs/../../etc', '\0'])(
    'is refused when its label %j is no directory of its own',
    async (label) => {
      const reference = serve('hostile', await imageOf({ label }));
      await expect(openCatalogImage(world, reference, 'all')).rejects.toThrow(
        fails('catalog.label-malformed'),
      );
    },
  );
});

describe('the catalog of an image', () => {
  it('is unpacked once, to a directory that is named by the digest', async () => {
    const image = await openCatalogImage(world, serve('once', await imageOf()), 'all');
    const directory = join(world.directory, 'catalogs');
    const path = await extractCatalog(world, image, directory);
    expect(path).toBe(join(directory, `sha256-${hexOf(image.top.descriptor.digest)}`));
    expect(await readFile(join(path, 'a/catalog.json'), 'utf8')).toBe('{}');
    await writeFile(join(path, 'mark'), '');
    expect(await extractCatalog(world, image, directory)).toBe(path);
    expect((await readdir(path)).sort()).toEqual(['a', 'mark']);
  });

  it('is unpacked by several at once, and one of them wins', async () => {
    const image = await openCatalogImage(world, serve('race', await imageOf()), 'all');
    const directory = join(world.directory, 'race');
    const paths = await Promise.all([1, 2, 3].map(() => extractCatalog(world, image, directory)));
    expect(new Set(paths).size).toBe(1);
    expect(await readdir(directory)).toHaveLength(1);
  });

  it('comes from an OCI layout as from a registry', async () => {
    const layout = join(world.directory, 'layout');
    await writeOciLayout(layout, [['v1', buildIndex([[AMD64, await imageOf()]])]]);
    const { client, cache, reference } = await openOciLayout(layout, 'v1');
    const tools = { client, cache, signal: world.signal };
    const image = await openCatalogImage(tools, reference, AMD64);
    const path = await extractCatalog(tools, image, join(world.directory, 'from-layout'));
    expect(await readFile(join(path, 'a/catalog.json'), 'utf8')).toBe('{}');
    await rm(path, { recursive: true });
  });

  it('is missing where the label names what is not there', async () => {
    const reference = serve('missing', await imageOf({ label: '/elsewhere' }));
    const image = await openCatalogImage(world, reference, 'all');
    await expect(extractCatalog(world, image, join(world.directory, 'missing'))).rejects.toThrow(
      fails('layer.directory-missing', '"elsewhere"'),
    );
  });
});
