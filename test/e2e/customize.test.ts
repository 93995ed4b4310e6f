import { execFileSync } from 'node:child_process';
import { copyFile, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeDefinitions } from '../../demo/definitions.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { startSealift } from '../support/child.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { INSTALLER } from '../support/installer-script.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { expectSameValues } from '../support/same-values.ts';
import { expectDone } from '../support/two-nights.ts';

const SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpob3N0LXdvcmQ="}}}';
let world: LiveWorld;
/** Report of the build with values. */
let built: string;
const at = (name: string): string => join(world.directory, name);
const done = async (...args: readonly string[]): Promise<string> =>
  (await expectDone(world, ...args)).stdout;

/** As sha256sum(1) says. */
const sumOf = (name: string): string =>
  execFileSync('sha256sum', [at(name)], { encoding: 'utf8' }).slice(0, 64);

const OTHER_KEY = TEST_SSH_KEY.replace(/\S*$/, 'other@site');

const VALUES = [
  ...['--ssh-key', TEST_SSH_KEY, '--pull-secret', 'file:secret.json'],
  ...['--kargs-append', 'console=ttyS0', '--infraenv', 'site.yaml'],
];

const SITE = `kind: NMStateConfig
metadata: {name: host, labels: {site: a}}
spec:
  interfaces: [{name: eth0, macAddress: "52:54:00:00:00:01"}]
  config: {interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]}
`;

/** A definition with a member that only this release has. */
const HOST_DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations: {include.release.openshift.io/self-managed-high-availability: "true"}
  name: baremetalhosts.metal3.io
spec:
  group: metal3.io
  names:
    kind: BareMetalHost
    plural: baremetalhosts
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              bootMACAddress: {type: string}
              flavour: {type: string, enum: [sweet, sour]}
