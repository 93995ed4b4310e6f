import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import { ALPHA, BETA, useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { inFolder, manifestOf, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type More = Partial<Parameters<ConfigIsoWorld['build']>[1]>;
const build = (more: More = {}): Promise<ConfigIsosReport> =>
  world.build(keys, { sites: 'sites', out: 'out', ...more });
const problemsOf = ({
  failed,
}: ConfigIsosReport): readonly (readonly [string, string | undefined])[] =>
  failed.map(({ name, findings }) => [name, findings[0]?.problem] as const);
const FILES = ['alpha.iso', 'alpha/auth/kubeconfig', 'alpha/auth/kubeadmin-password'];
const put = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(world.at('out', file)), { recursive: true });
  await writeFile(world.at('out', file), text);
};

describe.each(FILES)('%s of config-iso build', (file) => {
  it.each([false, true])(
    'fails its site if no build made it (built before: %s)',
    async (before) => {
      world.write(inFolder('sites', ALPHA, BETA));
      if (before) await build();
      await put(file, 'mine');
      const report = await build();
      expect(report.sites.map(({ name }) => name)).toEqual(['beta']);
      const told: unknown = expect.stringMatching(
        /exists and would be overwritten.*\[output\.exists\]$/,
      );
      expect(problemsOf(report)).toEqual([['alpha', told]]);
      expect(report.failed[0]?.findings[0]?.hint).toContain('--force');
      expect(await readFile(world.at('out', file), 'utf8')).toBe('mine');
      const forced = await build({ force: true });
      expect([forced.failed, await readFile(world.at('out', file), 'utf8')]).toEqual([
        [],
        expect.not.stringMatching(/^mine$/),
      ]);
      expect(
        (await readdir(world.at('out/_state'))).filter((name) => name.includes('lost')),
      ).toEqual([]);
    },
  );

  it('replaces an empty file', async () => {
    world.write(inFolder('sites', ALPHA));
    await put(file, '');
    const { failed, made } = await build();
    expect([failed, made, (await stat(world.at('out', file))).size > 0]).toEqual([[], 1, true]);
  });

  it.each([
    ['directory', (path: string): unknown => execFileSync('mkdir', [path]), 'output.not-a-file'],
    ['pipe', (path: string): unknown => execFileSync('mkfifo', [path]), 'output.not-a-file'],
    ['link', (path: string): unknown => execFileSync('ln', ['-s', '../x', path]), 'output.link'],
  ] as const)('is refused by code if a %s has its name', async (_what, make, code) => {
    world.write(inFolder('sites', ALPHA, BETA));
    await mkdir(dirname(world.at('out', file)), { recursive: true });
    make(world.at('out', file));
    const report = await build({ force: true });
    expect(report.sites.map(({ name }) => name)).toEqual(['beta']);
    const told: unknown = expect.stringContaining(`[${code}]`);
    expect(problemsOf(report)).toEqual([['alpha', told]]);
  });

  it('is made again from changed inputs if a build made it', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await rm(world.at('out/_state/alpha.made.json'));
    world.write({ 'sites/alpha/extra-manifests/a.yaml': manifestOf('B') });
    expect((await build()).failed).toEqual([]);
    expect((await build({ rotate: true })).failed).toEqual([]);
  });
});

