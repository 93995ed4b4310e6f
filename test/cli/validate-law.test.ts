import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { runProgram } from '../../src/cli/program.ts';

const redaction = createRedaction();

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-law-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function run(env: NodeJS.ProcessEnv, ...args: readonly string[]) {
  const room = { highWaterMark: 1 << 20 };
  const host = { stdout: new PassThrough(room), stderr: new PassThrough(room) };
  const { signal } = new AbortController();
  const base = { ...host, env, cwd: directory, redaction, isTTY: false, signal, now: () => 0 };
  const code = await runProgram([...args], base);
  const read = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';
  return { code, stdout: read(host.stdout), stderr: read(host.stderr) };
}

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
}

const SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}';
/** A good configuration of five lines, and what is added or changed. */
const appliance = (more = '', release = 'version: "4.21"'): string =>
  `apiVersion: v1beta1\nkind: ApplianceConfig\nocpRelease:\n  ${release}\npullSecret: '${SECRET}'\n${more}`;

type Case = {
  readonly files: Readonly<Record<string, string>>;
  /** Targets of symbolic links. */
  readonly links?: Readonly<Record<string, string>>;
  readonly env?: NodeJS.ProcessEnv;
  /** What both say. */
  readonly told: string;
};

const a = (text: string, told: string): Case => ({
  files: { 'appliance-config.yaml': text },
  told,
});

const APPLIANCES: Readonly<Record<string, Case>> = {
  'a pattern that Go does not take': a(
    appliance('blockedImages: [{name: "a(?=b)"}]\n'),
    ':6:24: blockedImages[0].name: "a(?=b)" is not a Go regular expression',
  ),
  'an architecture that cannot be built': a(
    appliance('', 'version: "4.21"\n  cpuArchitecture: s390x'),
    ':5:20: ocpRelease.cpuArchitecture: must be one of',
  ),
  'a mirror without the storage of a registry': {
    files: { 'appliance-config.yaml': appliance('mirrorPath: m\n'), 'm/data/x': '' },
    told: '/m is not an oc-mirror workspace: no data/docker',
  },
  'a mirror without the digest mirrors of oc-mirror': {
    files: {
      'appliance-config.yaml': appliance('mirrorPath: m\n'),
      'm/data/docker/registry/v2/x': '',
    },
    told: '/m is not an oc-mirror workspace: no working-dir/cluster-resources/idms-oc-mirror.yaml',
  },
  'the data directory of a mirror in the place of the mirror': {
    files: { 'appliance-config.yaml': appliance('mirrorPath: m\n'), 'm/docker/registry/v2/x': '' },
    told: 'name the directory above it',
  },
  'a mirror of a release that cannot serve the media': {
    files: {
      'appliance-config.yaml': appliance('mirrorPath: m\n', 'version: "4.20"'),
      'm/data/docker/registry/v2/x': '',
      'm/working-dir/cluster-resources/idms-oc-mirror.yaml': '',
    },
    told: ':4:12: ocpRelease.version: release 4.20 cannot serve the media by itself, and only',
  },
  'no pull secret and no mirror': a(
    appliance().replace(/pullSecret.*\n/, ''),
    'pullSecret: is required',
  ),
  'a pull secret without any usable entry': a(
    appliance().replace(SECRET, '{"auths":{"quay.io":{}}}'),
    ':5:13: pullSecret: entry "quay.io" has neither "auth" nor "credsStore"',
  ),
  'the placeholder of a pull secret': a(
    appliance().replace(SECRET, '<your-pull-secret>'),
    ':5:13: pullSecret: "<your-pull-secret>" is the placeholder of the template',
  ),
  'a catalog without tag and digest': a(
    appliance('operators: [{catalog: quay.io/a/index}]\n'),
    ':6:23: operators[0].catalog: catalog "quay.io/a/index" cannot be read: it has neither tag nor digest',
  ),
  'an invalid version of a package': a(
    appliance('operators: [{catalog: "quay.io/a/b:1", packages: [{name: a, minVersion: x1.2}]}]\n'),
    'operators[0].packages[0].minVersion: "x1.2" is not a version',
  ),
  'a registries.conf that is not TOML': {
    files: {
      'appliance-config.yaml': appliance('build: {registriesConf: r.conf}\n'),
      'r.conf': '[[registry',
    },
    told: ':6:25: build.registriesConf: ',
  },
  'a manifest without kind beside it': {
    files: { 'appliance-config.yaml': appliance(), 'openshift/a.yaml': 'a: 1\n' },
    told: 'document 0 of manifest a.yaml has no kind [manifest.malformed]',
  },
  'a folder in the place of a manifest': {
    files: { 'appliance-config.yaml': appliance(), 'elsewhere/x': '' },
    links: { 'openshift/a.yaml': '../elsewhere' },
    told: '/openshift/a.yaml cannot be read',
  },
  'a manifest that is a link to nothing': {
    files: { 'appliance-config.yaml': appliance() },
    links: { 'openshift/crs/a.yaml': 'nowhere' },
    told: '/openshift/crs/a.yaml cannot be read',
  },
  'a manifest without an end': {
    files: { 'appliance-config.yaml': appliance() },
    links: { 'openshift/a.yaml': '/dev/zero' },
    told: '/openshift/a.yaml is not a regular file',
  },
  'a file in the place of the folder of manifests': {
    files: { 'appliance-config.yaml': appliance(), 'openshift': '' },
    told: '/openshift cannot be read',
  },
  'a mirror with a folder in the place of a resource': {
    files: {
      'appliance-config.yaml': appliance('mirrorPath: m\n'),
      'm/data/docker/registry/v2/x': '',
      'm/working-dir/cluster-resources/idms-oc-mirror.yaml': '',
      'm/working-dir/cluster-resources/cs.yaml/x': '',
    },
    told: '/m/working-dir/cluster-resources/cs.yaml cannot be read',
  },
  'an invalid epoch': {
    files: { 'appliance-config.yaml': appliance() },
    env: { SOURCE_DATE_EPOCH: 'yesterday' },
    told: '[env.source-date-epoch]',
  },
  'an update graph without address': {
    files: { 'appliance-config.yaml': appliance() },
    env: { UPDATE_URL_OVERRIDE: 'not an address' },
    told: '[graph.url-malformed]',
  },
  'a misspelt key': a(appliance('enableFipz: true\n'), ':6:1: enableFipz: '),
  'text that is not YAML': a('a: [\n', 'not valid YAML'),
};

