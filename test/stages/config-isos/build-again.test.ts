import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import {
  ALPHA,
  BAD,
  BETA,
  digestsOf,
  useConfigIsoWorld,
} from '../../support/config-iso-fixture.ts';
import {
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const build = (more: Partial<Parameters<ConfigIsoWorld['build']>[1]> = {}) =>
  world.build(keys, { sites: 'sites', out: 'out', ...more });
const idsOf = ({ sites }: ConfigIsosReport): string[] =>
  sites.map(({ clusterId, infraId }) => `${clusterId} ${infraId}`);

describe('a build that runs again', () => {
  it('makes nothing again, regardless of the time', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    const list = await readFile(world.at('out/sites.json'));
    const second = await build({ epoch: 1_800_000_000 });
    expect([second.made, second.reused]).toEqual([0, 2]);
    expect(digestsOf(second)).toEqual(digestsOf(first));
    expect(await readFile(world.at('out/sites.json'))).toEqual(list);
  });

  it.each(['alpha.iso', 'alpha/auth/kubeconfig', 'alpha/auth/kubeadmin-password'])(
    'makes the same bytes from the same state if %s was lost',
    async (file) => {
      world.write(inFolder('sites', ALPHA, BETA));
      const first = await build();
      const before = await readFile(world.at('out', file));
      await rm(world.at('out', file));
      const second = await build({ epoch: 1_800_000_000 });
      expect([second.made, second.reused]).toEqual([1, 1]);
      expect(digestsOf(second)).toEqual(digestsOf(first));
      expect(await readFile(world.at('out', file))).toEqual(before);
    },
  );

  it('changes nothing if only its record was lost', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    await rm(world.at('out/_state/alpha.made.json'));
    const second = await build({ epoch: 1_800_000_000 });
    expect([second.made, second.reused, digestsOf(second)]).toEqual([0, 2, digestsOf(first)]);
  });

  it('has the same keys and bytes when another version of the program runs', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    const record = await readFile(world.at('out/_state/alpha.made.json'), 'utf8');
    const second = await build({ program: digestOf('newer'), epoch: 1_800_000_000 });
    expect([second.made, second.reused, digestsOf(second)]).toEqual([0, 2, digestsOf(first)]);
    expect(idsOf(second)).toEqual(idsOf(first));
    expect(await readFile(world.at('out/_state/alpha.made.json'), 'utf8')).not.toBe(record);
    expect(await readdir(world.at('out/_state'))).not.toContain('alpha.2.json');
  });

  it('makes a damaged ISO again with --force', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    await writeFile(world.at('out/alpha.iso'), 'cut short');
    expect((await build()).failed.map(({ name }) => name)).toEqual(['alpha']);
    expect(digestsOf(await build({ force: true }))).toEqual(digestsOf(first));
    expect((await readConfigIso(world.at('out/alpha.iso'))).volumeId).toBe('cluster-config');
  });

  it('keeps keys and ids when a manifest changes, and makes new ones for another cluster', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    world.write({ 'sites/alpha/extra-manifests/a.yaml': manifestOf('B') });
    const second = await build();
    expect(idsOf(second)).toEqual(idsOf(first));
    expect(digestsOf(second)).not.toEqual(digestsOf(first));
    world.write(inFolder('sites', siteTree('alpha', { number: 1, clusterName: 'other' })));
    expect(idsOf(await build())).not.toEqual(idsOf(first));
  });

  it('makes the same bytes in two folders from the same state', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    await mkdir(world.at('other/_state'), { recursive: true });
    const state = await readFile(world.at('out/_state/alpha.1.json'));
    await writeFile(world.at('other/_state/alpha.1.json'), state);
    expect(digestsOf(await build({ out: 'other' }))).toEqual(digestsOf(first));
  });
});

describe('--rotate', () => {
  it('makes new keys, ids and passwords for every site', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    const second = await build({ rotate: true });
    expect([second.made, second.reused]).toEqual([2, 0]);
    for (const [index, id] of idsOf(second).entries()) expect(id).not.toBe(idsOf(first)[index]);
    expect(digestsOf(await build())).toEqual(digestsOf(second));
  });

  it('continues with the sites that it did not reach', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    await build();
    const half = await build({ rotate: true });
    world.write(inFolder('sites', siteTree('gamma', { number: 3 })));
    const whole = await build({ rotate: true });
    expect([whole.made, whole.reused]).toEqual([1, 1]);
    expect(idsOf(whole)).toContain(idsOf(half)[0]);
    expect((await build({ rotate: true })).made).toBe(2);
  });

  it('is over after a build without it, even if it was interrupted', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    await build({ rotate: true });
    await build();
    expect((await build({ rotate: true })).made).toBe(1);
  });
});
