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
  type Victim,
} from './tenants.ts';

/*
 * The short form: fewer of everything, and no bound on times, which depend on the machine. The long form with the figures is
 * `npm run test:tenants`.
 */

const MEMORY_BOUND_MIB = 250;

describe('a client that takes too much', () => {
  let world: LiveWorld;
  let victim: Victim;
  let image: string;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    victim = await startVictim(world.directory, join(world.directory, 'store'));
    image = await orderImage(victim, '4.21.3');
  });
  afterAll(async () => {
    await victim.end('SIGTERM');
    await world.close();
  });

  it.each([
    ['with bodies that never end', () => sendEndlessBodies(victim, { most: 350, seconds: 3 })],
    [
      'with downloads that it does not take',
      () => stallDownloads(victim, image, { most: 350, seconds: 3 }),
    ],
    ['with large InfraEnvs', () => createLargeInfraEnvs(victim, 300)],
  ])('%s is refused with 429, while others are answered', async (_, attack) => {
    const { attacked, statuses } = await probeDuring(victim, attack);
    expect(attacked[429]).toBeGreaterThan(0);
    expect(Object.keys(statuses)).toEqual(['200']);
    expect(await victim.peakMiB()).toBeLessThan(MEMORY_BOUND_MIB);
  });
});
