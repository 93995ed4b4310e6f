import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Platform } from '../../../src/registry/manifest.ts';
import type { Reference } from '../../../src/registry/reference.ts';
import { hexOf } from '../../../src/base/digest.ts';
import { extractCatalog, openCatalogImage } from '../../../src/openshift/catalog/image.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
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

/** A catalog as its usual build leaves it: what each layer is made of, and its history. */
const layered = async (history: readonly (string | undefined)[]): Promise<TestImage> => {
  const large = (name: string): readonly (readonly [string, string])[] => [
    [name, name.repeat(100_000)],
  ];
  return buildCatalogImage(
    [
      { entries: large('usr/lib/base'), compression: 'none' },
      { entries: large('bin/opm'), compression: 'none' },
      { entries: [['configs/a/catalog.json', '{}']], compression: 'none' },
      { entries: large('tmp/cache/pogreb'), compression: 'none' },
    ],
    { config: { history: history.map((created_by) => ({ created_by })) } },
  );
};

const fails = (code: string, message = ''): unknown =>
  expect.objectContaining({ code, message: expect.stringContaining(message) as string });

describe('the layers of a catalog image', () => {
  const ADD_BASE = '/bin/sh -c #(nop) ADD file:8d2 in / ';
  const RUN = 'RUN /bin/sh -c dnf install -y tools # buildkit';
  const COPIES = [
    '/bin/sh -c #(nop) COPY file:0a1 in /bin/opm ',
    'COPY --chown=1001:0 catalog /configs # buildkit',
    'COPY /cache /tmp/cache # buildkit',
  ] as const;
  const BASE_COPY = 'COPY rootfs/usr /usr/ # buildkit';

  it.each<[string, readonly (string | undefined)[], readonly number[]]>([
    ['the one with the directory', [BASE_COPY, ...COPIES], [2]],
    ['those that may have it, as a base does', [ADD_BASE, ...COPIES], [0, 2]],
    ['those that may have it, as what a command left', [RUN, ...COPIES], [0, 2]],
    [
      'all, where the history is not known',
      [undefined, undefined, undefined, undefined],
      [0, 1, 2, 3],
    ],
    ['all, where the history is of other layers', [...COPIES], [0, 1, 2, 3]],
  ])('are fetched for the catalog: %s', async (title, history, expected) => {
    const image = await layered(history);
    const name = `layers-${title.replaceAll(/\W/g, '')}`;
    const reference = serve(name, image);
    const tools = { ...world, cache: createBlobCache(join(world.directory, name)) };
    const opened = await openCatalogImage(tools, reference, AMD64);
    const path = await extractCatalog(tools, opened, join(world.directory, `${name}-out`));
    expect(await readFile(join(path, 'a/catalog.json'), 'utf8')).toBe('{}');
    const layers = opened.images[0]?.manifest.layers ?? [];
    const isAsked = ({ digest }: { digest: string }): boolean =>
      world.registry.requests.some((line) => line.includes(`/${name}/blobs/${digest}`));
    expect([...layers.keys()].filter((at) => layers[at] && isAsked(layers[at]))).toEqual(expected);
    const bytes = world.client.statistics()[0]?.bytes ?? 0;
    const all = layers.reduce((sum, { size }) => sum + size, 0);
    if (expected.length === 1) expect(bytes - bytesBefore).toBeLessThan(all / 100);
    bytesBefore = bytes;
  });
  let bytesBefore = 0;
});

describe('a catalog image', () => {
  it('names the directory of its catalog in its label', async () => {
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

  it('is refused without the label, and the error names the labels that it has', async () => {
    const reference = serve('other', await imageOf({ label: '' }));
    await expect(openCatalogImage(world, reference, 'all')).rejects.toThrow(
      expect.objectContaining({
        code: 'catalog.no-label',
        message: expect.stringContaining('other:v1') as string,
        hint: expect.stringContaining('vendor') as string,
      }),
    );
  });

  it('is refused if its platforms disagree about the directory of the catalog', async () => {
    const index = buildIndex([
      [AMD64, await imageOf()],
      [ARM64, await imageOf({ architecture: 'arm64', label: '/other' })],
    ]);
    await expect(openCatalogImage(world, serve('differ', index), 'all')).rejects.toThrow(
      fails('catalog.labels-differ', 'configs, other'),
    );
  });

  it.each(['/', '..', '/configs/../../etc', '\0'])(
    'is refused when its label %j is not a directory of its own',
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

  it('is unpacked by several processes at once, and one of them wins', async () => {
    const image = await openCatalogImage(world, serve('race', await imageOf()), 'all');
    const directory = join(world.directory, 'race');
    const paths = await Promise.all([1, 2, 3].map(() => extractCatalog(world, image, directory)));
    expect(new Set(paths).size).toBe(1);
    expect(await readdir(directory)).toHaveLength(1);
  });

  it('is read from an OCI layout as from a registry', async () => {
    const layout = join(world.directory, 'layout');
    await writeOciLayout(layout, [['v1', buildIndex([[AMD64, await imageOf()]])]]);
    const { client, cache, reference } = await openOciLayout(layout, 'v1');
    const tools = { client, cache, signal: world.signal };
    const image = await openCatalogImage(tools, reference, AMD64);
    const path = await extractCatalog(tools, image, join(world.directory, 'from-layout'));
    expect(await readFile(join(path, 'a/catalog.json'), 'utf8')).toBe('{}');
    await rm(path, { recursive: true });
  });

  it('is missing if the label names a directory that does not exist', async () => {
    const reference = serve('missing', await imageOf({ label: '/elsewhere' }));
    const image = await openCatalogImage(world, reference, 'all');
    await expect(extractCatalog(world, image, join(world.directory, 'missing'))).rejects.toThrow(
      fails('layer.directory-missing', '"elsewhere"'),
    );
  });
});
