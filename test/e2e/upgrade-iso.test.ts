import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { makeDefinitions } from '../../demo/definitions.ts';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { digestFile, hasFile, readFileIfPresent } from '../../src/base/disk/files.ts';
import { runProcess } from '../../src/base/process.ts';
import { runProgram } from '../../src/cli/program.ts';
import { parseMediaIndex } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import type { Rehearsal } from '../../src/media/rehearse/rehearse.ts';
import type { UpgradeIsoReport } from '../../src/stages/report/upgrade-iso.ts';
import { addCatalog, makeOperator } from '../support/catalog.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { serveLocally, type LocalServer } from '../support/local-http.ts';
import { startPlainRegistry } from '../support/plain-registry.ts';
import { addRelease, buildLayeredImage, type TestRelease } from '../support/release.ts';
import { requireTool } from '../support/tools.ts';

const TOOLS = ['genisoimage', 'isohybrid', 'xorriso', 'isoinfo', 'bsdtar', 'skopeo'];
const hasTools = [...TOOLS, 'docker-registry'].map((tool) => requireTool(tool)).every(Boolean);

const RISK = {
  url: 'https://issues.example/1',
  name: 'SlowDisks',
  message: 'Hosts with slow disks lose quorum.',
};
const INDEX = 'redhat/redhat-operator-index';

const ADMIN_GATES = {
  'release-manifests/0000_00_cluster-version-operator_01_admingate_configmap.yaml': [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    '  name: admin-gates',
    '  namespace: openshift-config-managed',
    '  annotations: {include.release.openshift.io/self-managed-high-availability: "true"}',
    'data:',
    '  ack-4.20-apis-in-4.21: "APIs go. See https://access.example/1"',
    '  ack-4.19-apis-in-4.20: "APIs went."',
    '',
  ].join('\n'),
};

const acknowledge = (key: string): string =>
  `oc -n openshift-config patch cm admin-acks --type=merge --patch '{"data":{"${key}":"true"}}'`;

