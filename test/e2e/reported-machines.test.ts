import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDemoWorld, type DemoWorld } from '../../demo/world.ts';
import { runProcess } from '../../src/base/process.ts';

/* Cases that people reported about machines as they are; each script ends with 0 if the program is right. */

const REPORTED = resolve('../shared/data/reported');
const START = fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url));
const SEALIFT = `${process.execPath} ${START}`;
const mayUnshare = spawnSync('unshare', ['-m', 'true']).status === 0;

describe.skipIf(!existsSync(REPORTED))('a case that was reported is right', () => {
  let directory: string;
  let world: DemoWorld;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'reported-'));
    world = await startDemoWorld(directory);
  }, 60_000);
  afterAll(async () => {
    await world.close();
    await rm(directory, { recursive: true });
  });

  const run = (name: string, env: Readonly<Record<string, string>>) =>
    runProcess('sh', [join(REPORTED, name, 'run.sh')], {
      env: {
        ...Object.fromEntries(
          Object.entries(process.env).map(([key, value]) => [key, value ?? '']),
        ),
        ...env,
        SEALIFT,
      },
    });

  test.each([
    'media-07-time-out-of-range',
    'media-09-proxy-percent',
    'media-10-ca-bundle',
    'media-15-tls-switched-off-by-environment',
  ])(
    '%s',
    async (name) => {
      expect((await run(name, {})).stdout).not.toContain('WRONG');
    },
    120_000,
  );

  test.each(['media-08-umask', ...(mayUnshare ? ['media-14-noexec'] : [])])(
    '%s',
    async (name) => {
      const secret = { DEMO_SECRET: join(directory, 'pull-secret.json') };
      expect((await run(name, { ...world.env, ...secret })).stdout).not.toContain('WRONG');
    },
    120_000,
  );
});
