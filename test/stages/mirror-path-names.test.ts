import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCatalog, buildStandIn, makeOperator } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';
import { formatMirrorSet, MIRROR_HOST, writeWorkspace, type Copy } from '../support/workspace.ts';

const TOOLS = ['docker-registry', 'skopeo', 'genisoimage', 'isohybrid'];
const hasTools = TOOLS.map((tool) => requireTool(tool)).every(Boolean);

const INDEX = 'redhat/redhat-operator-index';

type Plan = {
  readonly extras: readonly string[];
  readonly blocked: readonly string[];
};

/** `oc-mirror docker://HOST/ns` puts everything below `ns`. */
describe.skipIf(!hasTools)('an oc-mirror workspace below a namespace', () => {
  let world: LiveWorld;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry, release } = world;
    for (const name of ['app', 'lib']) registry.add(`team/${name}`, await buildStandIn(name), '1');
    const alpha = await makeOperator(
      { registry, host: registry.host },
      { name: 'alpha', channels: { stable: ['1.0.0'] } },
    );
    await addCatalog(registry, INDEX, { tag: 'v4.21', files: { 'alpha/catalog.json': alpha } });
    const related = new Set(
      [...JSON.stringify(alpha).matchAll(/"([^"]+@sha256:[0-9a-f]{64})"/g)].map(([, name]) => name),
    );
    const copies: readonly Copy[] = [
      [release.pullspec, 'ns/openshift/release-images:4.21.3-x86_64'],
      ...Object.entries(release.components).map(([name, digest]): Copy => [
        `${registry.host}/ocp/art-dev@${digest}`,
        `ns/openshift/release:4.21.3-x86_64-${name}`,
      ]),
      [`${registry.host}/team/app:1`, 'ns/tools/app:x'],
      [`${registry.host}/team/lib:1`, 'ns/team/lib:1'],
      [`${registry.host}/team/lib:1`, 'openshift/release-bundles:ocp-release-bundle-4.21.3-x86_64'],
      [`${registry.host}/team/lib:1`, 'openshift/release-bundles:ocp-release-bundle-4.21.2-x86_64'],
      [`${registry.host}/${INDEX}:v4.21`, 'ns/my/index:stable'],
      ...[...related].map((image = ''): Copy => {
        const [name = '', digest = ''] = image.slice(image.indexOf('/') + 1).split('@');
        return [image, `ns/${name}:${digest.replace(':', '-')}`];
      }),
    ];
    await writeWorkspace(at('mirror'), copies, resources());
    await registry.close(); // from here on no network has anything
  }, 180_000);
  afterAll(() => rm(world.directory, { recursive: true, force: true }));

  function resources(): Readonly<Record<string, string>> {
    const { host } = world.registry;
    return {
      'idms-oc-mirror.yaml': [
        formatMirrorSet('idms-release-0', [
          [`${host}/ocp/release`, `${MIRROR_HOST}/ns/openshift/release-images`],
          [`${host}/ocp/art-dev`, `${MIRROR_HOST}/ns/openshift/release`],
        ]),
        formatMirrorSet('idms-operator-0', [[`${host}/alpha`, `${MIRROR_HOST}/ns/alpha`]]),
      ].join(''),
      'itms-oc-mirror.yaml': formatMirrorSet('itms-generic-0', [
        [`${host}/team`, `${MIRROR_HOST}/ns/team`],
        [`${host}/tools`, `${MIRROR_HOST}/ns/tools`],
      ])
        .replace('ImageDigestMirrorSet', 'ImageTagMirrorSet')
        .replace('imageDigestMirrors', 'imageTagMirrors')
        .replace(
          `source: ${host}/team`,
          `source: ${host}/team\n    mirrorSourcePolicy: NeverContactSource`,
        )
        .replace(
          `source: ${host}/tools`,
          `source: ${host}/tools\n    mirrorSourcePolicy: AllowContactingSource`,
        ),
      'cs-my-index-stable.yaml': [
        'apiVersion: operators.coreos.com/v1alpha1',
        'kind: CatalogSource',
        'metadata: {name: cs-my-index-stable, namespace: openshift-marketplace}',
        `spec: {image: "${MIRROR_HOST}/ns/my/index:stable", sourceType: grpc}`,
        '',
      ].join('\n'),
      'cc-my-index-stable.yaml': [
        'apiVersion: olm.operatorframework.io/v1',
        'kind: ClusterCatalog',
        'metadata: {name: cc-my-index-stable}',
        `spec: {priority: 0, source: {type: Image, image: {ref: "${MIRROR_HOST}/ns/my/index:stable"}}}`,
        '',
      ].join('\n'),
    };
  }

  async function configure(...lines: readonly string[]): Promise<void> {
    await world.writeConfig('mirrorPath: mirror', ...lines);
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(
      at('appliance-config.yaml'),
      text.replace(/^(pullSecret| {2}url| {2}insecureRegistries):.*\n/gm, ''),
    );
  }

  /** Images by the names that oc-mirror gave their copies. */
  const configureTargets = (...lines: readonly string[]): Promise<void> =>
    configure(
      ...lines,
      'additionalImages:',
      `  - {name: "${world.registry.host}/team/app:1", targetRepo: tools/app, targetTag: x}`,
      'operators:',
      `  - {catalog: "${world.registry.host}/${INDEX}:v4.21", targetCatalog: my/index, targetTag: stable}`,
    );

  async function run(...args: readonly string[]) {
    const outcome = await world.run(...args);
    expect(outcome.exitCode, outcome.stderr + outcome.stdout).toBe(0);
    return outcome;
  }

  const plan = async (): Promise<Plan> =>
    JSON.parse((await run('plan', '-o', 'json')).stdout) as Plan;

  it('is read by the names that targetRepo, targetTag and targetCatalog gave', async () => {
    await configureTargets();
    await run('build', '--output', 'named.iso');
    await run('verify', 'named.iso');
    const listed = (await run('ls', '-R', 'named.iso')).stdout;
    const root = '/registry/docker/registry/v2/repositories';
    expect(listed).toContain(`${root}/ns/tools/app/_manifests/tags/x/current/link`);
    expect(listed).toContain(`${root}/ns/my/index/_manifests/tags/stable/current/link`);
    expect(listed).toContain(`${root}/ns/openshift/release/_manifests/revisions/`);
    const tags = new RegExp(
      `${root}/openshift/release-images/_manifests/tags/([^/\\s]+)/current`,
      'g',
    );
    expect([...new Set([...listed.matchAll(tags)].map(([, tag]) => tag))]).toEqual([
      world.release.digest.slice('sha256:'.length),
    ]);
  }, 60_000);

  it('gives the medium only its own release bundle, regardless of bundles in the tree', async () => {
    await configureTargets();
    await run('build', '--output', 'bundles.iso');
    await run('verify', 'bundles.iso');
    const listed = (await run('ls', '-R', 'bundles.iso')).stdout;
    const tags = /release-bundles\/_manifests\/tags\/([^/\s]+)\/current/g;
    expect([...new Set([...listed.matchAll(tags)].map(([, tag]) => tag))]).toEqual([
      'ocp-release-bundle-4.21.3-x86_64',
    ]);
  }, 60_000);

  it('does not list an image as extra if the configuration names its target', async () => {
    await configureTargets();
    const { extras } = await plan();
    expect(extras).toEqual(['ns/team/lib:1']);
  });

  it('leaves out what blockedImages matches, whether the configuration names it or not', async () => {
    await configureTargets('blockedImages:', '  - name: /tools/app', '  - name: ns/team/lib');
    const { blocked, extras } = await plan();
    expect(extras).toEqual([]);
    expect(blocked.map((image) => image.replace(/@.*/, '')).sort()).toEqual([
      ...[`${world.registry.host}/team/lib`, `${world.registry.host}/tools/app`],
      `${world.registry.host}/tools/app:x`,
    ]);
    await run('build', '--output', 'blocked.iso');
    const listed = (await run('ls', '-R', 'blocked.iso')).stdout;
    expect(listed).not.toMatch(/tools\/app|team\/lib/);
    expect(listed).toContain('/repositories/ns/my/index/');
  }, 60_000);

  it('has its tag mirror sets and cluster catalogs on the medium, with the name of the node', async () => {
    await configureTargets();
    const { stdout } = await run('resources');
    expect(stdout).toMatch(/kind: ImageTagMirrorSet[^]*?- localhost:22625\/ns\/team\n/);
    expect(stdout).toMatch(/kind: ClusterCatalog[^]*?localhost:22625\/ns\/my\/index:stable/);
    expect(stdout).toMatch(/kind: CatalogSource[^]*?localhost:22625\/ns\/my\/index:stable/);
    expect(stdout.match(/^kind: CatalogSource$/gm)).toHaveLength(1);
    expect(stdout).not.toContain(MIRROR_HOST);
  });

  it('causes a warning that names a mirrorSourcePolicy that is not carried', async () => {
    await configure();
    const { stderr } = await run('plan');
    expect(stderr).toContain(
      `mirrorSourcePolicy "NeverContactSource" of ${world.registry.host}/team in itms-oc-mirror.yaml is not carried`,
    );
    expect(stderr).not.toContain('AllowContactingSource');
  });
});