`;

const hostWith = (line: string): string =>
  [
    'apiVersion: metal3.io/v1alpha1',
    'kind: BareMetalHost',
    'metadata: {name: a, annotations: {bmac.agent-install.openshift.io/hostname: a.example}}',
    'spec:',
    '  bootMACAddress: "52:54:00:00:00:01"',
    `  ${line}`,
    '',
  ].join('\n');

beforeAll(async () => {
  const path = 'release-manifests/0000_31_cluster-baremetal-operator_03_baremetalhost.crd.yaml';
  world = await createLiveWorld({
    installer: INSTALLER,
    definitions: { ...makeDefinitions('4.21.3'), [path]: HOST_DEFINITION },
  });
  await world.writeConfig();
  await writeFile(at('secret.json'), SECRET);
  await writeFile(at('site.yaml'), SITE);
  const build = ['build', '--set', 'build.ignition=installer', '--fresh-layout'];
  await done(...build, '--output', 'pristine.iso');
  built = await done(
    ...[...build, '--output', 'built.iso', '--set', `sshKey=${TEST_SSH_KEY}`],
    ...['--set', 'build.embed.pullSecret=file:secret.json', '--set', 'build.nmstate=site.yaml'],
    ...['--set', 'build.kernelArguments=["console=ttyS0"]'],
  );
}, 120_000);
afterAll(() => world.close());
beforeEach(() => copyFile(at('pristine.iso'), at('x.iso')));

const verify = async (
  name: string,
): Promise<{ readonly ok: boolean; readonly customised?: boolean }> =>
  JSON.parse((await world.run('verify', name, '-o', 'json')).stdout) as { ok: boolean };

test('a build warns of networks that no host can be the rendezvous host with', () => {
  expect(built).toMatch(/warning +no host has a static address, so no host becomes the rendezvous/);
});

describe('a BareMetalHost', () => {
  test('is read by the definition of the payload on the ISO, and by ours on other ISOs', async () => {
    await writeFile(at('host.yaml'), hostWith('flavour: sweet'));
    await done('customize', 'x.iso', '--infraenv', 'host.yaml', '--in-place');
    await writeFile(at('host.yaml'), hostWith('flavour: salty'));
    const salty = await world.run('customize', 'x.iso', '--infraenv', 'host.yaml', '--in-place');
    expect(salty.stderr).toContain('must be one of "sweet", "sour", but is "salty"');
    await writeFile(at('host.yaml'), hostWith('online: true'));
    const other = await world.run('customize', 'x.iso', '--infraenv', 'host.yaml', '--in-place');
    expect(other.stderr).toContain('unknown field "online"');
    const ofOthers = await world.run(
      ...['customize', 'test.iso', '--infraenv', 'host.yaml', '--output', 'other.iso'],
    );
    expect(ofOthers.stderr).toContain('a host name has no effect on this ISO');
  });
});

describe('customising an ISO that was built', () => {
  test('gives the areas and files of an ISO that is built with the values, in place and as a copy', async () => {
    expect(sumOf('pristine.iso')).not.toBe(sumOf('built.iso'));
    await done('customize', 'x.iso', ...VALUES, '--in-place');
    await expectSameValues(at('x.iso'), at('built.iso'));
    await done('customize', 'pristine.iso', ...VALUES, '--output', 'copy.iso');
    expect(sumOf('copy.iso')).toBe(sumOf('x.iso'));
    expect((await readdir(world.directory)).filter((name) => /customize|tmp$/.test(name))).toEqual(
      [],
    );
  });

  test('is shown without secrets, verified as good, and undone to the byte', async () => {
    expect(await verify('x.iso')).toMatchObject({ ok: true, customised: false });
    await done('customize', 'x.iso', ...VALUES, '--in-place');
    expect(await verify('x.iso')).toMatchObject({ ok: true, customised: true });
    const shown = await done('customize', 'x.iso', '--show', '-o', 'json');
    expect(JSON.parse(shown)).toMatchObject({
      customised: true,
      ignition: { sshKeys: [TEST_SSH_KEY], pullSecret: true },
    });
    expect(shown).not.toContain('dXNlcjpob3N0LXdvcmQ');
    const again = await world.run('customize', 'x.iso', '--ntp', 'a.example', '--in-place');
    expect([again.exitCode, again.stderr]).toEqual([
      2,
      expect.stringContaining('[customize.already]'),
    ]);
    await done('customize', 'x.iso', '--reset', '--in-place');
    expect(sumOf('x.iso')).toBe(sumOf('pristine.iso'));
    await done('customize', 'built.iso', '--reset=bare', '--output', 'bare.iso');
    await expectSameValues(at('bare.iso'), at('pristine.iso'));
  });

  test('is reported as damage if anything else has changed', async () => {
    await done('customize', 'x.iso', ...VALUES, '--in-place');
    const iso = await openIso(at('x.iso'));
    const menu = await iso.find('/EFI/redhat/grub.cfg');
    await iso.close();
    const offset = menu?.kind === 'file' ? (menu.extents[0]?.offset ?? 0) : 0;
    const file = await open(at('x.iso'), 'r+');
    await file.write('#', offset);
    await file.close();
    expect(await verify('x.iso')).toMatchObject({
      ok: false,
      problems: [{ path: '/EFI/redhat/grub.cfg' }],
    });
  });

  test('is undone by the next call after a kill at any write', async () => {
    let code: number | null;
    for (let count = 1; ; count++) {
      const env = { NODE_OPTIONS: `--import=${KILLER}`, KILL_AT: String(count) };
      const args = ['customize', 'x.iso', ...VALUES, '--in-place'];
      ({ code } = await startSealift(args, { cwd: world.directory, env }).ended);
      if (code !== null) break;
      const next = await world.run('customize', 'x.iso', '--reset', '--in-place', '-o', 'json');
      expect(JSON.parse(next.stdout)).toMatchObject({ undone: true, changed: 0 });
      expect(sumOf('x.iso')).toBe(sumOf('pristine.iso'));
    }
    expect(code).toBe(0);
    await expectSameValues(at('x.iso'), at('built.iso'));
  }, 120_000);

  test('leaves the ISO alone if the saved bytes are damaged, and removes files that a killed run left', async () => {
    const left = at('x.iso.customize.999999-1-0123456789ab.tmp');
    await writeFile(left, 'half');
    for (const saved of ['\0', '{"areas":[{"offset":-1,"old":"","now":""}]}', '{"areas":[null]}']) {
      await writeFile(at('x.iso.customize'), saved);
      const { exitCode, stderr } = await world.run('customize', 'x.iso', '--reset', '--in-place');
      expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[customize.leftover]')]);
      expect(sumOf('x.iso')).toBe(sumOf('pristine.iso'));
    }
    await rm(at('x.iso.customize'));
    await expect(stat(left)).rejects.toThrow('ENOENT');
  });

  test('refuses a pull secret on the command line', async () => {
    const args = ['--pull-secret', SECRET, '--output', 'y.iso'];
    const { exitCode, stderr } = await world.run('customize', 'x.iso', ...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.pull-secret]')]);
    expect(stderr).not.toContain('dXNlcjpob3N0');
  });

  test('keeps a delta from overwriting its values by those of the new build', async () => {
    await done('delta', 'pristine.iso', 'built.iso', '--output', 'values.delta');
    await done('customize', 'x.iso', '--ssh-key', OTHER_KEY, '--in-place');
    const customised = sumOf('x.iso');
    for (const place of [['--output', 'y.iso'], ['--in-place']]) {
      const { exitCode, stderr } = await world.run('apply', 'x.iso', 'values.delta', ...place);
      expect([exitCode, stderr]).toEqual([8, expect.stringContaining('passwd.users core')]);
    }
    expect(sumOf('x.iso')).toBe(customised);
    await done('customize', 'x.iso', '--reset', '--in-place');
    await done('apply', 'x.iso', 'values.delta', '--output', 'y.iso');
    expect(sumOf('y.iso')).toBe(sumOf('built.iso'));
    await done('apply', 'x.iso', 'values.delta', '--in-place');
    expect(sumOf('x.iso')).toBe(sumOf('built.iso'));
  });
});

const KILLER = new URL('../support/kill-at-write.mjs', import.meta.url).href;