describe('an identity that the state does not have', () => {
  const listLost = async (): Promise<string[]> =>
    (await readdir(world.at('out/_state'))).filter((name) => name.includes('.lost-')).sort();

  it('is saved in the state before --new-identity replaces the rest of it', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    for (const number of [1, 2]) {
      await rm(world.at('out/_state/alpha.1.json'));
      await rm(world.at('out', FILES[2] ?? ''));
      const left = await Promise.all(
        FILES.slice(0, 2).map((name) => readFile(world.at('out', name))),
      );
      expect(problemsOf(await build())[0]?.[1]).toContain('[config-iso.identity-lost]');
      const { sites } = await build({ newIdentities: new Set(['alpha']) });
      const names = ['iso', 'kubeconfig'].map((kind) => `alpha.lost-${number}.${kind}`);
      const told = sites[0]?.findings.map(({ problem }) => problem).join();
      for (const [index, name] of names.entries()) {
        expect(told).toContain(`_state/${name}`);
        expect(await readFile(world.at('out/_state', name))).toEqual(left[index]);
        expect((await stat(world.at('out/_state', name))).mode & 0o777).toBe(0o600);
        expect(await readFile(world.at('out', FILES[index] ?? ''))).not.toEqual(left[index]);
      }
    }
    expect(await listLost()).toHaveLength(4);
  });

  it('is saved even if only a part of its ISO is left', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await rm(world.at('out/_state/alpha.1.json'));
    await truncate(world.at('out/alpha.iso'), 40_000);
    await build({ newIdentities: new Set(['alpha']) });
    expect(await listLost()).toEqual(
      ['iso', 'kubeconfig', 'password'].map((kind) => `alpha.lost-1.${kind}`),
    );
    expect((await stat(world.at('out/_state/alpha.lost-1.iso'))).size).toBe(40_000);
  });

  it('is replaced on an ISO of another cluster only with --force, which saves the ISO', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    await build();
    await copyFile(world.at('out/beta.iso'), world.at('out/alpha.iso'));
    expect(problemsOf(await build())).toEqual([
      ['alpha', expect.stringContaining('output.exists')],
    ]);
    expect((await build({ force: true })).failed).toEqual([]);
    expect(await listLost()).toEqual(['alpha.lost-1.iso']);
    const kept = await readFile(world.at('out/_state/alpha.lost-1.iso'));
    expect(kept).toEqual(await readFile(world.at('out/beta.iso')));
    expect((await readConfigIso(world.at('out/alpha.iso'))).manifest).toMatchObject({
      hostname: 'alpha',
    });
  });
});

describe('the folder of config-iso build', () => {
  const args = ['config-iso', 'build', 'sites', '--out', 'out'];
  it.each([
    ['sites.json', 'output.exists', () => put('sites.json', '{"mine": 1}')],
    ['_state/README', 'output.exists', () => put('_state/README', 'of something else')],
    ['_state', 'output.exists', () => put('_state/mine.txt', 'mine')],
  ] as const)(
    'is refused before anything is made if it has a foreign %s',
    async (_name, code, make) => {
      world.write(inFolder('sites', ALPHA));
      await make();
      const names = await readdir(world.at('out'), { recursive: true });
      const { exitCode, stderr } = await world.run(...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
      expect(stderr).toContain('--force');
      expect(await readdir(world.at('out'), { recursive: true })).toEqual(names);
      expect(await world.run(...args, '--force')).toMatchObject({ exitCode: 0 });
      expect((await world.readListing('out')).sites).toHaveLength(1);
    },
  );

  it.each([
    ['a file', 'output.not-a-file', () => put('_state', 'mine')],
    [
      'a link',
      'output.link',
      async () => {
        await mkdir(world.at('out'));
        await mkdir(world.at('elsewhere'));
        symlinkSync('../elsewhere', world.at('out/_state'));
      },
    ],
  ] as const)('is refused if its _state is %s', async (_what, code, make) => {
    world.write(inFolder('sites', ALPHA));
    await make();
    const { exitCode, stderr } = await world.run(...args, '--force');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
  });

  it('never replaces an input with its list, even with --force', async () => {
    world.write({ ...inFolder('sites', ALPHA), kubeconfig: 'of a cluster' });
    await mkdir(world.at('out'));
    await link(world.at('kubeconfig'), world.at('out/sites.json'));
    const { exitCode, stderr } = await world.run(
      ...[...args, '--force', '--retain-from', 'sites/alpha', '--kubeconfig', 'kubeconfig'],
    );
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.is-input]')]);
    expect(await readFile(world.at('kubeconfig'), 'utf8')).toBe('of a cluster');
  });

  it('is refused by code in /proc', async () => {
    world.write(inFolder('sites', ALPHA));
    const { exitCode, stderr } = await world.run(
      'config-iso',
      'build',
      'sites',
      '--out',
      '/proc/x',
    );
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.special-place]')]);
  });
});
