import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';
import { writeLargeMedium } from '../support/large-medium.ts';
import { runMeasured } from '../support/run-measured.ts';

const BUILT = fileURLToPath(new URL('../built', import.meta.url));
/** Real media have up to 3,000, which take four times the time here and were measured by hand. */
const IMAGES = 800;
/** MiB; 275 were measured since `verify` also looks for every image that a medium names. */
const MEMORY = 290;

describe('a medium of many images', () => {
  let directory: string;
  let program: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-large-'));
    ({ program } = await bundle('test/support/measure-commands.ts', BUILT));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('is listed and fully verified in less than 290 MiB of memory', async () => {
    const path = join(directory, 'large.iso');
    const entries = writeLargeMedium(path, IMAGES);
    const commands = [
      ['ls', '-R', path],
      ['verify', path],
    ];
    const [listed, verified] = await runMeasured(program, commands, 500_000);
    expect(listed).toMatchObject({ exitCode: 0, lines: entries });
    expect(verified?.exitCode).toBe(0);
    expect(verified?.stdout).toContain('is whole');
    expect(listed?.memory).toBeLessThan(MEMORY);
    expect(verified?.memory).toBeLessThan(MEMORY);
  }, 600_000);
});
