import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import { profilesOf } from '../../../src/nmstate/plan.ts';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import {
  ALPHA,
  BAD,
  BETA,
  digestsOf,
  useConfigIsoWorld,
} from '../../support/config-iso-fixture.ts';
import {
  addressOf,
  imageBasedConfig,
  inFolder,
  installConfig,
  PASSWORD,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { membersOf, packTarGz, packZip } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const build = (more: Partial<Parameters<ConfigIsoWorld['build']>[1]> = {}) =>
  world.build(keys, { sites: 'sites', out: 'out', ...more });
const namesOf = ({ sites }: ConfigIsosReport): string[] => sites.map(({ name }) => name);

describe('sealift config-iso build', () => {
  it('makes an ISO, a kubeconfig and a password for each site, and a list of all', async () => {
    world.write(inFolder('sites', ALPHA));
    const { exitCode, stdout, stderr } = await world.run('config-iso', 'build', 'sites');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('make ISOs: done')]);
    expect(stdout).toContain('1 of 1 configuration ISOs are in config-isos: 1 made');
    expect(stdout).toContain('next: sealift config-iso show config-isos/alpha.iso');
    expect((await readdir(world.at('config-isos'))).sort()).toEqual([
      ...['_state', 'alpha', 'alpha.iso', 'sites.json'],
    ]);
    const bytes = await readFile(world.at('config-isos/alpha.iso'));
    const { sites, failed } = await world.readListing('config-isos');
    expect(failed).toEqual([]);
    expect(sites).toEqual([
      {
        generation: 1,
        name: 'alpha',
        iso: 'alpha.iso',
        size: bytes.length,
        findings: [],
        sha256: createHash('sha256').update(bytes).digest('hex'),
        clusterId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        infraId: expect.stringMatching(/^alpha-[a-z0-9]{5}$/) as string,
        validity: { notBefore: '2026-01-02T03:04:05.000Z', notAfter: '2028-01-02T03:04:05.000Z' },
      },
    ]);
    const kubeconfig = await readFile(world.at('config-isos/alpha/auth/kubeconfig'), 'utf8');
    expect(parse(kubeconfig)).toHaveProperty(
      'clusters.0.cluster.server',
      'https://api.alpha.edge.example:6443',
    );
    const password = await readFile(world.at('config-isos/alpha/auth/kubeadmin-password'), 'utf8');
    expect(password).toMatch(/^(?:[a-zA-Z2-9]{5}-){3}[a-zA-Z2-9]{5}$/);
  });

  it('keeps secrets private: files have mode 0600, and no secret is printed', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    const { stdout, stderr } = await world.run('config-iso', 'build', 'sites', '-o', 'json');
    const list = await readFile(world.at('config-isos/sites.json'), 'utf8');
    expect(stdout + stderr + list).not.toContain(PASSWORD);
    expect(stdout + stderr + list).not.toContain('PRIVATE KEY');
    const files = ['alpha.iso', 'alpha/auth/kubeconfig', 'alpha/auth/kubeadmin-password'];
    for (const file of [...files, '_state/alpha.1.json', '_state/alpha.made.json']) {
      expect([file, (await stat(world.at('config-isos', file))).mode & 0o777]).toEqual([
        file,
        0o600,
      ]);
    }
  });

  it('keeps the list of all ISOs when a mistyped table names no site', async () => {
    world.write({
      'good.csv': 'name,ip\nalpha,192.0.2.5\n',
      'bad.csv': 'nam,ip\nalpha,192.0.2.5\n',
      ...Object.fromEntries(
        Object.entries(siteTree('alpha')).map(([file, text]) => [`template/${file}`, text]),
      ),
    });
    await world.run('config-iso', 'build', 'good.csv', '--template', 'template', '--out', 'out');
    const before = await readFile(world.at('out/sites.json'), 'utf8').catch(() => undefined);
    const bad = await world.run(
      ...['config-iso', 'build', 'bad.csv', '--template', 'template', '--out', 'out'],
    );
    expect(bad.exitCode).toBe(3);
    const after = await readFile(world.at('out/sites.json'), 'utf8').catch(() => undefined);
    expect([before === undefined, after]).toEqual([false, before]);
  });

  it('reads sites from a folder, an archive, or a table with a template', async () => {
    const members = membersOf({ ...ALPHA, ...BETA });
    world.write(inFolder('sites', ALPHA, BETA));
    await writeFile(world.at('sites.zip'), packZip(members));
    await writeFile(world.at('sites.tar.gz'), await packTarGz(members));
    const rows = [1, 2].map((number) => {
      const { ip, mac } = addressOf(number);
      return `${number === 1 ? 'alpha' : 'beta'},${ip},${mac}`;
    });
    world.write({
      'sites.csv': ['name,ip,mac', ...rows, ''].join('\n'),
      'template/install-config.yaml': installConfig('{{ name }}'),
      'template/image-based-config.yaml': imageBasedConfig('{{ name }}', {
        ip: '{{ ip }}',
        mac: '{{ mac }}',
      }),
    });
    for (const sites of ['sites', 'sites.zip', 'sites.tar.gz']) {
      const report = await build({ sites, out: `out-${sites}` });
      expect([sites, report.failed, namesOf(report)]).toEqual([sites, [], ['alpha', 'beta']]);
    }
    const report = await build({ sites: 'sites.csv', template: 'template' });
    expect([report.failed, namesOf(report)]).toEqual([[], ['alpha', 'beta']]);
    const { manifest } = await readConfigIso(world.at('out/beta.iso'));
    expect(manifest).toMatchObject({ cluster_name: 'beta', hostname: 'beta' });
  });

  it('changes no input', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    expect(await readdir(world.at('sites'), { recursive: true })).toHaveLength(5);
    const text = await readFile(world.at('sites/alpha/install-config.yaml'), 'utf8');
    expect(text).toBe(ALPHA['alpha/install-config.yaml']);
  });
});

