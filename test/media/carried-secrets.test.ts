import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].every(requireTool);

describe.skipIf(!hasTools)('an ISO that carries secrets', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', '--output', 'open.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    const path = join(world.directory, 'appliance-config.yaml');
    await writeFile(path, `${await readFile(path, 'utf8')}userCorePass: correct-horse\n`);
  });
  afterAll(() => world.close());

  /** No server listens there. */
  const ELSEWHERE = 'oci://127.0.0.1:1/media/x:1';
  const refused = [2, expect.stringContaining('[usage.allow-secrets]')];

  it('is not built straight into a registry or an object store', async () => {
    for (const output of [ELSEWHERE, 's3://bucket/x.iso']) {
      const { exitCode, stderr } = await world.run('build', '--output', output);
      expect([exitCode, stderr]).toEqual(refused);
    }
  });

  it('is not pushed, before it is read', async () => {
    const built = await world.run('build', '--output', 'secret.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    const { exitCode, stderr } = await world.run('push', 'secret.iso', ELSEWHERE);
    expect([exitCode, stderr]).toEqual(refused);
    expect(stderr).toContain('a password');
    const options = ['--allow-secrets', '--retry-for', '0s'];
    expect((await world.run('push', 'secret.iso', ELSEWHERE, ...options)).exitCode).toBe(4);
  });

  it('is known by the values of a site, too', async () => {
    const push = async () => {
      const { exitCode, stderr } = await world.run(
        'push',
        'open.iso',
        ELSEWHERE,
        '--retry-for',
        '0s',
      );
      return [exitCode, stderr];
    };
    expect((await push())[0]).toBe(4);
    await writeFile(join(world.directory, 'pull.json'), '{"auths":{"a.example":{"auth":"dTpw"}}}');
    const changed = await world.run(
      'customize',
      'open.iso',
      '--pull-secret',
      'file:pull.json',
      '--in-place',
    );
    expect(changed.exitCode, changed.stderr).toBe(0);
    expect(await push()).toEqual(refused);
  });
});
