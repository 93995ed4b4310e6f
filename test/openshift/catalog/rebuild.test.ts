import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { CONFIGS_LABEL } from '../../../src/openshift/catalog/configs.ts';
import {
  extractCatalog,
  openCatalogImage,
  type CatalogImage,
} from '../../../src/openshift/catalog/image.ts';
import type { Catalog } from '../../../src/fbc/catalog.ts';
import { filterCatalog } from '../../../src/fbc/filter/filter-catalog.ts';
import { readCatalog } from '../../../src/fbc/read/read-catalog.ts';
import { rebuildCatalog, type RebuiltCatalog } from '../../../src/openshift/catalog/rebuild.ts';
import type { Platform } from '../../../src/registry/manifest.ts';
import { planDirLayout } from '../../../src/registry/layout/distribution.ts';
import { openOciLayout } from '../../../src/registry/layout/oci-layout.ts';
import {
  buildCatalogImage,
  writeOciLayout,
  type CatalogImageOptions,
} from '../../support/catalog-images.ts';
import { buildIndex, descriptorOf, writeTree, type TestImage } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';

const { signal } = new AbortController();
const AMD64: Platform = { os: 'linux', architecture: 'amd64' };
const S390X: Platform = { os: 'linux', architecture: 's390x' };

let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-rebuild-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const bundle = (name: string): string =>
  `{ "schema":"olm.bundle", "package":"a",\n\t"name":"${name}", "image":"quay.io/a/${name}:1", "big":12345678901234567890,
 "properties":[{"type":"olm.package", "value":{"packageName":"a", "version":"${name.slice(-1)}.0.0"}}] }`;

const CHANNEL = `{"schema": "olm.channel", "package": "a", "name": "stable", "color": {"of": "channel"},
 "entries": [{"name": "a.v1", "note": 1}, {"name": "a.v2", "replaces": "a.v1", "note": 2}]}`;

const FILES = {
  'a/catalog.json': [
    '{"schema":"olm.package","name":"a","defaultChannel":"stable","icon":{"base64data":"eA=="}}',
    CHANNEL,
    '{"schema":"olm.channel","package":"a","name":"old","entries":[{"name":"a.v1"}]}',
    bundle('a.v1'),
    bundle('a.v2'),
    `{"schema":"olm.deprecations","package":"a","entries":[
      {"reference":{"schema":"olm.package"},"message":"all of it","since":2024},
      {"reference":{"schema":"olm.bundle","name":"a.v1"},"message":"too old"}]}`,
    '{"schema":"example.unknown","package":"a","x":[1,  2]}',
  ].join('\n'),
  'b.yaml': 'schema: olm.package\nname: b\ndefaultChannel: x # the only one\n',
  'other.json': '{"schema":"example.global","y":1.0}',
};

const imageOf = (options: CatalogImageOptions = {}): Promise<TestImage> => {
  const directory = (options.label ?? '/configs').slice(1);
  return buildCatalogImage(
    [
      {
        entries: [
          ['bin/opm', 'opm'],
          ['tmp/cache/digest', 'stale'],
        ],
      },
      { entries: Object.entries(FILES).map(([name, text]) => [`${directory}/${name}`, text]) },
    ],
    options,
  );
};

type Opened = {
  readonly image: CatalogImage;
  readonly directory: string;
  readonly source: Catalog;
};

async function open(image: TestImage, selection: Platform | 'all' = 'all'): Promise<Opened> {
  const layout = await mkdtemp(join(folder, 'layout-'));
  await writeOciLayout(layout, [['v1', image]]);
  const { client, cache, reference } = await openOciLayout(layout);
  const tools = { client, cache, signal };
  const opened = await openCatalogImage(tools, reference, selection);
  const directory = await extractCatalog(tools, opened, layout);
  return { image: opened, directory, source: await readCatalog(directory) };
}

