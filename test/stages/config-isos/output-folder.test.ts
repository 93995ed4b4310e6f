import { rm } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { ALPHA, BETA, useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { inFolder, siteTree, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const LEFT = 'is from an earlier run and belongs to no site of these inputs: it was left unchanged';

it('an ISO whose site is no longer among the inputs stays, and is reported', async () => {
  world.write(inFolder('sites', ALPHA, BETA));
  const build = () => world.build(keys, { sites: 'sites', out: 'out' });
  expect((await build()).findings).toEqual([]);
  await rm(world.at('sites/beta'), { recursive: true });
  const { sites, failed, findings } = await build();
  expect([sites.map(({ name }) => name), failed]).toEqual([['alpha'], []]);
  expect(findings).toEqual([
    { severity: 'warning', code: 'sites.output', file: 'beta.iso', problem: LEFT },
  ]);
  await rm(world.at('out/beta.iso'));
  expect((await build()).findings).toEqual([]);
});

it('output is never written into the template or the folder of a site', async () => {
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

it('an empty path does not mean the working directory', async () => {
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

it('keys are reused when their certificates have expired, and that is reported', async () => {
  world.write(inFolder('sites', ALPHA));
  const first = await world.build(keys, { sites: 'sites', out: 'out', epoch: 1_700_000_000 });
  const epoch = 1_700_000_000 + 730 * 86_400;
  const { sites, reused } = await world.build(keys, { sites: 'sites', out: 'out', epoch });
  expect([reused, sites[0]?.sha256]).toEqual([1, first.sites[0]?.sha256]);
  expect(sites[0]?.findings).toContainEqual(
    expect.objectContaining({
      severity: 'warning',
      file: 'alpha.iso',
      problem: 'has a certificate that expired at 2025-11-13T22:13:20.000Z',
    }),
  );
  expect(first.sites[0]?.findings.map(({ file }) => file)).not.toContain('alpha.iso');
});

it.each([
  ['0', '1970-01-01: new certificates would already be expired'],
  ['4102444800', '2100-01-01: new certificates would not be valid before then'],
])('a time that is useless for certificates causes a warning: %s', async (epoch, message) => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const exitCode = await runProgram(['config-iso', 'build', 'nothing'], {
    stdout,
    stderr,
    cwd: world.directory,
    redaction: createRedaction(),
    isTTY: false,
    now: () => 1_800_000_000_000,
    env: { SOURCE_DATE_EPOCH: epoch },
    signal: new AbortController().signal,
  });
  const told = expect.stringContaining(`SOURCE_DATE_EPOCH is ${message}`) as unknown;
  expect([exitCode, await text(stderr.end())]).toEqual([3, told]);
});
