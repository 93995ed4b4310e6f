import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = requireTool('genisoimage') && requireTool('isohybrid');

describe.skipIf(!hasTools)('a work directory that is removed during a build', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
  }, 60_000);
  afterAll(() => world.close());

  /** Builds, and removes `lost` as soon as the stage begins. */
  async function build(stage: string, lost: string) {
    const host = world.host();
    let stderr = '';
    host.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      if (!stderr.includes(`"stage-started","stage":"${stage}"`)) return;
      rmSync(join(world.directory, 'work', lost), { recursive: true, force: true });
    });
    const options = ['--work-dir', 'work', '--output', 'lost.iso', '--force'];
    const exitCode = await runProgram(['build', ...options, '--log-format', 'json'], host);
    rmSync(join(world.directory, 'work'), { recursive: true, force: true });
    return { exitCode, last: stderr.trim().split('\n').at(-1) ?? '' };
  }

  it.each([
    ['resolve release', ''],
    ['resolve release', 'cache'],
    ['plan mirror', ''],
    ['fetch base ISO', ''],
    ['scan base ISO', ''],
    ['pour ISO', ''],
  ])(
    'ends it at "%s", without "%s" in it, as an error of the disk with a hint',
    async (stage, lost) => {
      const { exitCode, last } = await build(stage, lost);
      expect(exitCode, last).toBe(7);
      expect(JSON.parse(last)).toMatchObject({
        code: 'work-dir.lost',
        message: expect.stringContaining(join(world.directory, 'work')) as string,
        hint: expect.stringContaining('run the same command again') as string,
      });
      expect(last).not.toContain('"stack"');
    },
  );
});
