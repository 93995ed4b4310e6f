import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Explanation } from '../../src/media/explain.ts';
import { addCatalog, makeOperator, type TestDocument } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

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
    readonly digest: string;
    readonly isRebuilt: boolean;
    readonly bundles: readonly string[];
  }[];
};

const hasTools = [requireTool('genisoimage'), requireTool('isohybrid')].every(Boolean);

describe.skipIf(!hasTools)('operators of a catalog', () => {
  let world: LiveWorld;
  let alpha: readonly TestDocument[];
  let beta: readonly TestDocument[];

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry } = world;
    const own = { registry, host: registry.host };
    alpha = await makeOperator(own, {
      name: 'alpha',
      channels: { stable: ['1.0.0', '1.1.0', '1.2.0'], fast: ['1.1.0', '1.2.0', '2.0.0'] },
      images: ['alpha/operand', 'shared/proxy'],
    });
    beta = await makeOperator(own, {
      name: 'beta',
      channels: { stable: ['3.0.0', '3.1.0'] },
      images: ['beta/operand'],
    });
    await addCatalog(registry, 'redhat/redhat-operator-index', {
      tag: 'v4.21',
      files: { 'alpha/catalog.json': alpha, 'beta/catalog.json': beta },
      architectures: ['amd64', 'arm64'],
    });
  }, 60_000);
  afterAll(() => world.close());

  const select = (...lines: string[]): Promise<void> =>
    world.writeConfig(
      'operators:',
      `  - catalog: ${world.registry.host}/redhat/redhat-operator-index:v4.21`,
      ...lines.map((line) => `    ${line}`),
    );

  async function plan(): Promise<Plan> {
    const { exitCode, stdout, stderr } = await world.run('plan', '-o', 'json');
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as Plan;
  }

  it('are planned as heads of the named channels, each with its cost', async () => {
    await select('packages: [{name: alpha, channels: [{name: stable}]}]');
    const { parts, catalogs } = await plan();
    expect(catalogs).toMatchObject([{ isRebuilt: true, bundles: ['alpha.v1.2.0'] }]);
    const [cost] = parts.filter(({ part }) => part === 'alpha');
    expect(cost?.images).toBe(3);
    expect(cost?.marginalSize).toBeGreaterThan(0);
    expect(cost?.size).toBeGreaterThan(cost?.marginalSize ?? 0); // the lowest layer is everybody's
  });

  it('are planned from a bundle to the head of a channel with minBundle', async () => {
    await select('packages: [{name: alpha, channels: [{name: stable, minBundle: alpha.v1.1.0}]}]');
    const { catalogs } = await plan();
    expect(catalogs).toMatchObject([{ bundles: ['alpha.v1.1.0', 'alpha.v1.2.0'] }]);
  });

  it('are refused if the catalog does not have them, with the names that it has', async () => {
    await select('packages: [{name: alpa}]');
    const { exitCode, stderr } = await world.run('plan');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/"alpa"[\s\S]*alpha/);
  });

  it('make a medium that is planned to the byte and verified whole', async () => {
    await select('packages: [{name: alpha, channels: [{name: stable}]}, {name: beta}]');
    const { isoSize } = await plan();
    const built = await world.run('build', '--output', 'operators.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    const listed = await world.run('ls', 'operators.iso', '-R', '-o', 'json');
    expect(listed.stdout).toContain('/redhat/redhat-operator-index/_manifests/tags/v4.21/');
    const inspected = await world.run('inspect', 'operators.iso', '-o', 'json');
    expect(JSON.parse(inspected.stdout)).toMatchObject({ size: isoSize });
    const { stdout: index } = await world.run('cat', 'operators.iso', '/sealift/index.json');
    expect(JSON.parse(index)).toMatchObject({
      format: 2,
      catalogs: [
        {
          packages: [
            {
              name: 'alpha',
              channels: [{ name: 'stable', head: 'alpha.v1.2.0' }],
              bundles: [{ name: 'alpha.v1.2.0', version: '1.2.0' }],
            },
            { name: 'beta' },
          ],
        },
      ],
    });
    const verified = await world.run('verify', 'operators.iso');
    expect(verified.exitCode, verified.stderr + verified.stdout).toBe(0);
  });

  it('bring the cluster their catalog and the mirrors of their images', async () => {
    const shown = await world.run('ignition', 'show', '--bootstrap', 'operators.iso');
    expect(shown.exitCode, shown.stderr).toBe(0);
    const config = JSON.parse(shown.stdout) as {
      storage: { files: { path: string; contents: { source: string } }[] };
    };
    const textOf = (name: string): string => {
      const file = config.storage.files.find(({ path }) => path.includes(name));
      const [, base64 = ''] = (file?.contents.source ?? '').split('base64,');
      return Buffer.from(base64, 'base64').toString('utf8');
    };
    expect(textOf('cs-redhat-operator-index-v4-21')).toContain(
      'image: localhost:22625/redhat/redhat-operator-index:v4.21',
    );
    expect(textOf('idms-operator-0.yaml')).toContain(`source: ${world.registry.host}/alpha`);
    expect(textOf('/etc/containers/registries.conf')).toContain(
      'location = "localhost:22625/alpha"',
    );
  });

  it('come with the resources that a cluster needs to use the media', async () => {
    world.env['NODE_OPTIONS'] = '--tls-min-v1.0'; // its warning is a member of reports, and of no list
    const { exitCode, stdout, stderr } = await world.run('resources');
    delete world.env['NODE_OPTIONS'];
    expect(exitCode, stderr).toBe(0);
    for (const kind of ['ImageDigestMirrorSet', 'CatalogSource', 'ClusterCatalog', 'OperatorHub']) {
      expect(stdout).toContain(`kind: ${kind}`);
    }
  });

  it('are named as the reason for an image', async () => {
    const { exitCode, stdout, stderr } = await world.run('why', 'shared/proxy', '-o', 'json');
    expect(exitCode, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      images: [{ name: 'shared/proxy', neededBy: [{ part: 'alpha', bundle: 'alpha.v1.2.0' }] }],
    });
  });

  it('are explained by their medium as by their plan, as far as its index shows', async () => {
    const ask = async (...args: readonly string[]): Promise<Explanation['images']> => {
      const { exitCode, stdout, stderr } = await world.run('why', '/', '-o', 'json', ...args);
      expect(exitCode, stderr).toBe(0);
      return (JSON.parse(stdout) as Explanation).images;
    };
    const medium = await ask('--iso', 'operators.iso');
    const planned = await ask();
    const facts = ({ reference, repository, size, marginalSize }: Explanation['images'][number]) =>
      [reference, repository, size, marginalSize].join(' ');
    expect(medium.map(facts).sort()).toEqual(planned.map(facts).sort());
    for (const image of planned) {
      const told = medium.find((each) => facts(each) === facts(image));
      const parts = told?.neededBy.map(({ part }) => part);
      const wanted = image.neededBy.map(({ part }) => part.replace(/^release$/, 'release 4.21.3'));
      const [operand] = [image.name].filter((name) => /operand|proxy/.test(name));
      expect([image.name, told?.unknown !== undefined]).toEqual([
        image.name,
        operand !== undefined,
      ]);
      if (operand === undefined) expect([image.name, parts]).toEqual([image.name, wanted]);
      else expect(parts).toEqual(expect.arrayContaining(wanted));
    }
    const both = await world.run('why', 'etcd', 'a.yaml', '--iso', 'operators.iso');
    expect([both.exitCode, both.stderr]).toEqual([
      2,
      expect.stringContaining('usage.iso-and-config'),
    ]);
    const base = await world.run('why', 'etcd', '--iso', 'test.iso');
    expect([base.exitCode, base.stderr]).toEqual([5, expect.stringContaining('why.no-index')]);
  });

  it('that make the medium too large are offered for leaving out, before any download', async () => {
    await select('packages: [{name: alpha}, {name: beta}]');
    const { isoSize } = await plan();
    await world.writeConfig(
      `  maxSize: ${isoSize - 100}B`,
      'operators:',
      `  - catalog: ${world.registry.host}/redhat/redhat-operator-index:v4.21`,
      '    packages: [{name: alpha}, {name: beta}]',
    );
    const { exitCode, stderr } = await world.run('plan');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/leave out (alpha|beta)/);
  });

  it('are all reported if their images no longer exist, with what needs each', async () => {
    const gone = await makeOperator(
      { registry: (await createEmpty()).registry, host: world.registry.host },
      { name: 'gamma', channels: { stable: ['1.0.0'] }, images: ['gamma/a', 'gamma/b'] },
    );
    await addCatalog(world.registry, 'redhat/broken-index', {
      tag: 'v1',
      files: { 'gamma/catalog.json': gone },
    });
    await world.writeConfig(
      'operators:',
      `  - catalog: ${world.registry.host}/redhat/broken-index:v1`,
    );
    const { exitCode, stderr } = await world.run('build', '--output', 'broken.iso');
    expect(exitCode).toBe(4);
    expect(stderr).toMatch(/gamma\/a[\s\S]*gamma\/b/);
    expect(stderr).toContain('needed by gamma.v1.0.0');
  });

  async function createEmpty(): Promise<LiveWorld> {
    const empty = await createLiveWorld();
    await empty.close();
    return empty;
  }
});
