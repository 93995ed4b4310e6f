import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { inFolder, siteTree, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import {
  authTree,
  CLUSTER_ID,
  formatInstallState,
  INFRA_ID,
  installCluster,
  MIRROR_SET,
  writeConfigIso,
  type InstalledCluster,
} from '../../support/install-leftovers.ts';
import { writeTree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
let installed: InstalledCluster;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});
beforeAll(async () => {
  installed = await installCluster();
}, 120_000);

type More = Partial<Parameters<ConfigIsoWorld['build']>[1]>;
function build(more: More = {}): Promise<ConfigIsosReport> {
  world.write(inFolder('sites', siteTree('alpha', { number: 1 })));
  return world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept', ...more });
}

/** What openshift-install leaves: its inputs are consumed, and it writes no `tls/`. */
async function leaveFolder(directory = 'kept'): Promise<void> {
  writeTree(world.at(directory), {
    ...authTree(installed),
    '.openshift_install.log': '',
    '.openshift_install_state.json': formatInstallState(installed),
  });
  await writeConfigIso(world.at(directory, 'imagebasedconfig.iso'), installed);
}

/** What the image-based-install operator writes before it makes the ISO of a reinstallation. */
function leaveReinstall(): void {
  writeTree(world.at('kept'), {
    ...authTree(installed),
    'cluster-configuration/manifest.json': JSON.stringify(installed.manifest),
    'cluster-configuration/manifests/image-digest-mirror-set.json': MIRROR_SET,
  });
}

/** Keys, ids and password are those of before, and all else is that of the new inputs. */
async function expectReinstalled({ failed, sites }: ConfigIsosReport): Promise<void> {
  expect(failed).toEqual([]);
  expect(sites[0]).toMatchObject({ clusterId: CLUSTER_ID, infraId: INFRA_ID });
  const text = await runProcess('bsdtar', [
    ...['-xOf', world.at('out/alpha.iso'), 'cluster-configuration/manifest.json'],
  ]);
  const manifest = JSON.parse(text.stdout) as Record<string, unknown>;
  const { manifest: before } = installed;
  for (const key of ['KubeconfigCryptoRetention', 'kubeadmin_password_hash']) {
    expect(manifest[key]).toEqual(before[key]);
  }
  expect(manifest).toMatchObject({ cluster_id: CLUSTER_ID, infra_id: INFRA_ID, hostname: 'alpha' });
  expect(manifest['machine_networks']).toEqual(['192.168.0.0/16']);
  expect(manifest['raw_nm_state_config']).toContain('192.168.0.1');
  expect(manifest).not.toHaveProperty('proxy');
  expect(await readFile(world.at('out/alpha/auth/kubeconfig'), 'utf8')).toBe(installed.kubeconfig);
}

const readPassword = (): Promise<string> =>
  readFile(world.at('out/alpha/auth/kubeadmin-password'), 'utf8');
const problemOf = ({ failed }: ConfigIsosReport): string =>
  failed[0]?.findings[0]?.problem ?? 'none failed';

