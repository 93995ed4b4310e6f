import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import type { ConfigIso } from '../../../src/sites/config-iso.ts';
import type { ConfigIsoDifference } from '../../../src/stages/report/config-iso-diff.ts';
import {
  PASSWORD,
  createConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { makeKeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

let world: ConfigIsoWorld;
beforeAll(async () => {
  world = await createConfigIsoWorld();
  const keys = await makeKeyRing();
  const proxy = 'proxy: {httpProxy: "http://user:proxy-word@proxy.example:3128"}';
  const alpha = siteTree('alpha', { install: [proxy], manifests: { 'a.yaml': manifestOf('A') } });
  world.write(inFolder('sites', alpha));
  const built = await world.build(keys, { sites: 'sites', out: 'out' });
  world.write({ 'sites/alpha/extra-manifests/a.yaml': manifestOf('B') });
  await world.build(keys, { sites: 'sites', out: 'rotated' });
  expect(built.failed).toEqual([]);
  await keys.close();
}, 60_000);
afterAll(() => world.close());

const SECRETS = [PASSWORD, 'PRIVATE KEY', 'proxy-word', '$2a$10$'];

describe('sealift config-iso show', () => {
  it('prints files and manifest without a secret', async () => {
    const { exitCode, stdout } = await world.run('config-iso', 'show', 'out/alpha.iso');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^out\/alpha\.iso: label cluster-config, 128\.0 KiB$/m);
    expect(stdout).toMatch(/^ {2}\/extra-manifests\/a\.yaml {2}43 bytes, sha256:[0-9a-f]{64}$/m);
    expect(stdout).toContain('"cluster_name": "alpha"');
    expect(stdout).toContain('"ingress_ca": "[redacted]"');
    expect(stdout).toContain('quay.io');
    for (const secret of SECRETS) expect(stdout).not.toContain(secret);
  });

  it('prints the same as JSON', async () => {
    const { stdout } = await world.run('config-iso', 'show', 'out/alpha.iso', '-o', 'json');
    const { volumeId, entries, manifest } = JSON.parse(stdout) as ConfigIso;
    expect([volumeId, entries.length]).toEqual(['cluster-config', 5]);
    expect(manifest).toHaveProperty('base_domain', 'edge.example');
    for (const secret of SECRETS) expect(stdout).not.toContain(secret);
  });

  it.skipIf(!requireTool('genisoimage'))(
    'reads ISOs of other makers, and no other ISOs',
    async () => {
      await mkdir(world.at('tree/cluster-configuration'), { recursive: true });
      const manifest = world.at('tree/cluster-configuration/manifest.json');
      await writeFile(manifest, '{"cluster_name":"other","future_key":"unknown"}');
      const write = (label: string): Promise<unknown> =>
        runProcess('genisoimage', [
          '-quiet',
          '-R',
          '-V',
          label,
          '-o',
          world.at('x.iso'),
          world.at('tree'),
        ]);
      await write('cluster-config');
      const { stdout } = await world.run('config-iso', 'show', 'x.iso');
      expect(stdout).toContain('"cluster_name": "other"');
      expect(stdout).toContain('"future_key": "[redacted]"');
      await write('CLUSTER_CONFIG');
      const refused = await world.run('config-iso', 'show', 'x.iso');
      expect([refused.exitCode, refused.stderr]).toEqual([
        5,
        expect.stringContaining('config-iso.label'),
      ]);
      await write('agent_configimage');
      const { stderr } = await world.run('config-iso', 'show', 'x.iso');
      expect(stderr).toContain('the ISO has no /config.gz [config-image.archive]');
      await write('cluster-config');
      await writeFile(manifest, '{"cluster_name":');
      await write('cluster-config');
      expect((await world.run('config-iso', 'show', 'x.iso')).stderr).toContain(
        'config-iso.manifest',
      );
    },
  );

  it.skipIf(!requireTool('genisoimage'))(
    'refuses an ISO with too much in it, without reading it',
    async () => {
      await mkdir(world.at('large/cluster-configuration'), { recursive: true });
      await writeFile(world.at('large/cluster-configuration/manifest.json'), '{}');
      await writeFile(world.at('large/hole'), '');
      await truncate(world.at('large/hole'), 300 << 20);
      const args = [
        '-quiet',
        '-R',
        '-V',
        'cluster-config',
        '-o',
        world.at('l.iso'),
        world.at('large'),
      ];
      await runProcess('genisoimage', args);
      const { exitCode, stderr } = await world.run('config-iso', 'show', 'l.iso');
      expect([exitCode, stderr]).toEqual([5, expect.stringContaining('config-iso.too-large')]);
    },
  );

  it('reports a file that is not an ISO', async () => {
    const { exitCode, stderr } = await world.run('config-iso', 'show', 'out/sites.json');
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('iso.not-iso9660')]);
  });
});

describe('sealift config-iso diff', () => {
  it('finds no difference between an ISO and itself', async () => {
    const args = ['config-iso', 'diff', 'out/alpha.iso', 'out/alpha.iso'];
    expect(await world.run(...args)).toEqual({
      exitCode: 0,
      stdout: 'no differences\n',
      stderr: '',
    });
  });

  it('prints the differences, secrets only as changed, and ends with exit code 8', async () => {
    const args = ['config-iso', 'diff', 'out/alpha.iso', 'rotated/alpha.iso'];
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([8, expect.stringContaining('[config-iso.differences]')]);
    expect(stdout).toMatch(/^manifest cluster_id:\n {2}A: \S{36}\n {2}B: \S{36}$/m);
    expect(stdout).toMatch(/^manifest kubeadmin_password_hash: a secret that changed$/m);
    expect(stdout).toMatch(/^file \/extra-manifests\/a\.yaml:\n {2}A: 43 bytes, sha256:/m);
    for (const secret of SECRETS) expect(stdout).not.toContain(secret);
  });

  it('prints the same as JSON', async () => {
    const args = ['config-iso', 'diff', 'out/alpha.iso', 'rotated/alpha.iso', '-o', 'json'];
    const { stdout } = await world.run(...args);
    const { differences } = JSON.parse(stdout) as { differences: readonly ConfigIsoDifference[] };
    expect(differences.map(({ path }) => path)).toContain('infra_id');
    for (const secret of SECRETS) expect(stdout).not.toContain(secret);
  });
});
