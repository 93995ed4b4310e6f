import { copyFile, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';
import { makeMedium } from '../support/medium.ts';

describe('a command whose reader has gone', () => {
  let cwd: string;
  beforeAll(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'sealift-reader-'));
    const { path, extentOf } = await makeMedium(cwd);
    await copyFile(path, join(cwd, 'whole.iso'));
    await copyFile(path, join(cwd, 'damaged.iso'));
    const file = await open(join(cwd, 'damaged.iso'), 'r+');
    await file.write(Buffer.from('?'), 0, 1, extentOf('/sealift/index.json').offset);
    await file.close();
    await mkdir(join(cwd, 'sites', 'alpha'), { recursive: true });
    for (const name of ['install-config.yaml', 'image-based-config.yaml']) {
      await writeFile(join(cwd, 'sites', 'alpha', name), 'apiVersion: v1\nnonsense: true\n');
    }
    await writeFile(join(cwd, 'appliance-config.yaml'), 'apiVersion: v1beta1\nnonsense: true\n');
  });
  afterAll(() => rm(cwd, { recursive: true }));

  /** Runs it with a pipe that nobody reads. */
  async function runUnread(
    args: readonly string[],
  ): Promise<{ code: number | null; stderr: string }> {
    const child = startSealift(args, { cwd });
    child.process.stdout?.destroy();
    return child.ended;
  }

  it.each([
    { args: ['config-iso', 'validate', 'sites'], code: 3 },
    { args: ['config-iso', 'validate', 'sites', '-o', 'json'], code: 3 },
    { args: ['validate', '-o', 'json'], code: 3 },
    { args: ['verify', 'damaged.iso'], code: 8 },
    { args: ['verify', 'damaged.iso', '-o', 'json'], code: 8 },
    { args: ['diff', 'whole.iso', 'damaged.iso', '--exit-code'], code: 8 },
    { args: ['inspect', 'absent.iso'], code: 3 },
    { args: ['inspect', 'whole.iso'], code: 0 },
    { args: ['--help'], code: 0 },
    { args: ['build', '--help'], code: 0 },
  ])('ends with its own exit code $code: $args', async ({ args, code }) => {
    const ended = await runUnread(args);
    expect(ended.code, ended.stderr).toBe(code);
  });

  it('stops with 141 and without a message while it prints what it reads', async () => {
    const { code, stderr } = await runUnread(['cat', 'whole.iso', '/sealift/index.json']);
    expect([code, stderr]).toEqual([141, '']);
  });
});
