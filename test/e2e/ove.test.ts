import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import {
  addOveCatalog,
  completeOveConfig,
  formatOveRegistriesConf,
  parseOveSelection,
} from '../support/ove.ts';
import { makeStandIns, nameStandIns } from '../support/stand-ins.ts';
import { requireTool } from '../support/tools.ts';

const DATA = resolve('../shared/data');
const CATALOG = 'redhat/redhat-operator-index';

const REAL_PACKAGES = [
  {
    name: 'kubevirt-hyperconverged',
    path: 'cnv-v4.18/kubevirt-hyperconverged/catalog.json',
    channel: 'stable',
  },
  { name: 'mtv-operator', path: 'mtv-v4.18/mtv-operator/catalog.json', channel: 'release-v2.12' },
] as const;

type Plan = {
  readonly isoSize: number;
  readonly images: number;
  readonly parts: readonly {
    readonly part: string;
    readonly images: number;
    readonly size: number;
    readonly marginalSize: number;
  }[];
  readonly catalogs: readonly {
    readonly isRebuilt: boolean;
    readonly bundles: readonly string[];
  }[];
};

type Resource = {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
};

type Carried = { readonly set: string; readonly source: string; readonly repository: string };

type Mirror = { readonly source: string; readonly mirrors: readonly string[] };

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools || !existsSync(DATA))('a configuration for OVE media', () => {
  let world: LiveWorld;
  let planned: Plan;

  beforeAll(async () => {
    world = await createLiveWorld();
    await writeFile(
      join(world.directory, 'registries.conf'),
      formatOveRegistriesConf(world.registry.host),
    );
  }, 60_000);
  afterAll(() => world.close());

  async function run(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect(exitCode, stderr).toBe(0);
    return stdout;
  }

  const readConfig = (version: string): Promise<string> =>
    readFile(join(DATA, `ove-config/appliance-config.${version}.yaml`), 'utf8');

  async function configure(config: string, version: string): Promise<void> {
    const { registry, directory } = world;
    const complete = await completeOveConfig(config, { registry, directory, version });
    await writeFile(join(directory, 'appliance-config.yaml'), complete);
  }

  const plan = async (): Promise<Plan> => JSON.parse(await run('plan', '-o', 'json')) as Plan;

  /** The real packages at hand, with small images; that of an older release gets the channel. */
  async function addRealPackages(): Promise<Record<string, string>> {
    const files: Record<string, string> = {};
    for (const { name, path, channel } of REAL_PACKAGES) {
      const text = await readFile(join(DATA, 'fbc', path), 'utf8');
      const renamed = text.replaceAll('release-v2.10', 'release-v2.12');
      await mkdir(join(world.directory, name));
      await writeFile(join(world.directory, name, 'catalog.json'), renamed);
      const shown = await run(
        ...['catalog', 'show', `file:${name}`, '-o', 'json'],
        ...['--package', name, '--channel', channel],
      );
      const { relatedImages } = JSON.parse(shown) as { readonly relatedImages: readonly string[] };
      const standIns = await makeStandIns(relatedImages);
      for (const { repository, image } of standIns.values()) world.registry.add(repository, image);
      files[`${name}/catalog.json`] = nameStandIns(renamed, standIns);
    }
    return files;
  }

  it('of 4.21 gets the cost of each of its fourteen operators before anything is built', async () => {
    const config = await readConfig('4.21');
    const selection = parseOveSelection(config);
    await addOveCatalog(world.registry, selection, await addRealPackages());
    await configure(config, '4.21.3');
    planned = await plan();
    expect(planned.catalogs).toMatchObject([{ isRebuilt: true }]);
    expect(planned.catalogs[0]?.bundles).toHaveLength(14);
    for (const { name } of selection.packages) {
      const [cost] = planned.parts.filter(({ part }) => part === name);
      expect(cost?.images, name).toBeGreaterThan(5);
      expect(cost?.marginalSize, name).toBeGreaterThan(0);
      expect(cost?.size, name).toBeGreaterThan(cost?.marginalSize ?? 0); // all share a layer
    }
    expect(planned.parts.map(({ part }) => part).sort()).toEqual(
      [
        ...['additional images', `catalog ${selection.catalog}`, 'registry image', 'release'],
        ...selection.packages.map(({ name }) => name),
      ].sort(),
    );
  }, 60_000);

  it('of 4.21 is built complete, with the planned size', async () => {
    await run('build', '--output', 'ove.iso');
    await run('verify', 'ove.iso');
    const { size } = JSON.parse(await run('inspect', 'ove.iso', '-o', 'json')) as { size: number };
    expect(size).toBe(planned.isoSize);
    const tags = await run('ls', 'ove.iso', '-R');
    expect(tags).toContain(`/${CATALOG}/_manifests/tags/v4.21/`);
    expect(tags).toContain('/rhel9/support-tools/_manifests/tags/latest/');
  }, 60_000);

  it('of 4.21 gives the cluster its catalog under the usual name, and no other', async () => {
    const resources = await readResources();
    const find = (kind: string) => resources.filter((resource) => resource.kind === kind);
    expect(find('CatalogSource')).toMatchObject([
      {
        metadata: { name: 'redhat-operators', namespace: 'openshift-marketplace' },
        spec: { image: `localhost:22625/${CATALOG}:v4.21` },
      },
    ]);
    expect(find('OperatorHub')).toMatchObject([{ spec: { disableAllDefaultSources: true } }]);
    expect(find('InternalReleaseImage')).toMatchObject([
      {
        metadata: { name: 'cluster' },
        spec: { releases: [{ name: expect.any(String) as string }] },
      },
    ]);
  });

  it('of 4.21 leads the cluster to the registry of the media, which has everything that it requests', async () => {
    const sets = (await readResources()).filter(({ kind }) => kind.endsWith('MirrorSet'));
    expect(sets.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      'ImageDigestMirrorSet idms-operator-0',
      'ImageDigestMirrorSet idms-release-0',
      'ImageTagMirrorSet itms-generic-0',
    ]);
    const [byTag] = sets.filter(({ kind }) => kind === 'ImageTagMirrorSet').map(listMirrors);
    expect(byTag).toEqual([
      { source: 'registry.redhat.io/rhel9', mirrors: ['localhost:22625/rhel9'] },
    ]);
    expectMirrored(sets.flatMap(listMirrors), await listImages());
  });

  it('of 4.21 leads the hosts to that registry by the same mirrors as the cluster', async () => {
    const files = await readFiles();
    const conf: unknown = parseToml(files.get('/etc/containers/registries.conf') ?? '');
    const { registry } = conf as {
      readonly registry: readonly {
        readonly location: string;
        readonly mirror: readonly { readonly location: string }[];
      }[];
    };
    const inConf = registry.map(({ location, mirror }) => ({
      source: location,
      mirrors: mirror.map((one) => one.location),
    }));
    const sets = (await readResources()).filter(({ kind }) => kind.endsWith('MirrorSet'));
    expect(bySource(inConf)).toEqual(bySource(sets.flatMap(listMirrors)));
    expectMirrored(inConf, await listImages());
  });

  /** What the cluster or a host pulls by the name it has elsewhere. */
  async function listImages(): Promise<readonly Carried[]> {
    const { images } = JSON.parse(await run('cat', 'ove.iso', '/sealift/index.json')) as {
      readonly images: readonly Carried[];
    };
    const pulled = images.filter(
      ({ set, repository }) => set !== 'registry' && repository !== CATALOG,
    );
    expect(new Set(pulled.map(({ set }) => set))).toEqual(
      new Set(['additional', 'operator', 'release']),
    );
    return pulled;
  }

  async function readFiles(): Promise<ReadonlyMap<string, string>> {
    const config = JSON.parse(await run('ignition', 'show', '--bootstrap', 'ove.iso')) as {
      storage: { files: { path: string; contents: { source: string } }[] };
    };
    return new Map(
      config.storage.files.map(({ path, contents }) => {
        const [, base64 = ''] = contents.source.split('base64,');
        return [path, Buffer.from(base64, 'base64').toString('utf8')];
      }),
    );
  }

  async function readResources(): Promise<readonly Resource[]> {
    const files = [...(await readFiles())].filter(([path]) =>
      path.startsWith('/etc/assisted/extra-manifests/'),
    );
    return files.map(([, text]) => parseYaml(text) as Resource);
  }

  it.each([
    ['4.22', '4.22.1'],
    ['4.23', '4.23.0'],
    ['5.0', '5.0.0'],
  ])('of %s is planned complete', async (name, version) => {
    await expectComplete(await readConfig(name), version);
  });

  async function expectComplete(config: string, version: string): Promise<void> {
    const selection = parseOveSelection(config);
    await addOveCatalog(world.registry, selection);
    await configure(config, version);
    const { parts, catalogs } = await plan();
    const operators = selection.packages.map((one) => one.name);
    expect(parts.map(({ part }) => part)).toEqual(expect.arrayContaining(operators));
    expect(catalogs[0]?.bundles.toSorted()).toEqual(
      operators.map((operator) => `${operator}.v1.1.0`).sort(),
    );
  }
});

const listMirrors = ({ spec }: Resource): readonly Mirror[] =>
  Object.values(spec).flatMap((entries) => entries as readonly Mirror[]);

const bySource = (mirrors: readonly Mirror[]): ReadonlyMap<string, readonly string[]> =>
  new Map(mirrors.map(({ source, mirrors: copies }) => [source, copies]));

/** Every image is found at the mirror of the longest source that its name begins with. */
function expectMirrored(mirrors: readonly Mirror[], images: readonly Carried[]): void {
  for (const { source: name, repository } of images) {
    const path = /^[^/]+\/[^:@]+/.exec(name)?.[0] ?? '';
    const [longest] = mirrors
      .filter(({ source }) => `${path}/`.startsWith(`${source}/`))
      .toSorted((a, b) => b.source.length - a.source.length);
    const found = longest?.mirrors.map((copy) => copy + path.slice(longest.source.length));
    expect(found, name).toContain(`localhost:22625/${repository}`);
  }
}
