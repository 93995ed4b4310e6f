import { readdir, stat, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import type { KeySource } from '../../src/sites/identity/keys.ts';
import type { ConfigIsosReport } from '../../src/stages/config-isos.ts';
import { readConfigIso } from '../../src/sites/config-iso.ts';
import {
  addressOf,
  createConfigIsoWorld,
  imageBasedConfig,
  installConfig,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';
import { membersOf, packZip } from '../support/site-archives.ts';
import { makeKeyRing } from '../support/site-identity.ts';

/** `npm run test:sites` makes a thousand, in five times the time. */
const COUNT = Number(process.env['SITE_COUNT'] ?? 200);
const numbersTo = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => index + 1);
const NUMBERS = numbersTo(COUNT);
const nameOf = (number: number): string => `edge-${String(number).padStart(4, '0')}`;

describe(`${COUNT} sites, made with six keys and a hash from before`, () => {
  let world: ConfigIsoWorld;
  let keys: KeySource;
  beforeAll(async () => {
    world = await createConfigIsoWorld();
    const ring = await makeKeyRing();
    const hash = await ring.hashPassword('any', new Uint8Array(16));
    keys = { ...ring, hashPassword: () => Promise.resolve(hash) };
  }, 60_000);
  afterAll(async () => {
    await keys.close();
    await world.close();
  });

  async function expectAll(
    { sites, failed, made }: ConfigIsosReport,
    out: string,
    count = COUNT,
  ): Promise<void> {
    expect([failed, sites.length, made]).toEqual([[], count, count]);
    expect(new Set(sites.map(({ clusterId }) => clusterId)).size).toBe(count);
    const isos = (await readdir(world.at(out))).filter((name) => name.endsWith('.iso'));
    expect(isos.sort()).toEqual(numbersTo(count).map((number) => `${nameOf(number)}.iso`));
    const last = sites.at(-1);
    const path = world.at(out, last?.iso ?? '');
    expect(await digestFile(path)).toBe(`sha256:${last?.sha256 ?? ''}`);
    const { manifest } = await readConfigIso(path);
    expect(manifest).toMatchObject({ cluster_name: nameOf(count), hostname: nameOf(count) });
  }

  it('are built from a table and a template', async () => {
    const rows = NUMBERS.map((number) => {
      const { ip, mac } = addressOf(number);
      return `${nameOf(number)},${ip},${mac}`;
    });
    world.write({
      'sites.csv': ['name,ip,mac', ...rows, ''].join('\n'),
      'template/install-config.yaml': installConfig('{{ name }}'),
      'template/image-based-config.yaml': imageBasedConfig('{{ name }}', {
        ip: '{{ ip }}',
        mac: '{{ mac }}',
      }),
    });
    const request = { sites: 'sites.csv', template: 'template', out: 'from-table' };
    await expectAll(await world.build(keys, request), 'from-table');
    const again = await world.build(keys, request);
    expect([again.made, again.reused]).toEqual([0, COUNT]);
  }, 120_000);

  it('are built from a zip of site folders, for a quarter of them', async () => {
    const count = COUNT / 4;
    const members = numbersTo(count).flatMap((number) =>
      membersOf(siteTree(nameOf(number), { number }), 'sites/'),
    );
    await writeFile(world.at('sites.zip'), packZip(members));
    const report = await world.build(keys, { sites: 'sites.zip', out: 'from-zip' });
    await expectAll(report, 'from-zip', count);
    expect((await stat(world.at('from-zip/sites.json'))).mode & 0o777).toBe(0o644);
  }, 120_000);

  it('leave all others good if two have the same address', async () => {
    const rows = NUMBERS.map((number) => {
      const { ip, mac } = addressOf(number === COUNT ? 1 : number);
      return `${nameOf(number)},${ip},${mac}`;
    });
    world.write({ 'sites.csv': ['name,ip,mac', ...rows, ''].join('\n') });
    const args = ['sites.csv', '--template', 'template', '-o', 'json'];
    const { exitCode, stdout } = await world.run('config-iso', 'validate', ...args);
    const { good, failed } = JSON.parse(stdout) as { good: number; failed: readonly string[] };
    expect([exitCode, good, failed]).toEqual([3, COUNT - 2, [nameOf(1), nameOf(COUNT)]]);
  }, 60_000);
});
