import { execFileSync } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfigIso } from '../../src/sites/config-iso.ts';
import {
  createConfigIsoWorld,
  inFolder,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';
import { mayMount } from '../support/may-mount.ts';
import { makeKeyRing, type KeyRing } from '../support/site-identity.ts';

const NUMBERS = [1, 2, 3, 4, 5, 6];

describe.skipIf(!mayMount())('a disk with room for some of the sites', () => {
  let world: ConfigIsoWorld;
  let keys: KeyRing;
  beforeAll(async () => {
    keys = await makeKeyRing();
    world = await createConfigIsoWorld();
    const trees = NUMBERS.map((number) => siteTree(`site-${number}`, { number }));
    world.write(inFolder('sites', ...trees));
    await mkdir(world.at('out'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=500k', 'none', world.at('out')]);
  }, 60_000);
  afterAll(async () => {
    execFileSync('umount', [world.at('out')]);
    await keys.close();
    await world.close();
  });

  it('ends the build as full, with only whole ISOs, and the build continues when there is more room', async () => {
    const build = () => world.build(keys, { sites: 'sites', out: 'out' });
    await expect(build()).rejects.toMatchObject({ code: 'output.full', exitCode: 7 });
    const names = await readdir(world.at('out'), { recursive: true });
    expect(names.filter((name) => name.endsWith('.tmp') || name === 'sites.json')).toEqual([]);
    const isos = names.filter((name) => name.endsWith('.iso'));
    expect(isos.length).toBeLessThan(NUMBERS.length);
    for (const iso of isos) {
      expect((await readConfigIso(world.at('out', iso))).volumeId).toBe('cluster-config');
    }
    execFileSync('mount', ['-o', 'remount,size=20m', world.at('out')]);
    const { failed, sites, reused } = await build();
    expect([failed, sites.length]).toEqual([[], NUMBERS.length]);
    expect(reused).toBe(names.filter((name) => name.endsWith('.made.json')).length);
  });

  it('ends the build before a key is made if it is read-only', async () => {
    const before = keys.handedOut();
    execFileSync('mount', ['-o', 'remount,ro', world.at('out')]);
    try {
      const request = { sites: 'sites', out: 'out' };
      await expect(world.build(keys, request)).rejects.toMatchObject({ code: 'output.unwritable' });
    } finally {
      execFileSync('mount', ['-o', 'remount,rw', world.at('out')]);
    }
    expect(keys.handedOut()).toBe(before);
  });
});