describe.skipIf(!hasTools)('an upgrade ISO', () => {
  let world: LiveWorld;
  let graph: LocalServer;
  let releases: Readonly<Record<'4.20.9' | '4.21.3' | '4.22.1', TestRelease>>;
  let report: UpgradeIsoReport;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry } = world;
    releases = {
      '4.20.9': await addRelease(registry, {
        version: '4.20.9',
        components: ['only-4-20'],
        definitions: { ...makeDefinitions('4.20.9'), ...ADMIN_GATES },
      }),
      '4.21.3': world.release,
      '4.22.1': await addRelease(registry, { version: '4.22.1', components: ['only-4-22'] }),
    };
    graph = await serveLocally((request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(graphOf(new URL(request.url ?? '', graph.url))));
    });
    const files = await makeOperator(
      { registry, host: registry.host },
      { name: 'alpha', channels: { stable: ['1.0.0'] }, images: ['team/alpha'] },
    );
    await addCatalog(registry, INDEX, { tag: 'v4.22', files: { 'alpha/catalog.json': files } });
    registry.add('team/tool', await buildLayeredImage([[['usr/bin/tool', 'tool']]]), '1');
    await configure();
  }, 60_000);
  afterAll(async () => {
    await graph.close();
    await world.close();
  });

  /** 4.20.9 to 4.22.1 leads over 4.21.3; a shorter way is conditional. */
  function graphOf({ searchParams }: URL): object {
    if (searchParams.get('channel') === 'candidate-4.22') {
      return {
        nodes: nodesOf('4.22.1', '4.21.3'),
        edges: [],
        conditionalEdges: [{ edges: [{ from: '4.21.3', to: '4.22.1' }], risks: [RISK] }],
      };
    }
    if (searchParams.get('channel') === 'stable-4.22') {
      return {
        nodes: nodesOf('4.22.1', '4.21.3', '4.20.9'),
        edges: [[1, 0]],
        conditionalEdges: [{ edges: [{ from: '4.20.9', to: '4.22.1' }], risks: [RISK] }],
      };
    }
    if (searchParams.get('channel') !== 'stable-4.21') return { nodes: [], edges: [] };
    return { nodes: nodesOf('4.20.9', '4.21.3'), edges: [[0, 1]] };
  }

  const nodesOf = (...versions: readonly (keyof typeof releases)[]) =>
    versions.map((version) => ({ version, payload: releases[version].pullspec }));

  async function configure(...lines: readonly string[]): Promise<void> {
    const { registry } = world;
    const text = [
      ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:', '  version: "4.22.1"'],
      `  url: ${releases['4.22.1'].pullspec}`,
      `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
      `additionalImages: [{name: "${registry.host}/team/tool:1"}]`,
      `operators: [{catalog: "${registry.host}/${INDEX}:v4.22", packages: [{name: alpha}]}]`,
      ...['build:', `  insecureRegistries: ["${registry.host}"]`, ...SIGNATURE_LINES, ...lines, ''],
    ];
    await writeFile(at('appliance-config.yaml'), text.join('\n'));
  }

  const start = (...args: readonly string[]) =>
    startSealift(args, { cwd: world.directory, env: { UPDATE_URL_OVERRIDE: graph.url } });

  async function attempt(...args: readonly string[]): Promise<Outcome> {
    const host = world.host();
    const texts = [host.stdout, host.stderr].map((stream) => {
      const pieces: Buffer[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      return () => Buffer.concat(pieces).toString('utf8');
    });
    const env = { ...host.env, UPDATE_URL_OVERRIDE: graph.url };
    const exitCode = await runProgram(args, { ...host, env });
    return { exitCode, stdout: texts[0]?.() ?? '', stderr: texts[1]?.() ?? '' };
  }

  async function run(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await attempt(...args);
    expect(exitCode, stderr).toBe(0);
    return stdout;
  }

  const build = (...args: readonly string[]): Promise<string> =>
    run('build', 'upgrade-iso', ...args);

  it('has only the label, release.env, release.json, registry and index', async () => {
    const output = await build('-o', 'json');
    report = JSON.parse(output) as UpgradeIsoReport;
    await mkdir(at('tree'));
    await runProcess('bsdtar', ['-xf', at('upgrade.iso'), '-C', at('tree')]);
    expect((await readdir(at('tree'))).sort()).toEqual(
      ['oc-mirror', 'release.env', 'release.json', 'sealift'].sort(),
    );
    expect(await readdir(at('tree/oc-mirror'))).toEqual(['install']);
    expect(await readdir(at('tree/oc-mirror/install'))).toEqual(['docker']);
    const { pullspec, digest } = releases['4.22.1'];
    expect(await readFile(at('tree/release.env'), 'utf8')).toBe(
      `RELEASE_IMAGE=${pullspec}\nRELEASE_VERSION=4.22.1\n`,
    );
    expect((await stat(at('tree/release.env'))).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(at('tree/release.json'), 'utf8'))).toEqual({
      format: 1,
      version: '4.22.1',
      architecture: 'x86_64',
      image: pullspec,
      created: '2025-10-01T12:00:00Z',
      previous: ['4.21.2'],
      payloadSize: expect.any(Number) as number,
      path: [{ version: '4.22.1', image: pullspec }],
    });
    const tags = 'tree/oc-mirror/install/docker/registry/v2/repositories/openshift/release-images';
    expect(await readdir(at(`${tags}/_manifests/tags`))).toEqual([hexOf(digest)]);
    const volume = await runProcess('isoinfo', ['-d', '-i', at('upgrade.iso')]);
    expect(volume.stdout).toContain('Volume id: upgrade_4.22.1\n');
    expect(volume.stdout).toMatch(/Rock Ridge signatures.*found/);
    const found = await runProcess('xorriso', [
      '-indev',
      at('upgrade.iso'),
      '-find',
      '/',
      '-type',
      'f',
    ]);
    expect(found.stdout).toContain("'/release.env'");
    expect(report).toMatchObject({ product: 'upgrade-iso', volumeId: 'upgrade_4.22.1' });
  }, 60_000);

  it('is written once: at most 1.01 times its size in bytes', async () => {
    expect(report.isoSize).toBe((await stat(at('upgrade.iso'))).size);
    expect(report.bytes.written / report.isoSize).toBeLessThanOrEqual(1.01);
    expect(await digestFile(at('upgrade.iso'))).toBe(report.digest);
  });

  it('gives every image back by digest from a docker-registry over its tree', async () => {
    const { images } = JSON.parse(await readFile(at('tree/sealift/index.json'), 'utf8')) as {
      images: { repository: string; manifests: [string] }[];
    };
    await mkdir(at('site'));
    await rename(at('tree/oc-mirror/install'), at('site/store'));
    const registry = await startPlainRegistry(at('site'));
    try {
      for (const { repository, manifests } of images) {
        const source = `docker://${registry.host}/${repository}@${manifests[0]}`;
        await runProcess('skopeo', [
          ...['copy', '--all', '--src-tls-verify=false', '--preserve-digests', source],
          `dir:${at('back')}`,
        ]);
        expect(digestOf(await readFile(at('back/manifest.json')))).toBe(manifests[0]);
      }
    } finally {
      await registry.close();
    }
    const repositories = new Set(images.map(({ repository }) => repository));
    expect([...repositories]).toEqual(
      expect.arrayContaining([
        ...['openshift/release', 'openshift/release-images', INDEX, 'team/alpha', 'team/tool'],
      ]),
    );
  }, 120_000);

  it('comes with the resources of the cluster and the two commands to run', async () => {
    const { pullspec } = releases['4.22.1'];
    expect(report.files).toEqual([at('upgrade-4.22.1.yaml')]);
    expect(report.commands).toEqual([
      'oc apply -f upgrade-4.22.1.yaml',
      `oc adm upgrade --allow-explicit-upgrade --to-image ${pullspec}`,
    ]);
    const text = await readFile(at('upgrade-4.22.1.yaml'), 'utf8');
    const objects = parseAllDocuments(text).map((document) => document.toJS() as object);
    expect(objects).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'ImageDigestMirrorSet' }),
        expect.objectContaining({ kind: 'ImageTagMirrorSet' }),
        expect.objectContaining({ kind: 'CatalogSource' }),
        expect.objectContaining({ kind: 'ConfigMap' }),
      ]),
    );
    const printed = await build('--output', 'again.iso');
    expect(printed).toContain('\n  oc apply -f upgrade-4.22.1.yaml\n  oc adm upgrade --allow-exp');
    expect(printed).toContain(
      '  4.21 -> 4.22.1: unknown, cannot be known\n' +
        '    what release 4.21 asks to acknowledge cannot be known: the version of the cluster is not given (--from)\n' +
        '    oc -n openshift-config-managed get cm admin-gates -o yaml\n',
    );
    expect(printed).toMatch(
      /release {3}4\.22\.1 is quay\.io\/ocp\/release:4\.22\.1-x86_64, by key [0-9A-F]{40}/,
    );
    expect(await digestFile(at('again.iso'))).toBe(report.digest); // same inputs, same bytes
  }, 60_000);

  it('cannot have the name of a file next to it, which would replace it', async () => {
    const name = 'beside/upgrade-4.22.1.yaml';
    const { exitCode, stderr } = await attempt('build', 'upgrade-iso', '--output', name);
    expect(stderr).toContain('[output.reserved]');
    expect(exitCode).toBe(2);
    expect(await hasFile(at(name))).toBe(false);
  });

  it('is inspected, listed, verified and served as other media are', async () => {
    const inspected = await run('inspect', 'upgrade.iso');
    expect(inspected).toMatch(/^made by {8}sealift \d\S*: upgrade-iso$/m);
    expect(inspected).toContain('release        4.22.1 x86_64\n');
    expect(await run('ls', 'upgrade.iso')).toContain('release.env');
    expect(await run('cat', 'upgrade.iso', '/release.env')).toContain('RELEASE_VERSION=4.22.1');
    await run('verify', 'upgrade.iso');
    const damaged = await readFile(at('upgrade.iso'));
    const place = damaged.indexOf('RELEASE_VERSION');
    damaged.write('X', place);
    await writeFile(at('damaged.iso'), damaged);
    const { exitCode, stdout } = await attempt('verify', 'damaged.iso');
    expect(exitCode).toBe(8);
    expect(stdout).toContain('/release.env');
    const server = start('registry', 'serve', 'upgrade.iso', '--port', '0');
    const told = await new Promise<string>((resolve, reject) => {
      let text = '';
      server.process.stderr?.on('data', (piece: Buffer) => {
        text += piece.toString();
        const host = /http:\/\/([^\s;]+)/.exec(text)?.[1];
        if (host !== undefined) resolve(host);
      });
      server.process.on('close', () => {
        reject(new Error(text));
      });
    });
    await runProcess('skopeo', [
      ...['inspect', '--no-tags', '--tls-verify=false'],
      `docker://${told}/openshift/release-images@${releases['4.22.1'].digest}`,
    ]);
    server.process.kill('SIGTERM');
    expect((await server.ended).code).toBe(143);
  }, 60_000);

  it('has the size of its plan, and is built from the plan', async () => {
    const plan = await run('plan', 'upgrade-iso', '-o', 'json');
    expect(JSON.parse(plan)).toMatchObject({
      product: 'upgrade-iso',
      isoSize: report.isoSize,
      commands: report.commands,
      contents: report.contents,
    });
    await writeFile(at('plan.json'), plan);
    await build('--plan', 'plan.json', '--output', 'planned.iso');
    expect(await digestFile(at('planned.iso'))).toBe(report.digest);
    expect(await run('plan', 'upgrade-iso')).toContain(`exactly ${report.isoSize} bytes`);
  }, 60_000);

  it('carries the releases of a path by digest and untagged, and names the last', async () => {
    const output = await build('--from', '4.20.9', '--output', 'path.iso', '-o', 'json');
    const built = JSON.parse(output) as UpgradeIsoReport;
    const [middle, last] = [releases['4.21.3'], releases['4.22.1']];
    expect(built.path).toEqual({
      from: '4.20.9',
      fromImage: releases['4.20.9'].pullspec,
      hops: [
        { version: '4.21.3', image: middle.pullspec, risks: [] },
        { version: '4.22.1', image: last.pullspec, risks: [] },
      ],
    });
    expect(built.commands).toEqual([
      'oc apply -f upgrade-4.22.1.yaml',
      ...[middle, last].map(
        ({ pullspec }) => `oc adm upgrade --allow-explicit-upgrade --to-image ${pullspec}`,
      ),
    ]);
    expect(await run('cat', 'path.iso', '/release.env')).toContain('RELEASE_VERSION=4.22.1');
    const listed = await run('ls', '-R', 'path.iso');
    const root = '/oc-mirror/install/docker/registry/v2/repositories/openshift';
    const tags = new Set(
      [...listed.matchAll(/\/openshift\/release-images\/_manifests\/tags\/([0-9a-f]+)\//g)].map(
        ([, tag]) => tag,
      ),
    );
    expect([...tags]).toEqual([hexOf(last.digest)]);
    for (const { digest } of [middle, last]) {
      expect(listed).toContain(
        `${root}/release-images/_manifests/revisions/sha256/${hexOf(digest)}/link`,
      );
    }
    for (const digest of Object.values(middle.components)) {
      expect(listed).toContain(`${root}/release/_manifests/revisions/sha256/${hexOf(digest)}/link`);
    }
    await run('verify', 'path.iso');
  }, 60_000);

  it('is rehearsed with every gate on the path, of the release that the cluster leaves only with --release', async () => {
    const rehearse = async (...args: readonly string[]): Promise<Rehearsal['steps']> => {
      const text = await run('rehearse', 'path.iso', ...args, '-o', 'json');
      const { ok, steps } = JSON.parse(text) as Rehearsal;
      expect(ok).toBe(true);
      return steps.filter(({ part, outcome }) => part === 'upgrade' && outcome === 'unknown');
    };
    const ends = ' is acknowledged before the update from 4.20.9 to 4.21.3';
    const [from, access] = [
      ['--from', '4.20.9'],
      ['--release', releases['4.20.9'].pullspec, '--config', 'appliance-config.yaml'],
    ];
    const known = await rehearse(...from, ...access);
    expect(known.map(({ name, outcome }) => [name, outcome])).toEqual([
      [`ack-4.20-apis-in-4.21${ends}`, 'unknown'],
      [`ack-4.20-sigstore-in-4.21${ends}`, 'unknown'],
      [
        'ack-4.21-boot-image-opt-out-in-4.22 is acknowledged before the update from 4.21.3 to 4.22.1',
        'unknown',
      ],
      ['the update graph has no risk for the cluster', 'unknown'],
    ]);
    expect(known[0]?.reason).toBe(
      `APIs go. See https://access.example/1 Command: ${acknowledge('ack-4.20-apis-in-4.21')}`,
    );
    expect(await rehearse(...access)).toEqual(known);
    const [first, second] = await rehearse(...from);
    expect(first?.name).toBe(`ack-4.20-sigstore-in-4.21${ends}`);
    expect(second?.reason).toContain('cannot be known: its payload is not given (--release)');
    const names = (await rehearse()).map(({ name }) => name);
    expect(names).toContain(
      'everything that the cluster asks for is acknowledged before the update from 4.21 to 4.22.1',
    );
    const other = await attempt('rehearse', 'path.iso', '--from', '4.20.8', ...access);
    expect(other.stderr).toContain('usage.from');
    expect((await attempt('rehearse', 'path.iso', '--from', '4.20')).stderr).toContain(
      'usage.from',
    );
  }, 60_000);

  it('shows the risks of an update that is conditional', async () => {
    await writeFile(
      at('candidate.yaml'),
      (await readFile(at('appliance-config.yaml'), 'utf8')).replace(
        '  version: "4.22.1"\n',
        '  version: "4.22.1"\n  channel: candidate\n',
      ),
    );
    const plan = await run('plan', 'upgrade-iso', 'candidate.yaml', '--from', '4.21.3');
    expect(plan).toContain('  4.21.3 -> 4.22.1: conditional SlowDisks, may stop\n');
    expect(plan).toContain('    Hosts with slow disks lose quorum. ');
    expect(plan).toContain('accepted; others do not ask. https://issues.example/1\n');
    expect(plan).toContain(`--allow-not-recommended --to-image ${releases['4.22.1'].pullspec}\n`);
    const accepted = await run(
      ...['plan', 'upgrade-iso', 'candidate.yaml', '--from', '4.21.3'],
      ...['--machine-config', '--acknowledge', 'SlowDisks,ack-4.21-later'],
    );
    expect(accepted).toContain('    accepted by the MachineConfig (--acknowledge)\n');
    expect(accepted).toContain('ack-4.21-later is acknowledged only if the cluster asks for it');
  }, 60_000);

  it('names what stops the cluster on the path: gates of the release that it leaves, too', async () => {
    const plan = await run('plan', 'upgrade-iso', '--from', '4.20.9');
    expect(plan).toContain(
      [
        'What stops the cluster, and the command that lets it through (sealift help upgrade):',
        '  4.20.9 -> 4.21.3: acknowledgement ack-4.20-apis-in-4.21, stops',
        '    APIs go. See https://access.example/1',
        `    ${acknowledge('ack-4.20-apis-in-4.21')}`,
        '  4.20.9 -> 4.21.3: acknowledgement ack-4.20-sigstore-in-4.21, stops',
        '',
      ].join('\n'),
    );
    expect(plan).not.toContain('cannot be known');
    const json = await run('plan', 'upgrade-iso', '--from', '4.20.9', '-o', 'json');
    const { gates } = JSON.parse(json) as UpgradeIsoReport;
    expect(gates.map(({ key, from, command }) => [key, from, command])).toEqual(
      [
        ['ack-4.20-apis-in-4.21', '4.20.9'],
        ['ack-4.20-sigstore-in-4.21', '4.20.9'],
        ['ack-4.21-boot-image-opt-out-in-4.22', '4.21.3'],
      ].map(([key = '', from]) => [key, from, acknowledge(key)]),
    );
  }, 60_000);

  it('is planned without the payload that the cluster leaves, and reports that its gates cannot be known', async () => {
    const path = `/v2/ocp/release/manifests/${releases['4.20.9'].digest}`;
    world.registry.breakPath(path, 404);
    const plan = await run('plan', 'upgrade-iso', '--from', '4.20.9', '--work-dir', at('other'));
    world.registry.breakPath(path);
    expect(plan).toMatch(
      /what release 4\.20\.9 asks to acknowledge cannot be known: image .* cannot be fetched/,
    );
    expect(plan).toContain('acknowledgement ack-4.20-sigstore-in-4.21, stops\n');
  }, 60_000);

  it.each([
    [['--from', '4.19.1'], 3, 'upgrade.no-path'],
    [['--from', '4.22.1'], 3, 'upgrade.not-newer'],
    [['--from', 'newest'], 2, 'usage.from'],
    [['--acknowledge', 'ack-4.21-x'], 2, 'usage.acknowledge'],
    [['--machine-config', '--acknowledge', 'ack-4.21-x,a b'], 2, 'usage.acknowledge'],
    [['--machine-config', '--acknowledge', 'ack-4.19-x'], 3, 'upgrade.no-such-gate'],
  ])('is refused with %j', async (args, exitCode, reason) => {
    const outcome = await attempt('plan', 'upgrade-iso', ...args);
    const { stderr } = outcome;
    expect(outcome.exitCode, stderr).toBe(exitCode);
    expect(stderr).toContain(reason);
  });

  it('of a nightly has a short label, and with --from reports that no graph has the release', async () => {
    const version = '4.22.0-0.nightly-2026-05-01-000000';
    const nightly = await addRelease(world.registry, { version });
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(
      at('nightly.yaml'),
      text
        .replace('version: "4.22.1"', 'version: "4.22.0"')
        .replace(releases['4.22.1'].pullspec, nightly.pullspec),
    );
    const command = ['plan', 'upgrade-iso', 'nightly.yaml', '--allow-unsigned'];
    const plan = JSON.parse(await run(...command, '-o', 'json')) as { volumeId: string };
    expect(plan.volumeId).toBe(`upgrade_4.22.0_${hexOf(nightly.digest).slice(0, 8)}`);
    const refused = await attempt(...command, '--from', '4.21.3');
    expect(refused.exitCode, refused.stderr).toBe(3);
    expect(refused.stderr).toContain(`${version} is a nightly or CI build`);
    expect(refused.stderr).toContain('hint: leave out --from');
    const other = await attempt('plan', 'upgrade-iso', '--from', '4.21.0-0.ci-2026-04-01-000000');
    expect(other.stderr).toContain('4.21.0-0.ci-2026-04-01-000000 is a nightly or CI build');
  }, 60_000);

  it('is refused with mirrorPath, which only live ISOs support', async () => {
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await mkdir(at('mirror'));
    await writeFile(at('mirrored.yaml'), `${text}mirrorPath: mirror\n`);
    const before = world.registry.requests.length;
    const { exitCode, stderr } = await attempt('build', 'upgrade-iso', 'mirrored.yaml');
    expect(exitCode, stderr).toBe(3);
    expect(stderr).toContain('an upgrade ISO cannot be built from an existing mirror yet');
    expect(world.registry.requests.length).toBe(before);
  });

  it.each([
    ['enableInteractiveFlow', 'localhost:22625'],
    ['skipLocalRegistry', 'neither the registry image'],
    ['stopLocalRegistry', 'no mirrors'],
  ])('is refused if %s makes hosts that cannot use it', async (key, reason) => {
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(at('refused.yaml'), `${text}${key}: true\n`);
    const before = world.registry.requests.length;
    const { exitCode, stderr } = await attempt('build', 'upgrade-iso', 'refused.yaml');
    expect(exitCode, stderr).toBe(3);
    expect(stderr).toContain(`refused.yaml:`);
    expect(stderr).toContain(reason);
    expect(world.registry.requests.length).toBe(before);
  });

  it('leaves a file that was changed by hand, except with --force', async () => {
    const changed = '# my own notes\n';
    await build('--output', 'fresh.iso'); // without the releases of a path
    const unchanged = await readFile(at('upgrade-4.22.1.yaml'), 'utf8');
    await writeFile(at('upgrade-4.22.1.yaml'), `${unchanged}${changed}`);
    for (const output of ['x.iso', 'fresh.iso']) {
      const { exitCode, stderr } = await attempt('build', 'upgrade-iso', '--output', output);
      expect(exitCode, stderr).toBe(2);
      expect(stderr).toContain('output.exists');
    }
    expect(await hasFile(at('x.iso'))).toBe(false);
    expect(await readFile(at('upgrade-4.22.1.yaml'), 'utf8')).toContain(changed);
    await build('--output', 'x.iso', '--force');
    expect(await readFile(at('upgrade-4.22.1.yaml'), 'utf8')).toBe(unchanged);
  }, 60_000);

  it('prints commands that run in the directory of the build', async () => {
    const output = await build('--output', "in it's/x.iso", '--work-dir', '.sealift');
    expect(output).toContain(String.raw`  oc apply -f 'in it'\''s/upgrade-4.22.1.yaml'` + '\n');
    expect(output).toContain(String.raw`next: sealift verify 'in it'\''s/x.iso'` + '\n');
  }, 60_000);

  it('adds a MachineConfig that knows every update of the path', async () => {
    const output = await build(
      ...['--from', '4.20.9', '--machine-config', '--output', 'config.iso', '-o', 'json'],
      ...['--acknowledge', 'ack-4.20-sigstore-in-4.21', '--acknowledge', 'ack-4.21-x,ack-4.21-y'],
    );
    const built = JSON.parse(output) as UpgradeIsoReport;
    expect(built.commands).toEqual(['oc apply -f upgrade-machine-config-4.22.1.yaml']);
    const text = await readFile(at('upgrade-machine-config-4.22.1.yaml'), 'utf8');
    const [object] = parseAllDocuments(text).map(
      (document) =>
        document.toJS() as {
          kind: string;
          spec: {
            config: { storage: { files: { path: string; contents: { source: string } }[] } };
          };
        },
    );
    expect(object?.kind).toBe('MachineConfig');
    const read = (name: string): string => {
      const file = object?.spec.config.storage.files.find(({ path }) => path.endsWith(`/${name}`));
      const source = file?.contents.source ?? '';
      const encoded = source.slice(source.indexOf(',') + 1);
      return source.includes(';base64,')
        ? Buffer.from(encoded, 'base64').toString()
        : decodeURIComponent(encoded);
    };
    expect(read('acknowledged')).toBe('ack-4.20-sigstore-in-4.21\nack-4.21-x\nack-4.21-y\n');
    expect(read('hops')).toBe(
      `4.21.3 ${releases['4.21.3'].pullspec} signed 4.20.9\n` +
        `4.22.1 ${releases['4.22.1'].pullspec} signed 4.21.3\n`,
    );
  }, 60_000);

  it('adds MachineConfigs that prepare hosts, to be applied before the ISO is attached', async () => {
    const output = await build('--prepare-hosts', '--output', 'hosts.iso', '-o', 'json');
    const built = JSON.parse(output) as UpgradeIsoReport;
    expect(built.files).toEqual([at('upgrade-4.22.1.yaml'), at('upgrade-hosts.yaml')]);
    expect(built.preparation).toEqual(['oc apply -f upgrade-hosts.yaml']);
    expect(built.commands).toEqual(report.commands);
    const text = await readFile(at('upgrade-hosts.yaml'), 'utf8');
    const kinds = parseAllDocuments(text).map((document) => document.get('kind'));
    expect(kinds).toEqual(['MachineConfig', 'MachineConfig']);
    const printed = await run('plan', 'upgrade-iso', '--prepare-hosts');
    expect(printed.indexOf('  oc apply -f upgrade-hosts.yaml\n')).toBeLessThan(
      printed.indexOf('attach the ISO to every host'),
    );
  }, 60_000);

  it('leaves no file under its final name when the pour fails', async () => {
    const { registry } = world;
    const layer = await findLayer('etcd');
    registry.breakPath(layer, 404);
    const place = ['--output', 'failed/x.iso', '--work-dir', 'fails'];
    const { exitCode, stderr } = await attempt('build', 'upgrade-iso', ...place);
    expect(exitCode, stderr).toBe(4);
    expect((await readdir(at('failed'))).sort()).toEqual([
      'x.iso.partial',
      'x.iso.partial.journal',
    ]);
    registry.breakPath(layer);
    await build(...place);
    expect(await readdir(at('failed'))).toContain('upgrade-4.22.1.yaml');
  }, 60_000);

  it('fetches no verified blob again after a kill in the pour, and ends with the same bytes', async () => {
    const { registry } = world;
    const layer = await findLayer('etcd');
    registry.breakPath(layer, 'never');
    const place = ['--output', 'killed.iso', '--work-dir', 'fresh'];
    const first = start('build', 'upgrade-iso', ...place);
    const countDone = async (): Promise<number> =>
      ((await readFileIfPresent(at('killed.iso.partial.journal')))?.toString() ?? '')
        .split('\n')
        .filter((line) => line.startsWith('d ')).length;
    const spans = await listSpans();
    while ((await countDone()) < spans.length - 1 && first.process.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    first.process.kill('SIGKILL');
    await first.ended;
    registry.breakPath(layer);
    const before = registry.requests.length;
    await build(...place);
    expect(await digestFile(at('killed.iso'))).toBe(report.digest);
    const asked = registry.requests.slice(before).filter((one) => one.includes('/blobs/'));
    expect(asked).toEqual([`GET ${layer}`]);
  }, 60_000);

  it('has no installer, and a request for one is answered with the kind of medium', async () => {
    const { exitCode, stderr } = await world.run(
      'extract',
      'installer',
      'upgrade.iso',
      '--out',
      'x',
    );
    expect(exitCode, stderr).toBe(5);
    expect(stderr).toContain('it is an upgrade-iso [medium.other-product]');
  });

  /** The request for the last layer of a component, which no other image has. */
  async function findLayer(component: string): Promise<string> {
    const digest = releases['4.22.1'].components[component] ?? '';
    const response = await fetch(
      `http://${world.registry.host}/v2/ocp/art-dev/manifests/${digest}`,
    );
    const { layers } = (await response.json()) as { layers: { digest: string }[] };
    return `/v2/ocp/art-dev/blobs/${layers.at(-1)?.digest ?? ''}`;
  }

  /** What the journal numbers: each blob alone, and what lies between two of them together. */
  async function listSpans(): Promise<readonly ('blob' | 'rendered')[]> {
    const { images, extents } = parseMediaIndex(
      Buffer.from(await run('cat', 'upgrade.iso', INDEX_PATH)),
    );
    const manifests = new Set(images.flatMap((image) => image.manifests));
    const spans: ('blob' | 'rendered')[] = [];
    const addRendered = (): unknown => spans.at(-1) === 'rendered' || spans.push('rendered');
    let end = 0;
    for (const { offset, size, digest = '', paths } of extents) {
      const isBlob = paths.some((path) => path.includes('/blobs/')) && !manifests.has(digest);
      if (offset > end || !isBlob) addRendered();
      if (isBlob) spans.push('blob');
      end = offset + size;
    }
    if (end < report.isoSize) addRendered();
    return spans;
  }
});
