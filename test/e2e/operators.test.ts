import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { digestFile } from '../../src/base/disk/files.ts';
import { runProcess } from '../../src/base/process.ts';
import { addCatalog } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { serveMedium } from '../support/served-medium.ts';
import { makeStandIns, nameStandIns, writeDirImage, type StandIn } from '../support/stand-ins.ts';
import { requireTool } from '../support/tools.ts';

const REAL = resolve('../shared/data/fbc');
const FILES = [
  'cnv-v4.18/kubevirt-hyperconverged/catalog.json',
  'mtv-v4.18/mtv-operator/catalog.json',
  'jaeger-product.catalog.json',
  'node-observability-operator.v4.14.catalog.json',
];
const CATALOG = 'redhat/redhat-operator-index';
const TAG = 'v4.18';

/** What the build keeps, as the command line of `catalog show` has it. */
const KEPT = [
  ...[['kubevirt-hyperconverged', '--channel', 'stable', '--min', '4.18.4', '--max', '4.18.9']],
  ...[['mtv-operator', '--channel', 'release-v2.9', '--min', '2.9.7']],
] as const;

type View = {
  readonly packages: readonly { readonly name: string; readonly defaultChannel: string }[];
  readonly bundles: readonly { readonly name: string }[];
  readonly relatedImages: readonly string[];
};

type Carried = {
  readonly set: string;
  readonly source: string;
  readonly repository: string;
  readonly tags: readonly string[];
  readonly manifests: readonly string[];
};

const hasTools = ['docker-registry', 'skopeo', 'genisoimage', 'isohybrid', 'jq']
  .map((tool) => requireTool(tool))
  .every(Boolean);

/** Only root unpacks an image without further setup. */
const isRoot = process.getuid?.() === 0;

