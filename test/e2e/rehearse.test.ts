import { copyFile, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openIso } from '../../src/iso/index.ts';
import type { Rehearsal } from '../../src/media/rehearse/rehearse.ts';
import { addCatalog, makeOperator } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';

/*
 * A whole medium is played without a complaint, and a broken one with the reason. The judges compare the pulls with
 * a foreign program.
 */

let world: LiveWorld;
let iso = '';

beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  expect(await world.run('build', 'live-iso', '--output', 'live.iso')).toMatchObject({
    exitCode: 0,
  });
  iso = join(world.directory, 'live.iso');
}, 60_000);
afterAll(() => world.close());

async function play(path: string): Promise<{ exitCode: number; value: Rehearsal }> {
  const { exitCode, stdout } = await world.run('rehearse', path, '-o', 'json');
  return { exitCode, value: JSON.parse(stdout) as Rehearsal };
}

const failing = ({ steps }: Rehearsal): string[] =>
  steps
    .filter(({ outcome }) => outcome === 'will-not')
    .map(({ name, reason }) => `${name}: ${reason ?? ''}`);

/** Writes bytes over those at an offset of a copy. */
async function breakCopy(name: string, offset: number, bytes: Uint8Array): Promise<string> {
  const path = join(world.directory, name);
  await copyFile(iso, path);
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, offset);
  await file.close();
  return path;
}

/** The place of a file of the medium. */
async function locate(
  wanted: (path: string) => boolean,
): Promise<{ path: string; offset: number; size: number }> {
  const image = await openIso(iso);
  try {
    for await (const { path, node } of image.walk()) {
      const [extent] = node.kind === 'file' ? node.extents : [];
      if (extent && wanted(path)) return { path, ...extent };
    }
    throw new Error('the medium has no such file');
  } finally {
    await image.close();
  }
}

describe('a rehearsal', () => {
  it('of a whole medium finds nothing that fails', async () => {
    const { exitCode, value } = await play(iso);
    expect(failing(value)).toEqual([]);
    expect({ exitCode, ok: value.ok }).toEqual({ exitCode: 0, ok: true });
    expect(new Set(value.steps.map(({ part }) => part))).toContain('pulls');
    expect(value.steps.find(({ name }) => name.includes('programs'))).toMatchObject({
      outcome: 'will',
      reason: 'it is the image that the build chose',
    });
    expect(value.needs.map(({ host }) => host)).toContain('control plane');
    expect(value.reading?.most).toBeGreaterThan(value.reading?.least ?? 0);
  });

  it('ends each build, and can fail it', async () => {
    const { exitCode, stdout } = await world.run('build', '--output', 'live.iso', '--rehearse');
    expect(stdout).toMatch(
      /^ {2}rehearsal \d+ steps will happen, 0 will not, \d+ cannot be known$/m,
    );
    expect(exitCode).toBe(0);
  });

  it('is printed for people and as a table', async () => {
    const { stdout } = await world.run('rehearse', iso);
    expect(stdout).toContain('  will      systemd starts the registry\n');
    expect(stdout).toMatch(/steps will happen.*\n$/);
    const { stdout: table } = await world.run('rehearse', iso, '-o', 'markdown');
    expect(table).toContain('| registry | `systemd starts the registry` | will |  |  |\n');
  });

  it('holds the needs against a site', async () => {
    const install = ['controlPlane: {replicas: 1}', 'compute: [{replicas: 0}]'].join('\n');
    await writeFile(join(world.directory, 'install-config.yaml'), install);
    const { exitCode, stdout } = await world.run('rehearse', iso, '--site', 'install-config.yaml');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/ {2}unknown {3}the disk of each single node has \d+ GB\n/);
    expect(stdout).toMatch(/each host needs .*\n {2}single node \(1\) .*\n\n/);
  });

  it('of a medium with another volume says that the live system does not find it', async () => {
    const path = await breakCopy(
      'volume.iso',
      16 * 2048 + 40,
      Buffer.from('another-volume'.padEnd(32)),
    );
    const { exitCode, value } = await play(path);
    expect(exitCode).toBe(8);
    expect(failing(value).join('\n')).toContain('the kernel gets coreos.liveiso=');
  });

  it('of a medium with a kernel that nobody recognizes does not know on which hosts it runs', async () => {
    const kernel = await locate((path) => path === '/images/pxeboot/vmlinuz');
    const path = await breakCopy('unknown.iso', kernel.offset, Buffer.alloc(0x210));
    const { exitCode, value } = await play(path);
    expect(exitCode).toBe(0);
    expect(value.steps.find(({ name }) => name === 'the kernel runs on the hosts')).toMatchObject({
      outcome: 'unknown',
      place: '/images/pxeboot/vmlinuz',
    });
  });

  it('of a medium whose menu leaves out the config says so', async () => {
    const menu = await locate((path) => path.endsWith('/grub.cfg'));
    const image = await openIso(iso);
    const text = Buffer.from(await image.readBytes(menu.offset, menu.size)).toString('latin1');
    await image.close();
    const without = text.replace('/images/ignition.img', ' '.repeat(20));
    const broken = await breakCopy('menu.iso', menu.offset, Buffer.from(without, 'latin1'));
    expect(failing((await play(broken)).value)).toEqual([
      expect.stringMatching(/does not load \/images\/ignition\.img$/),
    ]);
  });

  it('of a medium with another image of the registry does not know what is in it', async () => {
    const manifest = await locate((path) => path === '/registry/images/registry/manifest.json');
    const image = await openIso(iso);
    const text = (await image.readBytes(manifest.offset, manifest.size)).toString('latin1');
    await image.close();
    const members = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const other = JSON.stringify(Object.fromEntries(members.toReversed()));
    expect([other.length, other === text]).toEqual([text.length, false]);
    const { value } = await play(await breakCopy('image.iso', manifest.offset, Buffer.from(other)));
    expect(value.steps.find(({ name }) => name.includes('programs'))?.outcome).toBe('unknown');
  });

  it('of a medium without the link of a manifest says which image nodes do not get', async () => {
    const link = await locate((path) =>
      /_manifests\/revisions\/sha256\/[0-9a-f]{64}\/link$/.test(path),
    );
    const path = await breakCopy('link.iso', link.offset, Buffer.alloc(link.size));
    const { exitCode, value } = await play(path);
    expect(exitCode).toBe(8);
    expect(failing(value).join('\n')).toMatch(/nodes pull .*sha256:[0-9a-f]{64}/);
  });

  it('of a medium with a kernel of no bytes in its menu says which file is missing', async () => {
    const menu = await locate((path) => path.endsWith('/grub.cfg'));
    const image = await openIso(iso);
    const text = await image.readBytes(menu.offset, menu.size);
    await image.close();
    const broken = Buffer.from(
      text.toString('latin1').replaceAll('pxeboot/vmlinuz', 'pxeboot/vmlinuX'),
      'latin1',
    );
    const { value } = await play(await breakCopy('kernel.iso', menu.offset, broken));
    expect(failing(value).join('\n')).toContain('/images/pxeboot/vmlinuX is not on the medium');
  });
});