describe('--retain-from the folder that openshift-install left', () => {
  it('uses the whole identity, with the signer key that only the state has', async () => {
    await leaveFolder();
    await expectReinstalled(await build());
    expect(await readPassword()).toBe(installed.password);
    const state = await readFile(world.at('out/_state/alpha.1.json'), 'utf8');
    const { identity } = JSON.parse(state) as {
      identity: { signers: { adminKubeconfig: { privateKey: string } } };
    };
    const { key } = installed.signers['admin-kubeconfig-signer'];
    expect(identity.signers.adminKubeconfig.privateKey).toBe(key);
  });

  it.each([
    ['ISO and auth/', ['imagebasedconfig.iso', 'auth']],
    ['state', ['.openshift_install_state.json']],
    ['ISO', ['imagebasedconfig.iso']],
    ['auth/', ['auth']],
  ])('uses the identity even if the folder has lost its %s', async (_what, files) => {
    await leaveFolder();
    for (const file of files) await rm(world.at('kept', file), { recursive: true });
    await expectReinstalled(await build());
    expect(await readPassword()).toBe(installed.password);
  });

  it('makes nothing again, with and without the option', async () => {
    await leaveFolder();
    const handedOut = keys.handedOut();
    const first = await build();
    expect(keys.handedOut()).toBe(handedOut);
    for (const retainFrom of ['kept', undefined]) {
      const again = await world.build(keys, {
        sites: 'sites',
        out: 'out',
        ...(retainFrom !== undefined && { retainFrom }),
      });
      expect([again.made, again.reused]).toEqual([0, 1]);
      expect(again.sites[0]?.sha256).toBe(first.sites[0]?.sha256);
    }
  });

  it('works in place, with --drop-in', async () => {
    world.write(siteTree('alpha', { number: 1 }));
    await leaveFolder('alpha');
    const args = ['config-iso', 'build', 'alpha', '--drop-in', '--retain-from', 'alpha'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([0, expect.not.stringMatching(/generation/)]);
    const { manifest } = await readConfigIso(world.at('alpha/imagebasedconfig.iso'));
    expect(manifest).toMatchObject({ cluster_id: CLUSTER_ID, hostname: 'alpha' });
  });

  it.each<readonly [string, (text: string) => string, string]>([
    ['is not JSON', (text) => text.slice(1), 'it is not JSON'],
    [
      'has another signer of the administrator',
      (text) =>
        text.replace(
          /("\*tls.AdminKubeConfigSignerCertKey": \{[^}]*"KeyRaw": ")[^"]*/,
          (_all, head: string) => head + Buffer.from(installed.client.key).toString('base64'),
        ),
      'is not the certificate of the key in',
    ],
    [
      'has another password',
      (text) => text.replace(/"Password": "[^"]*"/, '"Password": "aaaaa-bbbbb-ccccc-ddddd"'),
      'is not the password of',
    ],
  ])('refuses a state that %s', async (_what, change, problem) => {
    await leaveFolder();
    await rm(world.at('kept/auth'), { recursive: true });
    const text = change(formatInstallState(installed));
    await writeFile(world.at('kept/.openshift_install_state.json'), text);
    const report = await build();
    expect(problemOf(report)).toContain(problem);
    expect(problemOf(report)).not.toMatch(/PRIVATE|aaaaa/);
  });

  it('refuses an ISO and a state from different runs', async () => {
    await leaveFolder();
    const other = { ...installed, manifest: { ...installed.manifest, cluster_id: 'another' } };
    await writeConfigIso(world.at('kept/imagebasedconfig.iso'), other);
    expect(problemOf(await build())).toContain(
      'belong to different identities [retained.mismatch]',
    );
  });
});

describe('--retain-from an ISO', () => {
  it('uses the identity of ISO and kubeconfig, and reports that the password is unknown', async () => {
    await writeConfigIso(world.at('old.iso'), installed);
    await writeFile(world.at('old-kubeconfig'), installed.kubeconfig);
    world.write(inFolder('sites', siteTree('alpha', { number: 1 })));
    const { exitCode, stderr } = await world.run(
      ...['config-iso', 'build', 'sites', '--out', 'out'],
      ...['--retain-from', 'old.iso', '--kubeconfig', 'old-kubeconfig'],
    );
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('known only as a hash')]);
    await expectReinstalled({ ...(await world.readListing('out')), out: '', made: 1, reused: 0 });
    expect(await readPassword()).toBe('');
  });

  it('uses the password next to the kubeconfig', async () => {
    await writeConfigIso(world.at('old.iso'), installed);
    writeTree(world.at('old'), authTree(installed));
    const report = await build({ retainFrom: 'old.iso', kubeconfig: 'old/auth/kubeconfig' });
    await expectReinstalled(report);
    expect(await readPassword()).toBe(installed.password);
  });

  it('needs the kubeconfig, and names it as missing', async () => {
    await writeConfigIso(world.at('old.iso'), installed);
    const { failed } = await build({ retainFrom: 'old.iso' });
    expect(failed[0]?.findings[0]).toMatchObject({
      problem: expect.stringContaining('[retained.incomplete]') as unknown,
      hint: expect.stringContaining('--kubeconfig') as unknown,
    });
  });

  it('is for one site only, and so is --kubeconfig', async () => {
    await writeConfigIso(world.at('old.iso'), installed);
    world.write(inFolder('sites', siteTree('beta', { number: 2 })));
    await expect(build({ retainFrom: 'old.iso' })).rejects.toMatchObject({
      code: 'retained.ambiguous',
    });
    const args = ['config-iso', 'build', 'sites', '--out', 'out', '--kubeconfig', 'x'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.kubeconfig]')]);
  });

  it('is refused if the ISO is of another cluster', async () => {
    const manifest = { ...installed.manifest, cluster_name: 'other' };
    await writeConfigIso(world.at('old.iso'), { ...installed, manifest });
    await writeFile(world.at('kubeconfig'), installed.kubeconfig);
    const report = await build({ retainFrom: 'old.iso', kubeconfig: 'kubeconfig' });
    expect(problemOf(report)).toContain('belongs to another cluster than');
  });

  it('finds an ISO by the name of its site in a folder of ISOs, as builds leave them', async () => {
    world.write(inFolder('sites', siteTree('alpha', { number: 1 })));
    world.write(inFolder('sites', siteTree('beta', { number: 2 })));
    const first = await world.build(keys, { sites: 'sites', out: 'before' });
    await rm(world.at('before/_state'), { recursive: true });
    const second = await build({ retainFrom: 'before' });
    expect(second.failed).toEqual([]);
    expect(second.sites.map(({ sha256 }) => sha256)).toEqual(
      first.sites.map(({ sha256 }) => sha256),
    );
  });
});

