import { execFileSync } from 'node:child_process';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { INSTALLER } from '../support/installer-script.ts';
import { expectSameValues } from '../support/same-values.ts';
import { expectDone } from '../support/two-nights.ts';

const SITE = `kind: NMStateConfig
metadata: {name: host}
spec:
  interfaces: [{name: eth0, macAddress: "52:54:00:00:00:01"}]
  config: {interfaces: [{name: br-ex, type: ovs-bridge}]}
`;

/** Stands in for nmstate's program, which Debian does not have. */
const NMSTATECTL = `#!/bin/sh
if [ "$1" = --version ]; then echo 2.2.38; exit 0; fi
[ "$1" = gc ] && grep -q ovs-bridge "$2" || exit 9
printf 'NetworkManager:\\n- - br-ex.nmconnection\\n  - "[connection]\\\\nid=br-ex\\\\ntype=ovs-bridge\\\\n"\\n'
`;

describe('a network that only nmstate can make profiles for', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    await writeFile(join(world.directory, 'site.yaml'), SITE);
    await writeFile(join(world.directory, 'net.yaml'), 'interfaces: [{name: a, type: dummy}]\n');
    await writeFile(join(world.directory, 'nmstatectl'), NMSTATECTL, { mode: 0o755 });
  });
  afterAll(() => world.close());

  const BUILD = ['build', '--set', 'build.ignition=installer', '--fresh-layout'];
  const EXOTIC = [...BUILD, '--set', 'build.nmstate=site.yaml', '--output', 'built.iso'];
  const setPath = (...folders: readonly string[]): void => {
    world.env['PATH'] = [...folders, '/usr/bin:/bin'].join(':');
  };

  test('is refused if nmstatectl is not installed, with a hint to install it', async () => {
    setPath();
    await expectDone(world, ...BUILD, '--output', 'pristine.iso');
    const customise = ['customize', 'pristine.iso', '--nmstate', 'site.yaml', '--in-place'];
    for (const args of [customise, EXOTIC]) {
      const { exitCode, stderr } = await world.run(...args);
      expect([exitCode, stderr]).toEqual([3, expect.stringContaining('[nmstate.unsupported]')]);
      expect(stderr).toContain('install nmstate');
    }
  });

  test('is refused for an unsupported member or type, and for a wrong value, before anything is written', async () => {
    setPath();
    await copyFile(join(world.directory, 'test.iso'), join(world.directory, 'same.iso'));
    const refusals = [
      ['ethtool: {ring: {rx: 1}}', 'nmstate.unsupported', '"eth0": ethtool: needs nmstate'],
      ['ipv4: {enabled: true, address: [{ip: 192.0.2.1}]}', 'nmstate.malformed', "'prefix-length'"],
    ] as const;
    for (const [member, code, reason] of refusals) {
      const text = `interfaces:\n- name: eth0\n  ${member}\n`;
      await writeFile(join(world.directory, 'eth0.yaml'), text);
      const args = ['customize', 'test.iso', '--nmstate', 'eth0.yaml', '--in-place'];
      const { exitCode, stderr } = await world.run(...args);
      expect([exitCode, stderr]).toEqual([3, expect.stringContaining(`[${code}]`)]);
      expect(stderr).toContain(reason);
    }
    execFileSync('cmp', ['test.iso', 'same.iso'], { cwd: world.directory });
  });

  test('has the profiles of nmstatectl if that is installed, the same at a build and afterwards', async () => {
    setPath(world.directory);
    await expectDone(world, ...EXOTIC);
    const args = ['customize', 'pristine.iso', '--nmstate', 'site.yaml', '--output', 'site.iso'];
    await expectDone(world, ...args);
    const [site = '', built = ''] = ['site.iso', 'built.iso'].map((name) =>
      join(world.directory, name),
    );
    await expectSameValues(site, built);
    const { stdout } = await expectDone(world, 'ignition', 'show', 'site.iso');
    const { storage } = JSON.parse(stdout) as {
      readonly storage: {
        readonly files: readonly { path: string; contents: { source: string } }[];
      };
    };
    const path = '/etc/assisted/network/host0/br-ex.nmconnection';
    const { source } = storage.files.find((file) => file.path === path)?.contents ?? { source: '' };
    const content = Buffer.from(source.replace(/^.*base64,/, ''), 'base64').toString();
    expect(content).toContain('id=br-ex\ntype=ovs-bridge\nautoconnect=true\n');
  });

  test('is refused with the message of nmstatectl', async () => {
    const args = ['customize', 'test.iso', '--nmstate', 'net.yaml', '--output', 'x.iso'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining('[nmstate.malformed]')]);
  });
});