describe('a rehearsal of operators', () => {
  const lifecycle = (name: string, version: string, releases: readonly string[]) => ({
    schema: 'io.openshift.operators.lifecycles.v1alpha1',
    package: name,
    versions: [
      {
        name: version,
        phases: [{ name: 'Full support', startDate: '2026-01-01', endDate: '2026-12-31' }],
        platformCompatibility: [{ name: 'openshift', versions: releases }],
      },
    ],
  });
  const rehearse = (...args: string[]) => world.run('rehearse', 'operators.iso', ...args);

  beforeAll(async () => {
    const { registry } = world;
    const at = { registry, host: registry.host };
    const channels = { stable: ['1.0.0', '1.1.0'] };
    const operators = await Promise.all(
      ['alpha', 'beta', 'gamma'].map((name) => makeOperator(at, { name, channels })),
    );
    await addCatalog(registry, 'redhat/index', {
      tag: 'v4.21',
      files: {
        'operators.json': operators.flat(),
        'lifecycles.json': [
          lifecycle('alpha', '1.1', ['4.20', '4.21']),
          lifecycle('beta', '1.1', ['4.20']),
        ],
      },
    });
    await world.writeConfig(
      'operators:',
      `  - catalog: ${registry.host}/redhat/index:v4.21`,
      '    packages: [{name: alpha}, {name: gamma}]',
    );
    const { exitCode, stderr } = await world.run('build', 'live-iso', '--output', 'operators.iso');
    expect(exitCode, stderr).toBe(0);
  }, 60_000);

  it('says how long a selected operator is supported, and of which nothing is known', async () => {
    const { exitCode, stdout } = await rehearse('--date', '2026-12-31', '-o', 'json');
    const { date, steps } = JSON.parse(stdout) as Rehearsal;
    const found = steps
      .filter(({ part }) => part === 'operators')
      .map(({ name, outcome, reason }) => ({ name, outcome, reason }));
    expect({ exitCode, date, found }).toEqual({
      exitCode: 0,
      date: '2026-12-31',
      found: [
        {
          name: 'operator alpha 1.1.0 is supported with OpenShift 4.21 on 2026-12-31',
          outcome: 'will',
          reason: 'Full support until 2026-12-31',
        },
        {
          name: 'the support with OpenShift 4.21 on 2026-12-31 of 1 operator without lifecycle metadata is known',
          outcome: 'unknown',
          reason: 'the catalogs do not have it for gamma',
        },
      ],
    });
  });

  it('on a later day says that the support ended, which is not a failure', async () => {
    const { exitCode, stdout } = await rehearse('--date', '2027-01-01');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('            its support ended on 2026-12-31\n');
  });

  it('is of today without --date, and refuses a day that no calendar has', async () => {
    const before = new Date().toISOString().slice(0, 10);
    const { stdout } = await rehearse('-o', 'json');
    const after = new Date().toISOString().slice(0, 10);
    expect([before, after]).toContain((JSON.parse(stdout) as Rehearsal).date);
    const { exitCode, stderr } = await rehearse('--date', '2026-02-30');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('usage.date');
  });

  it('fails for an operator that its maker did not make for the release', async () => {
    await world.writeConfig(
      'operators:',
      `  - catalog: ${world.registry.host}/redhat/index:v4.21`,
      '    packages: [{name: beta}]',
    );
    const built = await world.run('build', 'live-iso', '--output', 'operators.iso', '--force');
    expect(built.exitCode, built.stderr).toBe(0);
    const { exitCode, value } = await play('operators.iso');
    expect({ exitCode, failing: failing(value) }).toEqual({
      exitCode: 8,
      failing: [
        expect.stringMatching(
          /^operator beta 1\.1\.0 is supported .*: its maker names OpenShift 4\.20, and no channel leads further$/,
        ),
      ],
    });
  });
});