/** Package a without its first bundle, the channel that ends in it, and what is said about both. */
function filter(source: Catalog): Catalog {
  return {
    malformed: [],
    packages: source.packages.map((one) => ({ ...one, defaultChannel: 'stable' })),
    channels: source.channels
      .filter(({ name }) => name === 'stable')
      .map((one) => ({ ...one, entries: one.entries.filter(({ name }) => name === 'a.v2') })),
    bundles: source.bundles.filter(({ name }) => name === 'a.v2'),
    deprecations: source.deprecations.map((one) => ({
      ...one,
      entries: one.entries.filter(({ reference }) => reference.schema === 'olm.package'),
    })),
    others: source.others,
  };
}

const rebuild = ({ image, directory, source }: Opened): Promise<RebuiltCatalog> =>
  rebuildCatalog({ image, directory, source, filtered: filter(source) });

/** The rebuilt image with the blobs it has from the original. */
const asImage = ({ manifests, blobs }: RebuiltCatalog, original: TestImage): TestImage => ({
  manifests,
  blobs: new Map([
    ...original.blobs,
    ...blobs.map(({ descriptor, bytes }) => [descriptor.digest, bytes] as const),
  ]),
});

const json = (bytes: Uint8Array | undefined): Record<string, unknown> =>
  JSON.parse(Buffer.from(bytes ?? []).toString()) as Record<string, unknown>;

function blobOf(rebuilt: RebuiltCatalog, mediaType: string, at = 0): Uint8Array {
  const found = rebuilt.blobs.filter(({ descriptor }) => descriptor.mediaType === mediaType)[at];
  if (!found) throw new Error(`no new blob of type ${mediaType}`);
  return found.bytes;
}

/** What a catalog says, without where it says it. */
const withoutPlaces = (catalog: Catalog): unknown =>
  JSON.parse(JSON.stringify(catalog, (key, value: unknown) => (key === 'place' ? 0 : value)));

const LAYER = 'application/vnd.oci.image.layer.v1.tar';
const CONFIG = 'application/vnd.oci.image.config.v1+json';