describe.skipIf(!hasTools || !existsSync(REAL))('operators of a real catalog', () => {
  let world: LiveWorld;
  let registry: PlainRegistry;
  let standIns: ReadonlyMap<string, StandIn>;
  let catalogDigest: string;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    registry = await startPlainRegistry(at('hub'));
    standIns = await makeStandIns((await showKept(`file:${REAL}`)).relatedImages);
    await pushStandIns();
    await pushCatalog();
    await writeFile(
      at('registries.conf'),
      `[[registry]]\nprefix = "registry.redhat.io"\nlocation = "${registry.host}"\ninsecure = true\n`,
    );
    await world.writeConfig(
      '  registriesConf: registries.conf',
      'operators:',
      `  - catalog: registry.redhat.io/${CATALOG}:${TAG}`,
      '    packages:',
      '      - name: kubevirt-hyperconverged',
      '        channels: [{name: stable, minVersion: 4.18.4, maxVersion: 4.18.9}]',
      '      - name: mtv-operator',
      '        channels: [{name: release-v2.9, minVersion: 2.9.7}]',
    );
  }, 60_000);
  afterAll(async () => {
    await registry.close();
    await world.close();
  });

  async function run(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect(exitCode, stderr).toBe(0);
    return stdout;
  }

  const show = async (catalog: string, ...args: readonly string[]): Promise<View> =>
    JSON.parse(await run('catalog', 'show', catalog, '-o', 'json', ...args)) as View;

  /** What the build is to keep: several packages can only be narrowed one by one. */
  async function showKept(catalog: string, ...more: readonly string[]): Promise<View> {
    const views: View[] = [];
    for (const args of KEPT) views.push(await show(catalog, '--package', ...args, ...more));
    return {
      packages: views.flatMap(({ packages }) => packages),
      bundles: views.flatMap(({ bundles }) => bundles),
      relatedImages: views.flatMap(({ relatedImages }) => relatedImages).sort(),
    };
  }

  async function pushStandIns(): Promise<void> {
    for (const { repository, digest, image } of standIns.values()) {
      await writeDirImage(at(`stand-ins/${repository}:t${hexOf(digest).slice(0, 12)}`), image);
    }
    await runProcess('skopeo', [
      ...['sync', '--all', '--scoped', '--preserve-digests', '--dest-tls-verify=false'],
      ...['--src', 'dir', '--dest', 'docker', at('stand-ins'), registry.host],
    ]);
  }

  /** The files of the real catalogs, in an image of two architectures. */
  async function pushCatalog(): Promise<void> {
    const files: Record<string, string> = {};
    for (const name of FILES) {
      files[name] = nameStandIns(await readFile(join(REAL, name), 'utf8'), standIns);
      await mkdir(dirname(at(`configs/${name}`)), { recursive: true });
      await writeFile(at(`configs/${name}`), files[name]);
    }
    const architectures = ['amd64', 'arm64'];
    catalogDigest = await addCatalog(world.registry, CATALOG, { tag: TAG, files, architectures });
    await runProcess('skopeo', [
      ...['copy', '--all', '--preserve-digests', '--src-tls-verify=false'],
      ...['--dest-tls-verify=false', `docker://${world.registry.host}/${CATALOG}:${TAG}`],
      `docker://${registry.host}/${CATALOG}:${TAG}`,
    ]);
  }

  async function listCarried(iso: string): Promise<readonly Carried[]> {
    const { images } = JSON.parse(await run('cat', iso, '/sealift/index.json')) as {
      readonly images: readonly Carried[];
    };
    return images.filter(({ set }) => set === 'operator');
  }

  it('are listed in the same way from a registry and from a directory', async () => {
    await writeFile(at('access.yaml'), await readFile(at('appliance-config.yaml'), 'utf8'));
    const access = ['--config', 'access.yaml'];
    const fromRegistry = await run(
      ...['catalog', 'list', `registry.redhat.io/${CATALOG}:${TAG}`, '-o', 'json', ...access],
    );
    const listed = JSON.parse(fromRegistry) as View;
    expect(listed.packages.map(({ name }) => name).sort()).toEqual([
      ...['jaeger-product', 'kubevirt-hyperconverged', 'mtv-operator'],
      'node-observability-operator',
    ]);
    expect(await run('catalog', 'list', 'file:configs', '-o', 'json')).toBe(fromRegistry);
    expect(await run('catalog', 'list', 'file:configs')).toMatch(
      /^mtv-operator\n {2}\* release-v2\.10 +mtv-operator\.v2\.10\.7\n/m,
    );
    expect(await showKept(`registry.redhat.io/${CATALOG}:${TAG}`, ...access)).toEqual(
      await showKept('file:configs'),
    );
  });

  it('make a medium that is verified whole and has every image of the selection', async () => {
    await run('build', '--output', 'operators.iso');
    await run('verify', 'operators.iso');
    const carried = await listCarried('operators.iso');
    const { relatedImages, bundles } = await showKept('file:configs');
    expect(bundles.length).toBe(3);
    expect(relatedImages.length).toBeGreaterThan(70);
    const sources = carried.map(({ source }) => source).filter((one) => !one.includes(CATALOG));
    expect(sources.sort()).toEqual(relatedImages);
  }, 60_000);

  it('make the same medium to the byte from another work directory', async () => {
    await run('build', '--output', 'again.iso', '--work-dir', 'other');
    expect(await digestFile(at('again.iso'))).toEqual(await digestFile(at('operators.iso')));
  }, 60_000);

  it('are served from the medium by tag and by digest, with the catalog of the selection', async () => {
    const carried = await listCarried('operators.iso');
    const [catalog] = carried.filter(({ repository }) => repository === CATALOG);
    const { host, close } = await serveMedium('operators.iso', world.directory);
    try {
      await pullAll(host, carried);
      const source = `docker://${host}/${CATALOG}:${TAG}`;
      const raw = await runProcess('skopeo', [
        ...['inspect', '--raw', '--tls-verify=false', source],
      ]);
      expect(digestOf(raw.stdout)).toBe(catalog?.manifests[0]);
      expect(catalog?.manifests[0]).not.toBe(catalogDigest);
      await runProcess('skopeo', [
        ...['copy', '--src-tls-verify=false', '--override-arch', 'amd64', source],
        `oci:${at('rebuilt')}:${TAG}`,
      ]);
    } finally {
      expect(await close()).toBe(143);
    }
    const rebuilt = await show('oci:rebuilt', '--full');
    const kept = await showKept('file:configs');
    expect({ ...rebuilt, warnings: [] }).toEqual({ ...kept, warnings: [] });
    expect(rebuilt.packages[1]?.defaultChannel).toBe('release-v2.9');
  }, 60_000);

  it.skipIf(!isRoot)(
    'are the whole content of the catalog image when a host unpacks it',
    async () => {
      const image = `oci:${at('rebuilt')}:${TAG}`;
      const store = `[vfs@${at('storage')}+${at('storage-run')}]`;
      await runProcess('skopeo', ['copy', image, `containers-storage:${store}localhost/c:${TAG}`]);
      const { stdout: config } = await runProcess('skopeo', ['inspect', '--config', image]);
      expect(JSON.parse(config)).toMatchObject({
        config: {
          Entrypoint: ['/bin/opm'],
          Cmd: ['serve', '/configs'],
          Labels: { 'operators.operatorframework.io.index.configs.v1': '/configs' },
        },
      });
      const root = await findUnpacked(at('storage'));
      expect((await readdir(join(root, 'configs'))).sort()).toEqual([
        ...['kubevirt-hyperconverged', 'mtv-operator'],
      ]);
      expect(await readdir(join(root, 'tmp'))).toEqual([]); // the cache was of the whole catalog
      const original = new Set(await listDocuments(at('configs')));
      const bundles = (await listDocuments(join(root, 'configs'))).filter((line) =>
        line.includes('"schema":"olm.bundle"'),
      );
      expect(bundles).toHaveLength(3);
      for (const bundle of bundles) expect(original.has(bundle), bundle.slice(0, 80)).toBe(true);
    },
  );

  /** The root of the only image that containers/storage has. */
  async function findUnpacked(storage: string): Promise<string> {
    const text = await readFile(join(storage, 'vfs-images/images.json'), 'utf8');
    const [image] = JSON.parse(text) as readonly { readonly layer: string }[];
    return join(storage, 'vfs/dir', image?.layer ?? 'none');
  }

  /** Every document of a catalog as jq writes it, with sorted keys. */
  async function listDocuments(directory: string): Promise<readonly string[]> {
    const entries = await readdir(directory, { recursive: true });
    const files = entries.filter((name) => name.endsWith('.json'));
    const { stdout } = await runProcess('jq', ['-cS', '.', ...files], { cwd: directory });
    return stdout.split('\n').filter((line) => line !== '');
  }

  it('are explained with the operator that needs each image', async () => {
    const name = 'container-native-virtualization/virt-api-rhel9';
    const { images } = JSON.parse(await run('why', name, '-o', 'json')) as {
      readonly images: readonly { readonly neededBy: readonly object[] }[];
    };
    expect(images).toHaveLength(1);
    expect(images[0]?.neededBy).toMatchObject([
      { part: 'kubevirt-hyperconverged', bundle: 'kubevirt-hyperconverged-operator.v4.18.8' },
    ]);
  });

  /** Pulls every image under all of its names, and holds what came against its digest. */
  async function pullAll(host: string, carried: readonly Carried[]): Promise<void> {
    const single = carried.filter(({ repository }) => repository !== CATALOG);
    const images: Record<string, string[]> = {};
    for (const { repository, tags, manifests } of single) {
      (images[repository] ??= []).push(...tags, ...manifests);
    }
    await writeFile(at('all.yaml'), JSON.stringify({ [host]: { 'tls-verify': false, images } }));
    await mkdir(at('back'));
    await runProcess('skopeo', [
      ...['sync', '--scoped', '--preserve-digests', '--override-arch', 'amd64'],
      ...['--src', 'yaml', '--dest', 'dir', at('all.yaml'), at('back')],
    ]);
    for (const { repository, tags, manifests } of single) {
      expect(tags.length).toBeGreaterThan(0);
      for (const name of [...tags.map((tag) => `:${tag}`), ...manifests.map((one) => `@${one}`)]) {
        const path = join(at('back'), host, repository + name, 'manifest.json');
        expect(digestOf(await readFile(path)), path).toBe(manifests.at(-1)); // of an index, its child
      }
    }
  }
});
