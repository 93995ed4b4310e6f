import { chownSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { isRoot, NOBODY } from '../support/as-user.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = requireTool('genisoimage') && requireTool('isohybrid');

let world: LiveWorld;
beforeAll(async () => {
  if (!hasTools) return;
  world = await createLiveWorld();
  await world.writeConfig();
}, 60_000);
afterAll(async () => {
  if (hasTools) await world.close();
});

describe.skipIf(!hasTools)('a work directory that is removed during a build', () => {
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
    'ends the build at "%s", without "%s" in it, as an error of the disk with a hint',
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

describe.skipIf(!hasTools || !isRoot)('empty files of another user', () => {
  it.each(['.report.json', '.lock', '.sha256', ''])(
    'in the place of x.iso%s are not replaced without --force',
    async (ending) => {
      const path = join(world.directory, `x.iso${ending}`);
      writeFileSync(path, '');
      const before = await world.run('build', '--plan', 'none.json', '--output', 'x.iso');
      expect(before.stderr).not.toContain('[output.exists]');
      chownSync(path, NOBODY, NOBODY);
      const { exitCode, stderr } = await world.run('build', '--output', 'x.iso');
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
      expect(stderr).toContain(`an empty file of user ${NOBODY}`);
      expect(statSync(path)).toMatchObject({ uid: NOBODY, size: 0 });
      rmSync(path);
    },
  );
});

describe.skipIf(!hasTools)('a build with a umask that denies all access', () => {
  it('makes files and directories that their owner can read and write', async () => {
    const { directory } = world;
    const options = ['--work-dir', 'masked', '--output', 'masked.iso'];
    const child = startSealift(['build', ...options], { cwd: directory, umask: '0777' });
    const { code, stderr } = await child.ended;
    expect(code, stderr).toBe(0);
    const made = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.startsWith('masked'),
    );
    const wrong = made.filter((name) => (statSync(join(directory, name)).mode & 0o600) !== 0o600);
    expect(wrong).toEqual([]);
    expect(made.length).toBeGreaterThan(10);
  });

  it('gives nobody else what is made, be it new, a copy, a clone or continued', async () => {
    const { directory } = world;
    const modeOf = (name: string): string =>
      (statSync(join(directory, name)).mode & 0o777).toString(8);
    const run = async (...args: readonly string[]): Promise<void> => {
      const { code, stderr } = await startSealift(args, { cwd: directory, umask: '077' }).ended;
      expect(code, stderr).toBe(0);
    };
    await run('build', '--work-dir', 'own', '--output', 'own.iso');
    await run('customize', 'own.iso', '--output', 'own-2.iso', '--ntp', '192.0.2.1');
    await run('delta', 'own.iso', 'own-2.iso', '--output', 'own.delta');
    const made = ['own.iso', 'own.iso.sha256', 'own.iso.report.json', 'own-2.iso', 'own.delta'];
    expect(made.map(modeOf)).toEqual(made.map(() => '600'));
  });
});
