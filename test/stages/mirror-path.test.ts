import { cp, mkdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hexOf, type Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { readIndex } from '../../src/media/media-index.ts';
import { pathTo } from '../../src/registry/layout/distribution.ts';
import { addCatalog, buildStandIn, makeOperator, topDigest } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';
import { formatMirrorSet, MIRROR_HOST, writeWorkspace, type Copy } from '../support/workspace.ts';

const TOOLS = ['docker-registry', 'skopeo', 'genisoimage', 'isohybrid'];
const hasTools = TOOLS.map((tool) => requireTool(tool)).every(Boolean);

const INDEX = 'redhat/redhat-operator-index';

describe.skipIf(!hasTools)('an oc-mirror workspace as the source of a medium', () => {
  let world: LiveWorld;
  let app: Digest;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry } = world;
    const image = await buildStandIn('app');
    app = topDigest(image);
    registry.add('team/app', image, '1');
    const alpha = await makeOperator(
      { registry, host: registry.host },
      { name: 'alpha', channels: { stable: ['1.0.0'] } },
    );
    await addCatalog(registry, INDEX, { tag: 'v4.21', files: { 'alpha/catalog.json': alpha } });
    await world.writeConfig(...listContents());
    await run('build', '--output', 'direct.iso');
    await writeWorkspace(at('original'), await listCopies(alpha), resources());
    await registry.close(); // from here on no network has anything
  }, 180_000);
  afterAll(() => rm(world.directory, { recursive: true, force: true }));

  beforeEach(async () => {
    await rm(at('mirror'), { recursive: true, force: true });
    await rm(at('.sealift'), { recursive: true, force: true });
    await cp(at('original'), at('mirror'), { recursive: true });
    await writeMirrorConfig(...listContents());
  });

  const listContents = (): readonly string[] => [
    'additionalImages:',
    `  - name: ${world.registry.host}/team/app:1`,
    'operators:',
    `  - catalog: ${world.registry.host}/${INDEX}:v4.21`,
  ];

  async function listCopies(
    alpha: readonly Readonly<Record<string, unknown>>[],
  ): Promise<readonly Copy[]> {
    const { release, registry } = world;
    const images = new Set(
      [...JSON.stringify(alpha).matchAll(/"([^"]+@sha256:[0-9a-f]{64})"/g)].map(([, name]) => name),
    );
    return Promise.resolve([
      [release.pullspec, 'openshift/release-images:4.21.3-x86_64'],
      ...Object.entries(release.components).map(([name, digest]): Copy => [
        `${registry.host}/ocp/art-dev@${digest}`,
        `openshift/release:4.21.3-x86_64-${name}`,
      ]),
      [`${registry.host}/team/app:1`, 'team/app:1'],
      [`${registry.host}/${INDEX}:v4.21`, `${INDEX}:v4.21`],
      ...[...images].map((image = ''): Copy => {
        const [name = '', digest = ''] = image.slice(image.indexOf('/') + 1).split('@');
        return [image, `${name}:${digest.replace(':', '-')}`];
      }),
    ]);
  }

  function resources(): Readonly<Record<string, string>> {
    const { host } = world.registry;
    const hex = hexOf(world.release.digest);
    const message = world.registry.signer.find(`sha256=${hex}/signature-1`);
    const signature = message?.toString('base64') ?? '';
    return {
      'idms-oc-mirror.yaml': [
        formatMirrorSet('idms-release-0', [
          [`${host}/ocp/release`, `${MIRROR_HOST}/openshift/release-images`],
          [`${host}/ocp/art-dev`, `${MIRROR_HOST}/openshift/release`],
        ]),
        formatMirrorSet('idms-operator-0', [[`${host}/alpha`, `${MIRROR_HOST}/alpha`]]),
        formatMirrorSet('idms-generic-0', [
          [`${host}/team`, `${MIRROR_HOST}/team`],
          [`${host}/gone`, `${MIRROR_HOST}/gone`],
        ]),
      ].join(''),
      'cs-redhat-operator-index-v4-21.yaml': [
        'apiVersion: operators.coreos.com/v1alpha1',
        'kind: CatalogSource',
        'metadata:',
        '  name: cs-redhat-operator-index-v4-21',
        '  namespace: openshift-marketplace',
        'spec:',
        `  image: ${MIRROR_HOST}/${INDEX}:v4.21`,
        '  sourceType: grpc',
        '',
      ].join('\n'),
      'signature-configmap.yaml': [
        'apiVersion: v1',
        'kind: ConfigMap',
        'metadata:',
        '  name: mirrored-release-signatures',
        '  namespace: openshift-config-managed',
        '  labels: {release.openshift.io/verification-signatures: ""}',
        `binaryData: {sha256-${hexOf(world.release.digest)}-1: ${signature}}`,
        '',
      ].join('\n'),
    };
  }

  /** Without a pull secret, and without the pullspec of the release. */
  async function writeMirrorConfig(...lines: readonly string[]): Promise<void> {
    await world.writeConfig('mirrorPath: mirror', ...lines);
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(
      at('appliance-config.yaml'),
      text.replace(/^(pullSecret| {2}url| {2}insecureRegistries| {2}signatures):.*\n/gm, ''),
    );
  }

  async function run(...args: readonly string[]) {
    const outcome = await world.run(...args);
    expect(outcome.exitCode, outcome.stderr + outcome.stdout).toBe(0);
    return outcome;
  }

  async function listRegistry(iso: string): Promise<Readonly<Record<string, string>>> {
    const opened = await openIso(at(iso));
    try {
      const index = await readIndex(opened);
      const files = (index?.extents ?? []).flatMap(({ paths, digest }) =>
        paths
          .filter((path) => path.startsWith('/registry/'))
          .map((path) => [path, digest ?? ''] as const),
      );
      return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
    } finally {
      await opened.close();
    }
  }

  const blobOf = (digest: Digest): string => at(`mirror/data${pathTo.blob(digest)}`);

  it('gives the registry of a direct build, byte for byte, without network and pull secret', async () => {
    await mkdir(at('mirror/data/docker/registry/v2/repositories/team/app/_uploads/1'), {
      recursive: true,
    });
    await writeFile(
      at('mirror/data/docker/registry/v2/repositories/team/app/_uploads/1/data'),
      'half',
    );
    await run('validate');
    const { stderr } = await run('build', '--output', 'mirrored.iso');
    await run('verify', 'mirrored.iso');
    expect(await listRegistry('mirrored.iso')).toEqual(await listRegistry('direct.iso'));
    expect(stderr).toContain(
      `mirror ${MIRROR_HOST}/gone of ${world.registry.host}/gone is not in the mirror's data`,
    );
  }, 60_000);

  it('renames every mirror and catalog that is in the tree, and leaves the others', async () => {
    const { stdout } = await run('resources');
    expect(stdout).toContain('image: localhost:22625/redhat/redhat-operator-index:v4.21');
    expect(stdout).toContain('- localhost:22625/openshift/release-images');
    expect(stdout).toContain(`- ${MIRROR_HOST}/gone`);
    expect(stdout.match(new RegExp(MIRROR_HOST, 'g'))).toHaveLength(1);
    expect(stdout).toContain(`sha256-${hexOf(world.release.digest)}-1`);
  });

  it('leaves out images that blockedImages names by the tag of their origin', async () => {
    await writeMirrorConfig('blockedImages:', `  - name: ${world.registry.host}/team/app:1$`);
    const { stdout } = await run('plan', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      blocked: [`${world.registry.host}/team/app@${app}`],
      extras: expect.not.arrayContaining(['team/app:1']) as unknown,
    });
  });

  it('names the file of a resource that is not carried', async () => {
    await writeFile(
      at('mirror/working-dir/cluster-resources/updateService.yaml'),
      'apiVersion: updateservice.operator.openshift.io/v1\nkind: UpdateService\n',
    );
    const { stderr } = await run('plan');
    expect(stderr).toContain(
      "UpdateService of updateService.yaml in the mirror's cluster resources",
    );
  });

  it('carries and lists what the configuration does not name', async () => {
    await writeMirrorConfig();
    const { stdout } = await run('plan', '-o', 'json');
    const { extras } = JSON.parse(stdout) as { readonly extras: readonly string[] };
    expect(extras).toContain('team/app:1');
    expect(extras).toContain(`${INDEX}:v4.21`);
    expect(extras.some((name) => name.startsWith('openshift/'))).toBe(false);
  });

  it('is refused when the configuration names an image that it does not have', async () => {
    await writeMirrorConfig('additionalImages:', '  - name: quay.io/team/other:2');
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('there is no quay.io/team/other:2 in');
    expect(exitCode).toBe(4);
  });

  it('is refused when it lacks an operator that the configuration names', async () => {
    await writeMirrorConfig(
      'operators:',
      `  - {catalog: "${world.registry.host}/${INDEX}:v4.21", packages: [{name: beta}]}`,
    );
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('"beta"');
    expect(exitCode).toBe(3);
  });

  it('is refused when it has two releases, until one is named', async () => {
    await runProcess('cp', [
      '-r',
      at('mirror/data/docker/registry/v2/repositories/team/app/_manifests/revisions'),
      at('mirror/data/docker/registry/v2/repositories/openshift/release-images/_manifests'),
    ]);
    await run('plan'); // an image without a tag is left over from an earlier run
    const tags = at(
      'mirror/data/docker/registry/v2/repositories/openshift/release-images/_manifests/tags',
    );
    await mkdir(join(tags, '4.21.3-aarch64/current'), { recursive: true });
    await writeFile(join(tags, '4.21.3-aarch64/current/link'), app);
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('the mirror has 2 releases');
    expect(exitCode).toBe(3);
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    const url = `  url: ${MIRROR_HOST}/openshift/release-images:4.21.3-x86_64\n`;
    await writeFile(at('appliance-config.yaml'), text.replace('pRelease:\n', `pRelease:\n${url}`));
    await run('plan');
  });

  it('is refused by digest when a blob is missing, before anything is written', async () => {
    const config = await findConfig();
    await rm(blobOf(config));
    const { exitCode, stderr } = await world.run('build', '--output', 'holes.iso');
    expect(stderr).toContain(config);
    expect(stderr).toContain('[workspace.blobs-missing]');
    expect(exitCode).toBe(5);
  });

  it('is refused by digest when a manifest is linked and its file is missing', async () => {
    await rm(blobOf(app));
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain(`manifest ${app} is linked in`);
    expect(exitCode).toBe(5);
  });

  it('is refused by the pour when a blob has other bytes of the same size', async () => {
    const config = await findConfig();
    const bytes = await readFile(blobOf(config));
    await writeFile(blobOf(config), bytes.fill(0x20));
    const { exitCode, stderr } = await world.run('build', '--output', 'wrong.iso');
    expect(stderr).toContain(config);
    expect(exitCode).toBe(5);
  });

  it('is refused when a tag names a manifest that its repository does not have', async () => {
    await rm(at(`mirror/data${pathTo.revisionLink('team/app', app)}`));
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain(`tag team/app:1 names ${app}`);
    expect(exitCode).toBe(5);
  });

  it('is refused when a link of its tree leads out of it', async () => {
    const link = at(`mirror/data${pathTo.tagLink('team/app', '1')}`);
    await rm(link);
    await writeFile(at('outside'), 'not for anybody');
    await symlink(at('outside'), link);
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('[registry.outside-tree]');
    expect(stderr).not.toContain('not for anybody');
    expect(exitCode).toBe(5);
  });

  it('is refused when links between its directories make the tree endless', async () => {
    const repositories = at('mirror/data/docker/registry/v2/repositories');
    for (let level = 0; level < 12; level++) {
      await mkdir(join(repositories, `d${level}`));
      for (const name of ['a', 'b', 'c', 'd']) {
        await symlink(`../d${level + 1}`, join(repositories, `d${level}`, name));
      }
    }
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('[registry.linked-directory]');
    expect(exitCode).toBe(5);
  });

  it.each<[string, (file: string) => Promise<unknown>, string]>([
    ['a directory', (file) => mkdir(file), 'odd.yaml cannot be read'],
    ['a link that leads nowhere', (file) => symlink('absent', file), 'odd.yaml cannot be read'],
    [
      'aliases without an anchor',
      (file) => writeFile(file, 'kind: *x\n'),
      'odd.yaml has aliases or merge keys that cannot be resolved',
    ],
    [
      'a mirror with quotes and a line break',
      (file) => writeFile(file, formatMirrorSet('idms-x', [['q.io/a', '"m.example/a\\"\\nb"']])),
      '"idms-x" has no list of mirrors for q.io/a',
    ],
  ])('is refused when one of its resources is %s', async (_, put, problem) => {
    await put(at('mirror/working-dir/cluster-resources/odd.yaml'));
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain(problem);
    expect(exitCode).toBe(3);
  });

  it('is refused when its cluster resources are a file', async () => {
    await rm(at('mirror/working-dir/cluster-resources'), { recursive: true });
    await writeFile(at('mirror/working-dir/cluster-resources'), '');
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('no working-dir/cluster-resources/idms-oc-mirror.yaml');
    expect(exitCode).toBe(3);
  });

  it('is carried without tags that look like signatures but are not', async () => {
    const name = `sha256-${'a'.repeat(64)}`;
    await writeFile(
      at('mirror/working-dir/cluster-resources/odd.yaml'),
      'kind: ConfigMap\nmetadata: {labels: {release.openshift.io/verification-signatures: ""}}\n' +
        `binaryData: {${name}-1: "n*t base64", ${name}-2: "", ${name}-3: "${'A'.repeat(70_000)}"}\n`,
    );
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr.match(/a signature of sha256:a{64} in odd\.yaml is not base64/g)).toHaveLength(3);
    expect(exitCode).toBe(0);
  });

  it('is refused when a link of its tree is a pipe', async () => {
    const link = at(`mirror/data${pathTo.tagLink('team/app', '1')}`);
    await rm(link);
    await runProcess('mkfifo', [link]);
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('[registry.special-file]');
    expect(exitCode).toBe(5);
  });

  it('is refused when a link of its tree is huge, which is not read', async () => {
    const link = at(`mirror/data${pathTo.tagLink('team/app', '1')}`);
    await truncate(link, 1 << 40);
    const { exitCode, stderr } = await world.run('plan');
    expect(stderr).toContain('[registry.link-malformed]');
    expect(exitCode).toBe(5);
  });

  /** The configuration of `team/app`. */
  async function findConfig(): Promise<Digest> {
    const manifest = JSON.parse(await readFile(blobOf(app), 'utf8')) as {
      readonly config: { readonly digest: Digest };
    };
    return manifest.config.digest;
  }
});