describe('a bad site', () => {
  it('is reported with file and line and stops no other; the exit code is 3', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    const { exitCode, stdout, stderr } = await world.run('config-iso', 'build', 'sites');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(
      /^sites\/gamma\/install-config\.yaml:14:1: unknownField: unknown field/m,
    );
    expect(stderr).toContain('1 of 2 sites were not built [config-iso.sites]');
    expect(stdout).toContain('1 of 2 configuration ISOs');
    const { sites, failed } = await world.readListing('config-isos');
    expect(sites.map(({ name }) => name)).toEqual(['alpha']);
    expect(failed).toMatchObject([
      {
        name: 'gamma',
        findings: [{ severity: 'error', file: 'sites/gamma/install-config.yaml', line: 14 }],
      },
    ]);
  });

  it('is the only one made when it is fixed and the command runs again', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    const before = await build();
    world.write(inFolder('sites', siteTree('gamma', { number: 3 })));
    const after = await build();
    expect([before.made, before.reused, before.failed.length]).toEqual([1, 0, 1]);
    expect([after.made, after.reused, after.failed.length]).toEqual([1, 1, 0]);
    expect(digestsOf(after)).toContain(digestsOf(before)[0]);
  });

  it('keeps the ISO of an earlier run, which is reported as old', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    world.write({ 'sites/alpha/image-based-config.yaml': 'hostname: [1\n' });
    const { failed } = await build();
    expect(failed[0]?.findings.map(({ problem }) => problem).at(-1)).toContain(
      'from an earlier run',
    );
    expect((await stat(world.at('out/alpha.iso'))).size).toBeGreaterThan(0);
  });

  it('is reported with its row if it is a row of a table', async () => {
    world.write({
      'sites.csv':
        'name,ip,mac\nalpha,192.168.0.1,52:54:00:00:00:01\nBETA,192.168.0.2,52:54:00:00:00:02\n',
      'template/install-config.yaml': installConfig('{{ name }}'),
      'template/image-based-config.yaml': imageBasedConfig('{{ name }}', {
        ip: '{{ ip }}',
        mac: '{{ mac }}',
      }),
    });
    const report = await build({ sites: 'sites.csv', template: 'template' });
    expect(namesOf(report)).toEqual(['alpha']);
    expect(report.failed).toMatchObject([
      { name: 'BETA', findings: [{ file: 'sites.csv', line: 3, severity: 'error' }] },
    ]);
  });

  it('is not built if nmstate refuses it, and nmstate sees every network configuration', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const seen: string[] = [];
    const report = await build({
      nmstate: {
        makeProfiles: (networkConfig) => {
          seen.push(networkConfig);
          return Promise.resolve(
            networkConfig.includes('192.168.0.2')
              ? { problem: 'no such thing' }
              : { profiles: profilesOf({ networkConfig, interfaces: [] }) },
          );
        },
      },
    });
    expect(seen).toHaveLength(2);
    expect(namesOf(report)).toEqual(['alpha']);
    expect(report.failed).toMatchObject([
      { name: 'beta', findings: [{ path: 'networkConfig', problem: 'no such thing' }] },
    ]);
  });
});

