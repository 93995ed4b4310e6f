import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { redirectWorld } from '../support/faulty-registry.ts';
import { serveLocally } from '../support/local-http.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';

let world: LiveWorld;

beforeEach(async () => {
  world = await createLiveWorld();
});
afterEach(() => world.close());

describe('mirrors that the machine is configured with', () => {
  it('are used by plan, which names the file that they come from', async () => {
    const mirror = await serveLocally((_, response) => response.writeHead(404).end());
    const path = join(world.directory, '.config/containers/registries.conf');
    await mkdir(join(world.directory, '.config/containers'), { recursive: true });
    await redirectWorld(world, [mirror.host, world.registry.host]);
    await rename(join(world.directory, 'registries.conf'), path);
    await world.writeConfig();
    const asText = await world.run('plan');
    expect(asText.stdout).toContain(`mirrors from   ${path}\n`);
    expect(mirror.requests.some((line) => line.includes('/ocp/release/manifests/'))).toBe(true);
    const { stdout } = await world.run('plan', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ registriesConf: [path] });
  });
});
