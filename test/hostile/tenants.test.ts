import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import {
  createLargeInfraEnvs,
  orderImage,
  probeDuring,
  sendEndlessBodies,
  stallDownloads,
  startVictim,
  type Statuses,
  type Victim,
} from './tenants.ts';

/*
 * The short form: fewer of everything, and no bound on times, which depend on the machine. The long form with the figures is
 * `npm run test:tenants`.
 */

const MEMORY_BOUND_MIB = 250;

type Attack = (victim: Victim, image: string) => Promise<Statuses>;

const ATTACKS: readonly (readonly [string, Attack])[] = [
  ['with bodies that never end', (victim) => sendEndlessBodies(victim, { most: 350, seconds: 3 })],
  [
    'with downloads that it does not take',
    (victim, image) => stallDownloads(victim, image, { most: 350, seconds: 3 }),
  ],
  ['with large InfraEnvs', (victim) => createLargeInfraEnvs(victim, 300)],
];

describe('a client that takes too much', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
  });
  afterAll(() => world.close());

  // Each attack is on a service of its own, whose memory is judged: what an earlier one left is not its.
  it.each(ATTACKS)('%s is refused with 429, while others are answered', async (name, attack) => {
    const directory = join(world.directory, name.replaceAll(' ', '-'));
    await mkdir(directory);
    const victim = await startVictim(directory, join(world.directory, 'store'));
    try {
      const image = await orderImage(victim, '4.21.3');
      const { attacked, statuses } = await probeDuring(victim, () => attack(victim, image));
      expect(attacked[429]).toBeGreaterThan(0);
      expect(Object.keys(statuses)).toEqual(['200']);
      expect(victim.peakMiB()).toBeLessThan(MEMORY_BOUND_MIB);
    } finally {
      await victim.end('SIGTERM');
    }
  });
});