describe('sealift validate', () => {
  it.each(Object.entries(APPLIANCES))(
    'refuses %s with the code and the lines of build and plan',
    async (_, { files, links = {}, env = {}, told }) => {
      await write(files);
      for (const [name, target] of Object.entries(links)) {
        await mkdir(dirname(join(directory, name)), { recursive: true });
        await symlink(target, join(directory, name));
      }
      const validated = await run(env, 'validate');
      expect(validated.stderr).toContain(told);
      expect(validated.code).toBe(3);
      for (const command of [['build'], ['plan']] as const) {
        expect(await run(env, ...command)).toMatchObject({ code: 3, stderr: validated.stderr });
      }
    },
  );

  const INSTALLATION = [
    'kind: ImageBasedInstallationConfig',
    'seedImage: quay.io/a/seed:1',
    'seedVersion: 4.21.0',
    'installationDisk: /dev/sda',
    `pullSecret: '${SECRET}'`,
    '',
  ].join('\n');
  const name = 'image-based-installation-config.yaml';

  it.each<readonly [string, string, string]>([
    [
      'a missing disk',
      INSTALLATION.replace(/installationDisk.*\n/, ''),
      'installationDisk: Required',
    ],
    [
      'an override that is not Ignition',
      `${INSTALLATION}ignitionConfigOverride: '{"ignition":{"version":"9.0.0"}}'\n`,
      'ignitionConfigOverride',
    ],
    ['an unknown key', `${INSTALLATION}seedImag: x\n`, ':6:1: seedImag: no such key'],
  ])('refuses an installation configuration with %s as build does', async (_, text, told) => {
    await write({ [name]: text });
    const validated = await run({}, 'validate', name);
    expect(validated.stderr).toContain(told);
    expect(validated.code).toBe(3);
    const built = await run({}, 'build', 'installation-iso', '--base-iso', 'absent.iso', name);
    expect(built).toMatchObject({ code: 3, stderr: validated.stderr });
  });

  it('accepts a good installation configuration, with a note about its disk', async () => {
    await write({ [name]: INSTALLATION });
    const { code, stdout } = await run({}, 'validate', name);
    expect(stdout).toContain(
      `${name}:4:19: installationDisk: note: /dev/sda is named in the order`,
    );
    expect(stdout).toContain('hint: name it by /dev/disk/by-id/wwn-0x...');
    expect(stdout).toContain(`${name} is valid`);
    expect(code).toBe(0);
  });

  it('refuses a pull secret with an entry that no node can read', async () => {
    const odd = '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"},"odd.example":{"auth":"aHVzaA=="}}}';
    await write({ 'appliance-config.yaml': appliance().replace(SECRET, odd) });
    const { code, stderr } = await run({}, 'validate');
    expect(stderr).toMatch(
      /pullSecret: entry "odd\.example" has an "auth" that is not the base64 form of a user/,
    );
    expect(stderr).not.toContain('aHVzaA');
    expect(code).toBe(3);
  });
});