describe('a rebuilt catalog image', () => {
  it('has the filtered catalog and no part of the old one', async () => {
    const original = await imageOf();
    const opened = await open(original);
    const again = await open(asImage(await rebuild(opened), original));
    expect(withoutPlaces(again.source)).toEqual(withoutPlaces(filter(opened.source)));
  });

  it('keeps documents byte for byte, and unknown members of changed ones', async () => {
    const original = await imageOf();
    const { directory } = await open(asImage(await rebuild(await open(original)), original));
    const lines = [
      '{"schema":"olm.package","name":"a","defaultChannel":"stable","icon":{"base64data":"eA=="}}',
      '{"schema":"olm.channel","package":"a","name":"stable","color":{"of":"channel"},"entries":[{"name":"a.v2","replaces":"a.v1","note":2}]}',
      bundle('a.v2'),
      '{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"},"message":"all of it","since":2024}]}',
      '{"schema":"example.unknown","package":"a","x":[1,  2]}',
    ];
    const read = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');
    expect(await read('a/catalog.json')).toBe(`${lines.join('\n')}\n`);
    expect(await read('b/catalog.json')).toBe(
      '{"schema":"olm.package","name":"b","defaultChannel":"stable"}\n',
    );
    expect(await read('catalog.json')).toBe('{"schema":"example.global","y":1.0}\n');
  });

  it('serves the new directory, and is otherwise configured as before', async () => {
    const extra = { 'author': 'someone', 'moby.buildkit.buildinfo.v1': 'eA==' };
    const original = await imageOf({ config: extra });
    const rebuilt = await rebuild(await open(original));
    const created = '2025-01-02T03:04:05Z';
    const config = json(blobOf(rebuilt, CONFIG));
    expect(config).toMatchObject({
      ...extra,
      created,
      config: {
        Entrypoint: ['/bin/opm'],
        Cmd: ['serve', '/configs'],
        Labels: { vendor: 'Someone', [CONFIGS_LABEL]: '/configs' },
      },
    });
    const layers = [blobOf(rebuilt, LAYER, 0), blobOf(rebuilt, LAYER, 1)];
    const { diff_ids: diffIds } = config['rootfs'] as { diff_ids: string[] };
    expect(diffIds.slice(-2)).toEqual(layers.map(digestOf));
    expect((config['history'] as unknown[]).slice(-2)).toEqual([
      { created, created_by: 'sealift' },
      { created, created_by: 'sealift' },
    ]);
    expect(json(rebuilt.top.bytes)['annotations']).toEqual({ 'org.example.kept': 'yes' });
  });

  it('has no history if the original has none', async () => {
    const rebuilt = await rebuild(await open(await imageOf({ config: { history: undefined } })));
    expect(json(blobOf(rebuilt, CONFIG))).not.toHaveProperty('history');
  });

  it('hides a catalog of another directory, and the cache, leaving /tmp to everyone', async () => {
    const rebuilt = await rebuild(await open(await imageOf({ label: '/opt/catalog' })));
    const list = execFileSync('tar', ['-tv', '--numeric-owner', '--utc', '-f', '-'], {
      input: blobOf(rebuilt, LAYER),
    });
    expect(list.toString().trim().split('\n')).toEqual([
      '-rw-r--r-- 0/0               0 1970-01-01 00:00 .wh.configs',
      'drwxr-xr-x 0/0               0 1970-01-01 00:00 opt/',
      '-rw-r--r-- 0/0               0 1970-01-01 00:00 opt/.wh.catalog',
      'drwxrwxrwt 0/0               0 1970-01-01 00:00 tmp/',
      '-rw-r--r-- 0/0               0 1970-01-01 00:00 tmp/.wh.cache',
    ]);
  });

  it('hides all of /configs if the catalog was in a part of it', async () => {
    const original = await imageOf({ label: '/configs/v1' });
    const rebuilt = await rebuild(await open(original));
    const list = execFileSync('tar', ['-t', '-f', '-'], { input: blobOf(rebuilt, LAYER) });
    expect(list.toString().trim().split('\n')).toEqual(['.wh.configs', 'tmp/', 'tmp/.wh.cache']);
    const again = await open(asImage(rebuilt, original));
    expect(again.source.packages.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('has the selected part, and is unchanged if all of it is selected', async () => {
    const original = await imageOf();
    const opened = await open(original);
    const packages = [{ name: 'a', channels: [{ name: 'stable' }] }];
    const { catalog } = filterCatalog(opened.source, { packages, full: false });
    expect(catalog.bundles.map(({ name }) => name)).toEqual(['a.v2']);
    const rebuilt = await rebuildCatalog({ ...opened, filtered: catalog });
    const again = await open(asImage(rebuilt, original));
    const everything = filterCatalog(again.source, { packages: [], full: true });
    expect(everything.isWhole).toBe(true);
    expect(withoutPlaces(everything.catalog)).toEqual(withoutPlaces(catalog));
  });

  it('has the same bytes when it is rebuilt again', async () => {
    const [one, two] = [
      await rebuild(await open(await imageOf())),
      await rebuild(await open(await imageOf())),
    ];
    expect(one).toEqual(two);
    // Of these inputs, on every machine; another value means that catalogs in use change their digest.
    expect(digestOf(blobOf(one, LAYER, 1))).toBe(
      'sha256:cc007c670bd550dce52dfde511d62d419b2a3329593b983b622e888d9ce2a974',
    );
    expect(digestOf(blobOf(one, CONFIG))).toBe(
      'sha256:9454b8a2990231c9750a9aa34a9b79a0bced105ebe7646ffdddaf44a1c55d058',
    );
  });

  it('is an index if all platforms of an index are rebuilt, else one manifest', async () => {
    const images = [await imageOf(), await imageOf({ architecture: 's390x' })] as const;
    const absent = {
      ...descriptorOf(Buffer.from('{}'), 'application/vnd.oci.image.manifest.v1+json'),
      platform: { os: 'unknown', architecture: 'unknown' },
    };
    const index = buildIndex(
      [
        [AMD64, images[0]],
        [{ ...S390X, variant: 'z' }, images[1]],
      ],
      { absent },
    );
    const rebuilt = await rebuild(await open(index));
    expect(rebuilt.manifests).toHaveLength(3);
    expect(rebuilt.top.manifest).toMatchObject({
      kind: 'index',
      manifests: [
        { digest: rebuilt.manifests[1]?.descriptor.digest, platform: AMD64 },
        { digest: rebuilt.manifests[2]?.descriptor.digest, platform: { ...S390X, variant: 'z' } },
      ],
    });
    expect(rebuilt.blobs).toHaveLength(4); // two layers that both share, two configs

    const one = await rebuild(await open(index, { ...S390X, variant: 'z' }));
    expect(one.manifests).toEqual([rebuilt.manifests[2]]);
    expect(one.top).toBe(one.manifests[0]);
  });

  it.skipIf(!requireTool('skopeo')).each(['oci', 'docker'] as const)(
    'is copied and inspected by skopeo as %s',
    async (family) => {
      const original = await imageOf({ family });
      const rebuilt = await rebuild(await open(original));
      const image = asImage(rebuilt, original);
      await writeOciLayout(join(folder, 'layout'), [['v1', image]]);
      await writeTree(join(folder, 'plain'), planDirLayout(image.manifests), image.blobs);
      const skopeo = (...args: string[]): Buffer =>
        execFileSync('skopeo', ['--insecure-policy', ...args]);
      const from = family === 'oci' ? `oci:${folder}/layout:v1` : `dir:${folder}/plain`;
      skopeo('copy', '-q', '--preserve-digests', from, `dir:${folder}/dir`);
      expect(await readFile(join(folder, 'dir', 'manifest.json'))).toEqual(rebuilt.top.bytes);
      const config = json(skopeo('inspect', '--config', `dir:${folder}/dir`));
      expect(config).toMatchObject({ config: { Cmd: ['serve', '/configs'] } });
      skopeo('copy', '-q', '-f', 'oci', `dir:${folder}/dir`, `oci:${folder}/converted:v1`);
      const { client, cache, reference } = await openOciLayout(join(folder, 'converted'));
      const tools = { client, cache, signal };
      const converted = await openCatalogImage(tools, reference, 'all');
      const { packages } = await readCatalog(await extractCatalog(tools, converted, folder));
      expect(packages.map(({ name }) => name)).toEqual(['a', 'b']);
    },
  );
});

describe('a catalog that cannot be rebuilt', () => {
  it.each(['../a', 'a/b', '..', '.wh.a', 'catalog.json', `a${'b'.repeat(255)}`, 'a\nb'])(
    'has a package that cannot name a directory: %j',
    async (name) => {
      const opened = await open(await imageOf());
      const filtered = {
        ...opened.source,
        packages: opened.source.packages.map((one) => ({ ...one, name })),
      };
      await expect(rebuildCatalog({ ...opened, filtered })).rejects.toThrow(
        expect.objectContaining({ code: 'catalog.package-name' }),
      );
    },
  );

  it('has a config that does not list its layers', async () => {
    const opened = await open(await imageOf({ config: { rootfs: null } }));
    await expect(rebuild(opened)).rejects.toThrow(
      expect.objectContaining({ code: 'catalog.config-malformed' }),
    );
  });

  it('changed after it was read', async () => {
    const opened = await open(await imageOf());
    await writeFile(join(opened.directory, 'a/catalog.json'), '['.repeat(2000));
    await expect(rebuild(opened)).rejects.toThrow(
      expect.objectContaining({ code: 'catalog.changed' }),
    );
  });
});
