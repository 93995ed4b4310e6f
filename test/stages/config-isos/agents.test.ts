import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkConfigImage } from '../../../src/media/config-image.ts';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  BAREMETAL,
} from '../../support/agent-sites.ts';
import { agentLiveIgnition } from '../../support/agent-medium.ts';
import { formatImageSet, makeLiveMedium, RELEASE_IMAGE } from '../../support/config-image.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { siteTree, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso', 'cpio'].map((tool) => requireTool(tool));

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

/** Files of three masters on bare metal. */
function agentTree(name: string): Tree {
  const install = agentInstallConfig(
    { masters: 3, platform: BAREMETAL },
    { metadata: { name }, baseDomain: 'example.com' },
  );
  const hosts = [0, 1, 2].map((index) => agentHost(index, 'master'));
  return {
    [`${name}/install-config.yaml`]: stringify(install),
    [`${name}/agent-config.yaml`]: stringify(agentConfig(hosts)),
    [`${name}/openshift/99-a.yaml`]: 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n',
  };
}

describe.skipIf(!hasTools.every(Boolean))('sites that agents install', () => {
  let folder: string;
  let medium: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agents-'));
    medium = await makeLiveMedium(folder, agentLiveIgnition());
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const build = (more: Readonly<Record<string, unknown>> = {}) =>
    world.build(keys, { sites: 'sites', out: 'out', medium, ...more });

  it('get an image that their medium takes, beside sites of other kinds', async () => {
    world.write({ ...inSites(agentTree('alpha')), ...inSites(siteTree('beta', { number: 9 })) });
    const { made, sites, failed } = await build();
    expect([made, sites.map(({ name }) => name), failed]).toEqual([2, ['alpha', 'beta'], []]);
    const image = { path: world.at('out', 'alpha.iso'), shownAs: 'alpha.iso' };
    const verdict = await checkConfigImage(image, { path: medium, shownAs: 'medium' });
    expect(verdict).toMatchObject({
      fits: true,
      obstacles: [],
      cautions: [],
      cluster: {
        nodes: { masters: 3, arbiters: 0, workers: 0 },
        hosts: 3,
        rendezvousIp: '192.0.2.10',
        infraEnvId: sites[0]?.clusterId,
      },
    });
    expect((await readdir(world.at('out', 'alpha'))).sort()).toEqual([
      '.openshift_install_state.json',
      'auth',
    ]);
  });

  it('are each on their own if a link is in the place of a folder', async () => {
    world.write({ ...inSites(agentTree('alpha')), ...inSites(siteTree('beta', { number: 9 })) });
    await mkdir(world.at('elsewhere'));
    await mkdir(world.at('out'));
    await symlink(world.at('elsewhere'), world.at('out', 'alpha'));
    const { made, failed } = await build();
    expect([made, failed.map(({ name, findings }) => [name, findings[0]?.code])]).toEqual([
      1,
      [['alpha', 'config-iso.in-the-way']],
    ]);
    expect(await readdir(world.at('elsewhere'))).toEqual([]);
  });

  it('are read by GNU cpio, as the loader reads them', async () => {
    world.write(inSites(agentTree('alpha')));
    await build();
    const archive = world.at('config.gz');
    execFileSync('xorriso', [
      ...['-osirrox', 'on', '-indev', world.at('out', 'alpha.iso')],
      ...['-extract', '/config.gz', archive],
    ]);
    const names = execFileSync('sh', ['-c', `gzip -dc "${archive}" | cpio --quiet -t`]);
    expect(names.toString().split('\n')).toEqual(
      expect.arrayContaining([
        '/etc/assisted/rendezvous-host.env',
        '/etc/assisted/network/host2/eth0.nmconnection',
        '/etc/assisted/hostconfig/m1.example.com/role',
        '/etc/assisted/extra-manifests/99-a-0.yaml',
      ]),
    );
  });

  it('keep their keys and tokens, and are made again only for another medium', async () => {
    world.write(inSites(agentTree('alpha')));
    const first = await build();
    const second = await build();
    expect([second.made, second.reused, second.sites]).toEqual([0, 1, first.sites]);
    const other = await makeLiveMedium(
      folder,
      agentLiveIgnition(undefined, formatImageSet(RELEASE_IMAGE.replaceAll('a', 'b'))),
    );
    const third = await build({ medium: other });
    expect([third.made, third.sites[0]?.generation]).toEqual([1, first.sites[0]?.generation]);
    const image = { path: world.at('out', 'alpha.iso'), shownAs: 'image' };
    expect(await checkConfigImage(image, { path: other, shownAs: 'other' })).toMatchObject({
      fits: true,
    });
    expect(await checkConfigImage(image, { path: medium, shownAs: 'medium' })).toMatchObject({
      fits: false,
    });
  });

  it('fail alone without a medium', async () => {
    world.write({ ...inSites(agentTree('alpha')), ...inSites(siteTree('beta', { number: 9 })) });
    const { sites, failed } = await world.build(keys, { sites: 'sites', out: 'out' });
    expect(sites.map(({ name }) => name)).toEqual(['beta']);
    expect(failed).toMatchObject([{ name: 'alpha' }]);
    expect(JSON.stringify(failed)).toContain('config-iso.no-medium');
  });

  it.each([
    ['eth1', 'the MAC map has no entry for this interface'],
    ['eth0\nx', 'MAC map'],
  ])(
    'are refused before a build if the name %j of an interface does not fit',
    async (name, why) => {
      const interfaces = [
        { name: 'eth0', macAddress: '52:54:00:00:00:01' },
        { name, macAddress: '52:54:00:00:00:02' },
      ].slice(name === 'eth1' ? 1 : 0);
      world.write({
        'sites/alpha/install-config.yaml': stringify(agentInstallConfig()),
        'sites/alpha/agent-config.yaml': stringify(
          agentConfig([agentHost(0, 'master', { interfaces })]),
        ),
      });
      const { exitCode, stderr } = await world.run('config-iso', 'validate', 'sites');
      expect([exitCode, stderr]).toEqual([3, expect.stringContaining(why)]);
    },
  );

  it('have the state by which openshift-install waits for the cluster, without other keys', async () => {
    world.write(inSites(agentTree('alpha')));
    await build();
    const text = readFileSync(world.at('out', 'alpha', '.openshift_install_state.json'), 'utf8');
    const state = JSON.parse(text) as Record<string, Record<string, unknown>>;
    expect(state['*agentconfig.AgentConfig']?.['Config']).toMatchObject({
      rendezvousIP: '192.0.2.10',
    });
    const token = String(state['*gencrypto.AuthConfig']?.['WatcherAuthToken']);
    const [, payload = ''] = token.split('.');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))).toEqual({
      auth_scheme: 'watcherAuth',
    });
    expect(text).not.toContain('PRIVATE KEY');
  });
});

const inSites = (tree: Tree): Tree =>
  Object.fromEntries(Object.entries(tree).map(([path, text]) => [`sites/${path}`, text]));