describe('sites that collide', () => {
  it('are all refused, each with the other, and the rest is built', async () => {
    const twin = siteTree('twin', { number: 1, clusterName: 'alpha' });
    world.write(inFolder('sites', ALPHA, BETA, twin));
    const report = await build();
    expect(namesOf(report)).toEqual(['beta']);
    expect(report.failed.map(({ name }) => name)).toEqual(['alpha', 'twin']);
    const [alpha] = report.failed;
    expect(alpha?.findings.map(({ problem }) => problem).join('\n')).toMatch(
      /alpha\.edge\.example of alpha is also used by twin [^]*192\.168\.0\.1 of alpha/,
    );
  });
});

describe('the output directory', () => {
  it('is used by one build at a time', async () => {
    world.write(inFolder('sites', ALPHA));
    const results = await Promise.allSettled([build(), build()]);
    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { code: 'output.locked' } }]);
  });

  it('is cleared of the temporary files of a killed build', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    const left = ['alpha.iso', 'sites.json', 'alpha/auth/kubeconfig', '_state/alpha.1.json'];
    const { pid } = spawnSync('true');
    const suffix = `${pid}-1-0123456789ab.tmp`; // as a process that is gone calls it
    for (const name of left) await writeFile(world.at('out', `${name}.${suffix}`), 'secret');
    await writeFile(world.at('out/mine.0123456789ab.tmp'), 'of someone else');
    await rm(world.at('out/alpha.iso'));
    await build();
    const names = await readdir(world.at('out'), { recursive: true });
    expect(names.filter((name) => name.endsWith('.tmp'))).toEqual(['mine.0123456789ab.tmp']);
  });

  it('may have something in the way of one site without stopping the others', async () => {
    world.write({ ...inFolder('sites', ALPHA, BETA), 'out/alpha': 'a file' });
    const report = await build();
    expect(namesOf(report)).toEqual(['beta']);
    expect(report.failed[0]?.findings[0]?.problem).toContain('[output.not-a-file]');
  });

  it('ends the build with what is in the way if it is a file', async () => {
    world.write({ ...inFolder('sites', ALPHA), 'out': 'a file', 'two/sites.json/x': '' });
    for (const out of ['out', 'two']) {
      const { exitCode, stderr } = await world.run('config-iso', 'build', 'sites', '--out', out);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.not-a-file]')]);
    }
  });

  it('is refused among the sites, because the next run would take it for a site', async () => {
    world.write(inFolder('sites', ALPHA));
    for (const out of ['sites', 'sites/out', 'sites/alpha/x']) {
      const { exitCode, stderr } = await world.run('config-iso', 'build', 'sites', '--out', out);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.out-inside')]);
    }
  });
});

describe('a source without sites', () => {
  it.each([
    ['an empty folder', 'config-iso.no-sites', () => mkdir(world.at('sites'))],
    ['a folder that does not exist', 'sites.unreadable', () => Promise.resolve()],
  ])('is reported if it is %s', async (_what, code, prepare) => {
    await prepare();
    const { exitCode, stderr } = await world.run('config-iso', 'build', 'sites');
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining(`[${code}]`)]);
  });
});

describe('OPENSHIFT_INSTALL_INVOKER, which programs set that run openshift-install,', () => {
  it('makes an unknown key of install-config.yaml a warning', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    const args = ['config-iso', 'validate', 'sites'];
    expect((await world.run(...args)).exitCode).toBe(3);
    const invoked = await world.runIn({ OPENSHIFT_INSTALL_INVOKER: 'operator' }, ...args);
    expect(invoked).toMatchObject({ exitCode: 0, stdout: '2 sites are valid\n' });
    expect(invoked.stderr).toMatch(
      /gamma\/install-config\.yaml:\d+:\d+: .*warning: .*unknownField/,
    );
  });

  it('changes nothing if it is empty', async () => {
    world.write(inFolder('sites', BAD));
    const { exitCode } = await world.runIn(
      { OPENSHIFT_INSTALL_INVOKER: '' },
      ...['config-iso', 'validate', 'sites'],
    );
    expect(exitCode).toBe(3);
  });
});
