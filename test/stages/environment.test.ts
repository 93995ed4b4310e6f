import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('a setting of Node that is ignored', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    world.env['NODE_OPTIONS'] = '--tls-min-v1.0';
  });
  afterAll(() => world.close());

  it('is named in the plan, in the report that is printed and in the one beside the ISO', async () => {
    const said = { environment: [expect.stringMatching(/^--tls-min-v1\.0 of NODE_OPTIONS/)] };
    const plan = await world.run('plan', '-o', 'json');
    expect(JSON.parse(plan.stdout)).toMatchObject(said);
    const built = await world.run('build', '--output', 'x.iso', '-o', 'json');
    expect(JSON.parse(built.stdout)).toMatchObject(said);
    const report = await readFile(join(world.directory, 'x.iso.report.json'), 'utf8');
    expect(JSON.parse(report)).toMatchObject(said);
  });
});
