import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCatalog, makeOperator, type TestDocument } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';

import { requireTool } from '../support/tools.ts';

type Plan = {
  readonly catalogs: readonly { readonly digest: string; readonly bundles: readonly string[] }[];
};

const INDEX = 'redhat/redhat-operator-index';

const hasTools = ['genisoimage', 'isohybrid', 'skopeo'].map((tool) => requireTool(tool));

describe.skipIf(hasTools.includes(false))('a catalog on this machine', () => {
  let world: LiveWorld;

  beforeAll(async () => {
    world = await createLiveWorld({ components: ['operator-registry'] });
    await writeCatalogs('1.2.0');
  }, 60_000);
  afterAll(() => world.close());

  /** The same catalog in the registry, as an OCI layout and as a directory. */
  async function writeCatalogs(head: string): Promise<void> {
    const { registry, directory } = world;
    const alpha: readonly TestDocument[] = await makeOperator(
      { registry, host: registry.host },
      { name: 'alpha', channels: { stable: ['1.0.0', head] } },
    );
    const beta = await makeOperator(
      { registry, host: registry.host },
      { name: 'beta', channels: { stable: ['3.0.0'] } },
    );
    await addCatalog(registry, INDEX, {
      tag: 'v4.21',
      files: { 'alpha/catalog.json': alpha, 'beta/catalog.json': beta },
      architectures: ['amd64', 'arm64'],
    });
    const layout = join(directory, 'catalogs/redhat-operator-index');
    await rm(layout, { recursive: true, force: true });
    await mkdir(join(directory, 'catalogs/own-index/alpha'), { recursive: true });
    await promisify(execFile)('skopeo', [
      ...['copy', '--quiet', '--multi-arch', 'all', '--src-tls-verify=false'],
      ...[`docker://${registry.host}/${INDEX}:v4.21`, `oci:${layout}`],
    ]);
    await writeFile(
      join(directory, 'catalogs/own-index/alpha/catalog.json'),
      alpha.map((document) => JSON.stringify(document)).join('\n'),
    );
  }

  const select = (...entries: readonly string[]): Promise<void> =>
    world.writeConfig('operators:', ...entries.map((entry) => `  - ${entry}`));

  async function run(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect(exitCode, stderr + stdout).toBe(0);
    return stdout;
  }
  const plan = async (): Promise<Plan> => JSON.parse(await run('plan', '-o', 'json')) as Plan;

  it('is carried under the names that oc-mirror gives it, and no registry is asked for it', async () => {
    await select(
      '{catalog: oci:catalogs/redhat-operator-index, packages: [{name: alpha}]}',
      '{catalog: file:./catalogs/own-index, targetCatalog: team/own, targetTag: v1}',
    );
    await run('validate');
    await run('build', '--output', 'a.iso');
    await run('verify', 'a.iso');
    const listed = await run('ls', 'a.iso', '-R', '-o', 'json');
    expect(listed).toContain('/redhat-operator-index/_manifests/tags/latest/');
    expect(listed).toContain('/team/own/_manifests/tags/v1/');
    const resources = await run('resources');
    expect(resources).toContain('name: cs-redhat-operator-index-latest\n');
    expect(resources).toContain('image: localhost:22625/redhat-operator-index:latest\n');
    expect(resources).toContain('image: localhost:22625/team/own:v1\n');
  });

  it('leaves no trace of its path on the media', async () => {
    const index = await run('cat', 'a.iso', '/sealift/index.json');
    expect(index).toContain('"redhat-operator-index:latest"');
    expect(index).not.toMatch(/catalogs\/|own-index/);
  });

  it('is put into the release image that serves catalogs if it is a directory', async () => {
    const index = await run('cat', 'a.iso', '/sealift/index.json');
    const digest = (await plan()).catalogs[1]?.digest ?? '';
    expect(index).toContain(digest);
    const read = async (blob: string): Promise<Record<string, unknown>> => {
      const hex = blob.replace('sha256:', '');
      const path = join(world.directory, '.sealift/cache/blobs/sha256', hex);
      return JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    };
    const manifest = (await read(digest)) as { config: { digest: string }; layers: unknown[] };
    expect(manifest.layers).toHaveLength(4); // two of the component, what hides, what is kept
    expect(await read(manifest.config.digest)).toMatchObject({
      config: {
        Entrypoint: ['/bin/opm'],
        Cmd: ['serve', '/configs'],
        Labels: { 'operators.operatorframework.io.index.configs.v1': '/configs' },
      },
    });
  });

  it('keeps its digest if it is an OCI layout and selected whole', async () => {
    await select('{catalog: oci:catalogs/redhat-operator-index, full: true}');
    const layout = join(world.directory, 'catalogs/redhat-operator-index/index.json');
    const { manifests } = JSON.parse(await readFile(layout, 'utf8')) as {
      readonly manifests: readonly { readonly digest: string }[];
    };
    expect((await plan()).catalogs).toMatchObject([{ digest: manifests[0]?.digest }]);
    await run('build', '--output', 'whole.iso');
    await run('verify', 'whole.iso');
  });

  it('is read again when its content changes', async () => {
    await select(
      '{catalog: oci:catalogs/redhat-operator-index, packages: [{name: alpha}]}',
      '{catalog: file:catalogs/own-index}',
    );
    const before = await plan();
    await writeCatalogs('1.3.0');
    const after = await plan();
    const bundlesOf = ({ catalogs }: Plan) => catalogs.map(({ bundles }) => bundles);
    expect(bundlesOf(before)).toEqual([['alpha.v1.2.0'], ['alpha.v1.2.0']]);
    expect(bundlesOf(after)).toEqual([['alpha.v1.3.0'], ['alpha.v1.3.0']]);
  });

  it('is shown with the selection of the configuration', async () => {
    const reference = `${world.registry.host}/${INDEX}:v4.21`;
    await select(
      `{catalog: "${reference}", packages: [{name: beta}]}`,
      '{catalog: oci:catalogs/redhat-operator-index, full: true, packages: [{name: alpha}]}',
      '{catalog: file:catalogs/own-index}',
    );
    const config = ['--config', 'appliance-config.yaml', '-o', 'json'];
    type View = { readonly bundles: readonly { readonly name: string }[] };
    const show = async (...args: readonly string[]): Promise<View> =>
      JSON.parse(await run('catalog', 'show', ...args, ...config)) as View;
    const namesOf = ({ bundles }: View) => bundles.map(({ name }) => name);
    const { catalogs } = (await show()) as unknown as {
      readonly catalogs: readonly (View & { readonly catalog: string })[];
    };
    expect(catalogs.map((view) => [view.catalog, ...namesOf(view)])).toEqual([
      [reference, 'beta.v3.0.0'],
      ['oci:catalogs/redhat-operator-index', 'alpha.v1.0.0', 'alpha.v1.3.0'],
      ['file:catalogs/own-index', 'alpha.v1.3.0'],
    ]);
    expect(namesOf(await show(reference))).toEqual(['beta.v3.0.0']);
    expect(namesOf(await show(reference, '--package', 'alpha'))).toEqual(['alpha.v1.3.0']);
    expect(namesOf(await show('file:catalogs/own-index'))).toEqual(['alpha.v1.3.0']);
    const unnamed = await world.run('catalog', 'show');
    expect([unnamed.exitCode, unnamed.stderr]).toEqual([
      2,
      expect.stringContaining('name a catalog, or give --config') as string,
    ]);
  });

  it('is a configuration error if it does not exist or cannot be named', async () => {
    await mkdir(join(world.directory, 'catalogs/My Index'), { recursive: true });
    await select(
      '{catalog: oci:catalogs/absent}',
      '{catalog: file:catalogs/absent}',
      '{catalog: oci:catalogs/own-index:v1}',
      '{catalog: "file:catalogs/My Index"}',
      '{catalog: oci://catalogs/own-index}',
    );
    const { exitCode, stderr } = await world.run('validate');
    expect(exitCode).toBe(3);
    const problems = stderr.split('\n').filter((line) => line.startsWith('appliance-config.yaml:'));
    expect(problems.map((line) => line.replaceAll(`${world.directory}/`, ''))).toEqual([
      'appliance-config.yaml:14:15: operators[0].catalog: catalogs/absent is not an OCI image layout: it has no file "oci-layout"',
      'appliance-config.yaml:15:15: operators[1].catalog: catalogs/absent is not a directory',
      'appliance-config.yaml:16:15: operators[2].catalog: catalogs/own-index is not an OCI image layout: it has no file "oci-layout"',
      'appliance-config.yaml:17:15: operators[3].catalog: "My Index" is not a valid repository for the copy of the catalog',
      'appliance-config.yaml:18:15: operators[4].catalog: catalog "oci://catalogs/own-index" cannot be read: // is followed by a host, but catalogs are read from this machine',
    ]);
  });
});
