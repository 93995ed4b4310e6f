import { readdir, readFile, rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parseState } from '../../../src/sites/identity/identity.ts';
import type { SiteIdentity } from '../../../src/sites/identity/identity.ts';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import {
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { writeTree, type Tree } from '../../support/site-archives.ts';
import { listPairs, type KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

/** Called so that no site could be. */
const DIRECTORY = 'Work_Dir';
const asDirectory = (tree: Tree, name: string): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([path, text]) => [path.replace(`${name}/`, `${DIRECTORY}/`), text]),
  );
const ONE = asDirectory(siteTree('alpha', { manifests: { 'a.yaml': manifestOf('A') } }), 'alpha');

describe('--drop-in', () => {
  it('makes what openshift-install makes, in the directory of one site, with its names', async () => {
    world.write(ONE);
    const { exitCode, stdout, stderr } = await world.run(
      ...['config-iso', 'build', DIRECTORY, '--drop-in'],
    );
    expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('is not used')]);
    expect(stdout).toContain(`next: sealift config-iso show ${DIRECTORY}/imagebasedconfig.iso`);
    expect((await readdir(world.at(DIRECTORY))).sort()).toEqual([
      ...['_state', 'auth', 'extra-manifests', 'image-based-config.yaml'],
      ...['imagebasedconfig.iso', 'install-config.yaml'],
    ]);
    expect((await readdir(world.at(DIRECTORY, 'auth'))).sort()).toEqual([
      ...['kubeadmin-password', 'kubeconfig'],
    ]);
  });

  it('does not read its own output as input, and makes nothing again', async () => {
    world.write(ONE);
    const build = () => world.build(keys, { sites: DIRECTORY, out: DIRECTORY, dropIn: true });
    const first = await build();
    const second = await build();
    expect([second.made, second.reused, second.findings]).toEqual([0, 1, []]);
    expect(second.sites).toEqual(first.sites);
    expect(second.sites[0]?.findings).toEqual([]);
  });

  it('writes to another output folder if one is named, and then nothing next to the inputs', async () => {
    world.write(ONE);
    await world.build(keys, { sites: DIRECTORY, out: 'out', dropIn: true });
    expect((await readdir(world.at(DIRECTORY))).sort()).toEqual([
      ...['extra-manifests', 'image-based-config.yaml', 'install-config.yaml'],
    ]);
    expect((await readdir(world.at('out'))).sort()).toEqual([
      ...['_state', 'auth', 'imagebasedconfig.iso'],
    ]);
  });

  it('refuses a folder of sites', async () => {
    world.write(inFolder(DIRECTORY, siteTree('alpha')));
    const { exitCode, stderr } = await world.run('config-iso', 'build', DIRECTORY, '--drop-in');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.drop-in')]);
  });
});

describe('--retain-from', () => {
  /** What openshift-install would leave of a site that we made before. */
  async function leaveTls(directory: string): Promise<SiteIdentity> {
    world.write(inFolder('before', siteTree('alpha')));
    await world.build(keys, { sites: 'before', out: 'made-before' });
    const state = await readFile(world.at('made-before/_state/alpha.1.json'), 'utf8');
    const identity = parseState(state)?.identity;
    if (!identity) throw new Error('there is no state');
    const files = Object.entries(listPairs(identity))
      .filter(([name]) => name !== 'admin-kubeconfig-client')
      .flatMap(([name, { privateKey, certificate }]) => [
        [`tls/${name}.key`, privateKey],
        [`tls/${name}.crt`, certificate],
      ]);
    writeTree(world.at(directory), {
      ...(Object.fromEntries(files) as Tree),
      'tls/kubeadmin-password.hash': identity.password.bcrypt,
    });
    return identity;
  }
  const retentionOf = async (iso: string): Promise<unknown> =>
    (await readConfigIso(world.at(iso))).manifest;

  it('uses signers and password from the directory of the only site', async () => {
    const identity = await leaveTls('kept');
    world.write(inFolder('sites', siteTree('alpha')));
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept' });
    expect(failed).toEqual([]);
    expect(await retentionOf('out/alpha.iso')).toMatchObject({
      kubeadmin_password_hash: identity.password.bcrypt,
      KubeconfigCryptoRetention: {
        IngresssCrypto: { ingress_ca: identity.signers.ingress.privateKey },
      },
    });
    expect(await readFile(world.at('out/alpha/auth/kubeadmin-password'), 'utf8')).toBe('');
  });

  it('uses for each site the folder of its name, and makes new ones for other sites', async () => {
    const identity = await leaveTls('kept/alpha');
    const sites = [siteTree('alpha', { number: 1 }), siteTree('beta', { number: 2 })];
    world.write(inFolder('sites', ...sites));
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept' });
    expect(failed).toEqual([]);
    const { bcrypt } = identity.password;
    expect(await retentionOf('out/alpha.iso')).toHaveProperty('kubeadmin_password_hash', bcrypt);
    expect(await retentionOf('out/beta.iso')).not.toHaveProperty('kubeadmin_password_hash', bcrypt);
  });

  it('stops only a site with incomplete files', async () => {
    await leaveTls('kept/alpha');
    await rm(world.at('kept/alpha/tls/ingress-operator-signer.key'));
    const sites = [siteTree('alpha', { number: 1 }), siteTree('beta', { number: 2 })];
    world.write(inFolder('sites', ...sites));
    const report = await world.build(keys, { sites: 'sites', out: 'out', retainFrom: 'kept' });
    expect(report.sites.map(({ name }) => name)).toEqual(['beta']);
    expect(report.failed[0]?.findings[0]?.problem).toContain('[retained.incomplete]');
  });

  it.each([
    ['has no state of any site', 'retained.empty', {}],
    ['is of one site if there are two', 'retained.ambiguous', { 'kept/tls/x': '' }],
  ])('refuses a directory that %s', async (_what, code, kept) => {
    const sites = [siteTree('alpha', { number: 1 }), siteTree('beta', { number: 2 })];
    world.write({ ...inFolder('sites', ...sites), ...(kept as Tree) });
    const args = ['config-iso', 'build', 'sites', '--retain-from', 'kept'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining(`[${code}]`)]);
  });

  it('warns about folders that belong to no site: a misspelt name would get new keys', async () => {
    await leaveTls('kept/alpha');
    world.write({ ...inFolder('sites', siteTree('alpha')), 'kept/aplha/tls/x': '' });
    const args = ['config-iso', 'build', 'sites', '--retain-from', 'kept'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringMatching(/kept has retained files for \["aplha"\]/),
    ]);
  });

  it('cannot be combined with --rotate', async () => {
    const { exitCode, stderr } = await world.run(
      ...['config-iso', 'build', 'sites', '--rotate', '--retain-from', 'x'],
    );
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.rotate')]);
  });
});