describe('--retain-from a manifest, as the operator reinstalls', () => {
  it('uses its hash, keys and ids, and the new inputs for everything else', async () => {
    leaveReinstall();
    await expectReinstalled(await build());
    expect(await readPassword()).toBe(installed.password);
  });

  it('uses its mirrors, in the form that they have on an ISO, only if the inputs have none', async () => {
    leaveReinstall();
    const readMirrors = async (): Promise<string> => {
      const path = 'cluster-configuration/manifests/image-digest-mirror-set.json';
      return (await runProcess('bsdtar', ['-xOf', world.at('out/alpha.iso'), path])).stdout;
    };
    await build();
    expect(JSON.parse(await readMirrors())).toEqual(JSON.parse(MIRROR_SET));
    const install = ['imageDigestSources: [{source: quay.io/new, mirrors: [mirror.example/new]}]'];
    world.write(inFolder('sites', siteTree('alpha', { number: 1, install })));
    await world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept' });
    expect(await readMirrors()).toContain('quay.io/new');
    expect(await readMirrors()).not.toContain('quay.io/old');
  });

  it('uses the named kubeconfig instead of the existing one', async () => {
    leaveReinstall();
    await copyFile(world.at('kept/auth/kubeconfig'), world.at('good'));
    await writeFile(world.at('kept/auth/kubeconfig'), 'broken');
    expect(problemOf(await build())).toContain('[retained.kubeconfig]');
    await expectReinstalled(await build({ kubeconfig: 'good' }));
  });

  it.each([
    ['name', { cluster_name: 'other' }, 'belongs to another cluster'],
    ['id', { cluster_id: '' }, 'has no cluster_id'],
    ['domain', { base_domain: 'other.example' }, 'belongs to another cluster'],
  ])('is refused if it has another %s', async (_what, change, problem) => {
    leaveReinstall();
    const text = JSON.stringify({ ...installed.manifest, ...change });
    await writeFile(world.at('kept/cluster-configuration/manifest.json'), text);
    expect(problemOf(await build())).toContain(problem);
  });

  it('is not used for inputs that ask for another cluster id', async () => {
    leaveReinstall();
    const imageBased = ['cluster_id: 11111111-2222-4333-8444-555555555555'];
    world.write(inFolder('sites', siteTree('alpha', { number: 1, imageBased })));
    const report = await world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept' });
    expect(problemOf(report)).toContain('[retained.mismatch]');
  });
});
