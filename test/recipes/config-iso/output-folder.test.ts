import { rm } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ALPHA, BETA, useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { inFolder, siteTree, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const LEFT = 'is of an earlier run and of no site of these inputs: it was left as it is';

it('an ISO whose site went out of the inputs stays, and is told of', async () => {
  world.write(inFolder('sites', ALPHA, BETA));
  const build = () => world.build(keys, { sites: 'sites', out: 'out' });
  expect((await build()).findings).toEqual([]);
  await rm(world.at('sites/beta'), { recursive: true });
  const { sites, failed, findings } = await build();
  expect([sites.map(({ name }) => name), failed]).toEqual([['alpha'], []]);
  expect(findings).toEqual([{ severity: 'warning', file: 'beta.iso', problem: LEFT }]);
  await rm(world.at('out/beta.iso'));
  expect((await build()).findings).toEqual([]);
});

it('output never comes into the template, nor into the folder of a site', async () => {
  world.write({ ...inFolder('sites', siteTree('sites', { number: 1 })), 'a.csv': 'name\na\n' });
  world.write(inFolder('one', ALPHA));
  for (const args of [
    ['a.csv', '--template', 'sites/sites', '--out', 'sites/sites/extra-manifests'],
    ['a.csv', '--template', 'sites/sites', '--out', 'sites/sites'],
    ['sites', '--out', '.'], // it would be sites/auth
    ['one/alpha', '--out', 'one'],
  ]) {
    const { exitCode, stderr } = await world.run('config-iso', 'build', ...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.out-inside]')]);
  }
});

it('an empty name is not the working directory', async () => {
  for (const args of [
    [''],
    ['sites', '--out', ''],
    ['sites', '--template', ''],
    ['sites', '--retain-from', ''],
    ['sites', '--drop-in', '--out', ''],
  ]) {
    const { exitCode, stderr } = await world.run('config-iso', 'build', ...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.empty-path]')]);
  }
});
