import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import type { InstallationIsoReport } from '../../src/stages/report/installation-iso.ts';
import { startSealift, type Child } from '../support/child.ts';
import {
  fileText,
  readEmbedded,
  TEST_CERTIFICATE,
  TEST_PULL_SECRET,
  TEST_SSH_KEY,
  writeInstallationConfig,
  type ShownIgnition,
} from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { buildLayeredImage } from '../support/release.ts';
import { writeImageBasedConfig, writeInstallConfig } from '../support/site-inputs.ts';
import { requireTool } from '../support/tools.ts';

const TOOLS = [
  'genisoimage',
  'isohybrid',
  'isoinfo',
  'bsdtar',
  'ignition-validate',
  'openssl',
  'xz',
];
const hasTools = TOOLS.map((tool) => requireTool(tool)).every(Boolean);

const AREA_SIZE = 262_144;

/** Description in the seed. */
const SEED_INFO = '{"seed_cluster_ocp_version":"4.21.3","node_ips":["10.0.0.5","fd00::5"]}';

const LOCAL_REGISTRIES_CONF = '/etc/containers/registries.conf.d/50-local-registry.conf';

describe.skipIf(!hasTools)('an installation ISO', () => {
  let world: LiveWorld;
  let area = 0;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    area = offsetOf(at('test.iso'), 'IGNITION.IMG');
  });
  afterAll(() => world.close());

  const build = (...args: string[]): Promise<Outcome> =>
    world.run('build', 'installation-iso', '--base-iso', 'test.iso', ...args);

  async function buildWell(...args: string[]): Promise<InstallationIsoReport> {
    const { exitCode, stdout, stderr } = await build('-o', 'json', ...args);
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as InstallationIsoReport;
  }

  async function show(iso: string): Promise<ShownIgnition> {
    const { exitCode, stdout, stderr } = await world.run('ignition', 'show', iso);
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as ShownIgnition;
  }

  it('is the base ISO with a configuration in its embed area, a proof in its volume descriptor, and nothing else changed', async () => {
    await writeInstallationConfig(world.directory, { sshKey: TEST_SSH_KEY });
    const { exitCode, stdout, stderr } = await build();
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('next: sealift ignition show rhcos-ibi.iso');
    expect(stdout).toContain('secrets   pullSecret, sshKey (public key of core)');
    const [made, base] = [await readFile(at('rhcos-ibi.iso')), await readFile(at('test.iso'))];
    expect(made.length).toBe(base.length);
    made.fill(0, area, area + AREA_SIZE);
    for (const bytes of [made, base]) bytes.fill(0, ...APPLICATION_USE);
    expect(made.equals(base)).toBe(true);
    expect((await stat(at('rhcos-ibi.iso'))).mode & 0o777).toBe(0o600);
  });

  it('shows the same configuration to the kernel, to bsdtar and to sealift, and it is valid', async () => {
    await writeFile(at('post.sh'), '#!/bin/sh\necho done\n');
    await writeInstallationConfig(world.directory, {
      additionalTrustBundle: TEST_CERTIFICATE,
      ignitionConfigOverride: JSON.stringify({
        ignition: { version: '3.1.0' },
        storage: { files: [{ path: '/etc/site', mode: 420, contents: { source: 'data:,one' } }] },
      }),
    });
    await buildWell();
    await rm(at('post.sh'));
    const shown = await show('rhcos-ibi.iso');
    expect(JSON.parse(await readEmbedded(at('rhcos-ibi.iso'), area))).toEqual(shown);
    const extract = ['-xOf', at('rhcos-ibi.iso'), 'images/ignition.img'];
    await writeFile(at('ignition.img'), execFileSync('bsdtar', extract, { maxBuffer: 1 << 20 }));
    expect(JSON.parse(await readEmbedded(at('ignition.img'), 0))).toEqual(shown);
    await writeFile(at('config.ign'), JSON.stringify(shown));
    execFileSync('ignition-validate', [at('config.ign')]);
    expect(fileText(shown, '/var/tmp/post.sh')).toBe('#!/bin/sh\necho done\n');
    expect(fileText(shown, '/var/tmp/pull-secret.json')).toBe(`${TEST_PULL_SECRET}\n`);
    expect(shown.storage.files.map(({ path }) => path)).toContain('/etc/site');
  });

  it('has the same bytes when it is built again elsewhere', async () => {
    await writeInstallationConfig(world.directory);
    const first = await buildWell('--output', 'one.iso', '--work-dir', 'work-one');
    const second = await buildWell('--output', 'two.iso', '--work-dir', 'work-two');
    expect(first.digest).toBe(second.digest);
    expect(await digestFile(at('two.iso'))).toBe(first.digest);
    expect(await readFile(at('two.iso.sha256'), 'utf8')).toBe(
      `${first.digest?.slice('sha256:'.length)}  two.iso\n`,
    );
  });

  it('notes a live ISO or a release unlike the seed, and refuses it with --strict', async () => {
    const buildOfRelease = (...args: string[]): Promise<Outcome> =>
      world.run(
        ...['build', 'installation-iso', '-o', 'json', '--output', 'strict.iso', ...args],
        ...['--release', world.release.pullspec, '--insecure-registry', world.registry.host],
        ...['--signatures', 'release-signatures', '--signature-keys', 'release-keys.gpg'],
      );
    await writeInstallationConfig(world.directory, { seedVersion: '4.18.3' });
    const strict = await buildOfRelease('--strict');
    expect(strict.exitCode).toBe(3);
    expect(strict.stderr).toContain('"installation.unlike-seed"');
    expect(await hasFile(at('strict.iso'))).toBe(false);
    const noted = await buildOfRelease();
    expect((JSON.parse(noted.stdout) as InstallationIsoReport).notes).toEqual([
      'the release is 4.21.3, but the seed is 4.18.3',
      'the live ISO is rhel-9 of OpenShift 4.19 or later, but the seed is 4.18.3',
    ]);
    await writeInstallationConfig(world.directory);
    const like = await buildOfRelease('--strict', '--force');
    expect(like.exitCode, like.stderr).toBe(0);
  });

  it('grows a larger embed area for a configuration that does not fit', async () => {
    const noise = createHash('shake256', { outputLength: 300_000 }).digest('base64');
    await writeInstallationConfig(world.directory, {
      ignitionConfigOverride: JSON.stringify({
        ignition: { version: '3.2.0' },
        storage: { files: [{ path: '/etc/noise', contents: { source: `data:;base64,${noise}` } }] },
      }),
    });
    const { stdout } = await build('--output', 'grown.iso');
    expect(stdout).toMatch(
      /config {4}29\d\.\d KiB, more than the 256\.0 KiB that the base ISO reserves for it: this ISO reserves \d+\.\d KiB/,
    );
    const grown = offsetOf(at('grown.iso'), 'IGNITION.IMG');
    expect(grown).toBeGreaterThan((await stat(at('test.iso'))).size - 1);
    expect(fileText(await show('grown.iso'), '/etc/noise')).toHaveLength(
      Buffer.from(noise, 'base64').toString('utf8').length,
    );
  });

  it('gets every problem of its configuration reported at once, before anything is written', async () => {
    await writeInstallationConfig(world.directory, { seedImage: '', seedVersion: '' });
    const { exitCode, stderr } = await build('--output', 'never.iso');
    expect(exitCode).toBe(3);
    expect(stderr).toContain(':1:12: seedImage: Required value: you must specify a seedImage');
    expect(stderr).toContain(':2:14: seedVersion: Required value: you must specify a seedVersion');
    expect(await hasFile(at('never.iso'))).toBe(false);
  });

  it('carries post.sh byte for byte, and is not built if that cannot be read', async () => {
    await writeInstallationConfig(world.directory);
    const script = Buffer.from('#!/bin/sh\n# \xff\xfe\0 is no UTF-8\r\n', 'latin1');
    await writeFile(at('post.sh'), script);
    await buildWell('--output', 'script.iso');
    const { storage } = await show('script.iso');
    const { source = '' } =
      storage.files.find(({ path }) => path === '/var/tmp/post.sh')?.contents ?? {};
    expect(Buffer.from(source.split('base64,')[1] ?? '', 'base64').equals(script)).toBe(true);
    await rm(at('post.sh'));
    await mkdir(at('post.sh'));
    const { exitCode, stderr } = await build('--output', 'never.iso');
    await rm(at('post.sh'), { recursive: true });
    expect(exitCode).toBe(3);
    expect(stderr).toContain('failed to load the post.sh file: ');
    expect(stderr).toContain('[installation.post-script]');
    expect(await hasFile(at('never.iso'))).toBe(false);
  });

  it('is not built with an override that moves the installer to another place', async () => {
    const links = [{ path: '/var/tmp', target: '/tmp' }];
    await writeInstallationConfig(world.directory, {
      ignitionConfigOverride: JSON.stringify({
        ignition: { version: '3.2.0' },
        storage: { links },
      }),
    });
    const { exitCode, stderr } = await build('--output', 'never.iso');
    expect(exitCode).toBe(3);
    expect(stderr).toContain('passes through the link "/var/tmp"');
    expect(stderr).toContain('[installation.override]');
    expect(await hasFile(at('never.iso'))).toBe(false);
  });

  it('refuses a seed that no registry can serve, with its line', async () => {
    await writeInstallationConfig(world.directory, { seedImage: 'quay.io/Edge Seed' });
    const { exitCode, stderr } = await build('--output', 'never.iso');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(
      /:\d+:\d+: seedImage: .*"quay\.io\/Edge Seed": "Edge Seed" is not a valid repository name/,
    );
  });

  it('refuses options that name no image', async () => {
    const { exitCode, stderr } = await build('--embed-image', 'tools:v1', '--output', 'never.iso');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--embed-image "tools:v1" names no registry');
  });

  it('gets a warning for settings that are allowed but rarely intended', async () => {
    await writeInstallationConfig(world.directory, {
      ignitionConfigOverride: JSON.stringify({
        ignition: { version: '3.0.0' },
        kernelArguments: { shouldExist: ['a'] },
        storage: { files: [{ path: '/etc/a', mode: 644 }] },
      }),
    });
    expect((await buildWell('--output', 'noted.iso')).notes).toEqual([
      expect.stringContaining('openshift-install 4.22 refuses Ignition 3.0.0') as string,
      'ignitionConfigOverride: $.kernelArguments: "kernelArguments" is not a member of Ignition 3.2.0',
      'ignitionConfigOverride: $.storage.files.0.mode: mode 644 sets setuid, setgid or sticky: was it meant to be octal?',
    ]);
    await world.run('build', 'installation-iso', '--base-iso', 'noted.iso', '--output', 'two.iso');
    const report = await readFile(at('two.iso.report.json'), 'utf8');
    expect(report).toContain(
      'the base ISO was customized: the new config replaces config.ign in its embed area',
    );
  });

  it('has its network configuration checked by nmstate, if that is installed', async () => {
    const networkConfig = { interfaces: [{ name: 'eth0', type: 'ethernet', state: 'up' }] };
    await writeInstallationConfig(world.directory, { networkConfig });
    const { notes } = await buildWell('--output', 'network.iso');
    expect(notes).toEqual([
      'nmstatectl is not installed: networkConfig was checked, but not by nmstate',
    ]);
    const script = '#!/bin/sh\n[ "$1" = gc ] || exit 0; echo "Error: Invalid: bad" >&2; exit 1\n';
    await mkdir(at('bin'));
    await writeFile(at('bin/nmstatectl'), script, { mode: 0o755 });
    const { code, stderr } = await startSealift(
      ['build', 'installation-iso', '--base-iso', 'test.iso', '--output', 'network.iso'],
      { cwd: world.directory, env: { PATH: `${at('bin')}:${process.env['PATH'] ?? ''}` } },
    ).ended;
    expect(code).toBe(3);
    expect(stderr).toContain(
      "networkConfig: Invalid value: failed to execute 'nmstatectl gc', error: Invalid: bad",
    );
  });

  it.each([
    ['no live ISO', [], 'usage.no-base'],
    ['two live ISOs', ['--base-iso', 'test.iso', '--release', 'q.io/a/b:1'], 'usage.two-bases'],
    ['a stream too', ['--base-iso', 'test.iso', '--coreos-stream', 'a.json'], 'usage.two-bases'],
    ['no release', ['--base-iso', 'test.iso', '--embed-release'], 'usage.no-release'],
    ['no server', ['--base-iso', 'test.iso', '--embed-seed'], 'installation.no-registry-image'],
    ['no file', ['--base-iso', 'test.iso', '--output', '-'], 'usage.no-stream'],
  ])('is refused with a code and a hint if it is given %s', async (_what, args, code) => {
    await writeInstallationConfig(world.directory);
    const { stderr } = await world.run('build', 'installation-iso', ...args);
    expect(stderr).toContain(`[${code}]`);
    expect(stderr).toContain('hint: ');
  });

  describe('that carries its seed image', () => {
    let args: string[] = [];

    beforeAll(async () => {
      const noise = createHash('shake256', { outputLength: 2_000_000 }).digest();
      const operator = await buildLayeredImage([[['manager', 'an operator\n']]]);
      world.registry.add('edge/operator', operator, '1');
      const { host } = world.registry;
      const list = `${host}/edge/operator:1\n\n${host}/edge/operator:1\n`;
      const seed = await buildLayeredImage([
        [['ostree.tgz', noise]],
        [
          ['lca-cli', '#!/bin/sh\n'],
          ['containers.list', list],
          ['manifest.json', SEED_INFO],
        ],
      ]);
      world.registry.add('edge/seed', seed, '4.21.3');
      args = [
        ...['--release', world.release.pullspec, '--insecure-registry', world.registry.host],
        ...['--signatures', 'release-signatures', '--signature-keys', 'release-keys.gpg'],
        ...['--embed-seed', '--embed-release'],
      ];
    });

    const writeConfig = (changes: Readonly<Record<string, unknown>> = {}): Promise<string> =>
      writeInstallationConfig(world.directory, {
        seedImage: `${world.registry.host}/edge/seed:4.21.3`,
        ...changes,
      });

    it('is verified image by image', async () => {
      await writeConfig();
      const report = await buildWell('--output', 'seed.iso', ...args);
      expect(report.embedded?.images).toContainEqual(
        expect.stringMatching(/\/edge\/seed:4\.21\.3@sha256:|\/edge\/seed@sha256:/),
      );
      const { exitCode, stdout, stderr } = await world.run('verify', 'seed.iso');
      expect(exitCode, stdout + stderr).toBe(0);
      expect(stdout).toMatch(/seed\.iso is whole: structure, \d+ extents .*, \d+ images/);
      const names = execFileSync('bsdtar', ['-tf', at('seed.iso')], { encoding: 'utf8' });
      expect(names).toMatch(/^registry\/images\/registry\/manifest\.json$/m);
      expect(names).toMatch(
        /^registry\/docker\/registry\/v2\/repositories\/edge\/seed\/_manifests\/tags\/4\.21\.3\//m,
      );
    });

    it('is refused if the seed is of another version, as the host would refuse it', async () => {
      await writeConfig({ seedVersion: '4.21.4' });
      const { exitCode, stderr } = await build('--output', 'unlike.iso', ...args);
      expect(exitCode).toBe(3);
      expect(stderr).toContain('[installation.seed-version]');
      expect(stderr).toContain('hint: write seedVersion: 4.21.3, or name another seed');
    });

    it('gives sites what they are compared with, as its image, on the ISO, and in a folder', async () => {
      await writeConfig();
      await buildWell('--output', 'compared.iso', ...args);
      await world.writeConfig(); // access to the registry
      await mkdir(at('seed'), { recursive: true });
      await writeFile(at('seed/manifest.json'), SEED_INFO);
      await mkdir(at('alpha'), { recursive: true });
      await writeFile(at('alpha/install-config.yaml'), writeInstallConfig());
      await writeFile(at('alpha/image-based-config.yaml'), writeImageBasedConfig());
      const compare = (seed: string, ...more: readonly string[]): Promise<Outcome> =>
        world.run(
          ...['config-iso', 'validate', 'alpha', '--seed', seed],
          ...['--config', 'appliance-config.yaml', ...more],
        );
      for (const seed of [`${world.registry.host}/edge/seed:4.21.3`, 'compared.iso', 'seed']) {
        const { exitCode, stderr } = await compare(seed);
        expect([seed, exitCode, stderr]).toEqual([
          ...[seed, 3],
          expect.stringContaining('the seed has 2 addresses (IPv4, IPv6), so the node stops'),
        ]);
        const other = await compare(seed, '--seed-version', '4.20');
        expect(other.stderr).toContain('[usage.seed-version]');
      }
      for (const seed of [`${world.registry.host}/edge/operator:1`, 'test.iso', 'alpha']) {
        expect((await compare(seed)).stderr).toContain('[seed-image.unknown]');
      }
    });

    it('is verified even with a configuration that is larger than the embed area', async () => {
      const noise = createHash('shake256', { outputLength: 300_000 }).digest('base64');
      const files = [{ path: '/etc/noise', contents: { source: `data:;base64,${noise}` } }];
      await writeConfig({
        ignitionConfigOverride: JSON.stringify({
          ignition: { version: '3.2.0' },
          storage: { files },
        }),
      });
      const { embedArea } = await buildWell('--output', 'both.iso', ...args);
      expect(embedArea).toMatchObject({ size: AREA_SIZE, grownTo: 393_216 });
      const { exitCode, stdout } = await world.run('verify', 'both.iso');
      expect(exitCode, stdout).toBe(0);
      expect(fileText(await show('both.iso'), '/etc/noise')).toBeDefined();
    });

    it('leads the live system to the registry on it before any other', async () => {
      await writeConfig({
        releaseRegistry: 'registry.lab',
        imageDigestSources: [
          { source: world.registry.host, mirrors: ['far.example/m'], sourcePolicy: 'x' },
        ],
      });
      const seedOnly = args.filter((arg) => arg !== '--embed-release');
      expect((await buildWell('--output', 'seed.iso', ...seedOnly)).notes).toEqual([
        'the images that the seed precaches are not on the ISO: they are pulled while it installs',
      ]);
      expect((await buildWell('--output', 'seed.iso', ...args)).notes).toEqual([]);
      const shown = await show('seed.iso');
      const own = fileText(shown, '/etc/containers/registries.conf') ?? '';
      expect(own).not.toContain('localhost');
      const conf = fileText(shown, LOCAL_REGISTRIES_CONF) ?? '';
      expect(conf).toContain(
        [
          '[[registry]]',
          `  location = "${world.registry.host}/edge/seed"`,
          '  prefix = ""',
          '',
          '  [[registry.mirror]]',
          '    location = "localhost:22625/edge/seed"',
          '',
          '  [[registry.mirror]]',
          '    location = "far.example/m/edge/seed"',
          '    pull-from-mirror = "digest-only"',
          '',
        ].join('\n'),
      );
      expect(conf).toContain('  location = "registry.lab/ocp/art-dev"\n');
      const units = new Map(shown.systemd.units.map((unit) => [unit.name, unit]));
      expect(units.get('start-local-registry.service')?.enabled).toBe(true);
      expect(units.get('install-rhcos-and-restore-seed.service')).toMatchObject({
        dropins: [
          { contents: expect.stringContaining('After=start-local-registry.service') as string },
        ],
      });
      await writeFile(at('config.ign'), JSON.stringify(shown));
      execFileSync('ignition-validate', [at('config.ign')]);
    });

    it('has the size that "plan" reports to the byte, and is built from the saved plan', async () => {
      const path = await writeConfig();
      const planned = ['plan', path, '--base-iso', 'test.iso', '--output', 'planned.iso', ...args];
      const { exitCode, stdout, stderr } = await world.run(...planned, '-o', 'json');
      expect(exitCode, stderr).toBe(0);
      expect(await hasFile(at('planned.iso'))).toBe(false);
      await writeFile(at('plan.json'), stdout);
      const { isoSize, ...plan } = JSON.parse(stdout) as InstallationIsoReport;
      const text = await world.run(...planned);
      expect(text.stdout).toContain(`, exactly ${isoSize} bytes\n`);
      const report = await buildWell('--output', 'planned.iso', '--plan', 'plan.json', ...args);
      expect((await stat(at('planned.iso'))).size).toBe(isoSize);
      const { tags, contents, embedded } = plan;
      expect(report).toMatchObject({ isoSize, tags, contents, embedded });
    });

    it('carries the images that the seed names for precaching, if that is requested', async () => {
      await writeConfig();
      const report = await buildWell('--output', 'seed.iso', '--embed-precached', ...args);
      expect(report.embedded?.images).toContainEqual(expect.stringContaining('/edge/operator'));
      const conf = fileText(await show('seed.iso'), LOCAL_REGISTRIES_CONF);
      expect(conf).toContain('    location = "localhost:22625/edge/operator"\n');
    });

    it('is whole, with the same bytes, when its build is killed and run again', async () => {
      await writeConfig();
      const whole = await buildWell('--output', 'whole.iso', ...args);
      const start = (): Child =>
        startSealift(
          [
            ...['build', 'installation-iso', '--base-iso', 'test.iso', '--output', 'killed.iso'],
            ...['--work-dir', 'work-killed', ...args],
          ],
          { cwd: world.directory },
        );
      for (const sign of ['killed.iso.lock', 'work-killed/cache/blobs', 'killed.iso.partial']) {
        const child = start();
        while (!(await hasAny(at(sign))) && child.process.exitCode === null) {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        child.process.kill('SIGKILL');
        await child.ended;
      }
      const { code, stderr } = await start().ended;
      expect(code, stderr).toBe(0);
      expect(await digestFile(at('killed.iso'))).toBe(whole.digest);
      const left = (await readdir(world.directory)).filter((name) => name.startsWith('killed.iso'));
      expect(left.sort()).toEqual(['killed.iso', 'killed.iso.report.json', 'killed.iso.sha256']);
    }, 60_000);

    it('is not begun if the seed image does not exist', async () => {
      await writeConfig({ seedImage: `${world.registry.host}/edge/seed:9.9.9` });
      const { exitCode, stderr } = await build('--output', 'absent.iso', ...args);
      expect(exitCode, stderr).toBe(4);
      expect(stderr).toContain('edge/seed:9.9.9');
      expect(await hasFile(at('absent.iso'))).toBe(false);
    });
  });

  it('shows no secret in its output, report or work directory', async () => {
    await writeInstallationConfig(world.directory, {
      ignitionConfigOverride:
        '{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"a","passwordHash":"top-word"}]}}',
    });
    const { exitCode, stdout, stderr } = await build('--output', 'quiet.iso');
    expect(exitCode, stderr).toBe(0);
    const report = await readFile(at('quiet.iso.report.json'), 'utf8');
    const stages = await Promise.all(
      (await readdir(at('.sealift/stages'), { withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map(({ name }) => readFile(at(`.sealift/stages/${name}`), 'utf8')),
    );
    for (const text of [stdout, stderr, report, ...stages]) {
      expect(text).not.toMatch(/top-word|dXNlcjpzZWNyZXQtd29yZA/);
    }
  });
});

async function hasAny(path: string): Promise<boolean> {
  if (!(await hasFile(path))) {
    return readdir(path).then(
      (names) => names.length > 0,
      () => false,
    );
  }
  return true;
}

/** Where isoinfo says that a file begins. */
function offsetOf(iso: string, name: string): number {
  const list = execFileSync('isoinfo', ['-l', '-i', iso], { encoding: 'utf8' });
  const line = list.split('\n').find((each) => each.includes(name)) ?? '';
  return Number(/\[\s*(\d+)/.exec(line)?.[1]) * 2048;
}

/** ECMA-119 8.4.32: bytes of the image that the proof takes. */
const APPLICATION_USE = [16 * 2048 + 883, 16 * 2048 + 1395] as const;
