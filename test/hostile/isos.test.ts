import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';
import type { Measured } from '../support/measure-commands.ts';
import { HOSTILE_ISOS, writeHostileIso } from './isos.ts';

const BUILT = fileURLToPath(new URL('../built', import.meta.url));
/** The bounds that hold for each command on each image. */
const SECONDS = 10;
const MEMORY = 300;

const COMMANDS: readonly (readonly string[])[] = [
  ['ls', '-R'],
  ['inspect'],
  ['verify'],
  ['ignition', 'show'],
  ['registry', 'serve', '--port', '0'],
  ['config-iso', 'show'],
  ['config-iso', 'diff'],
];

describe('an ISO that costs more to read than it has bytes', () => {
  let directory: string;
  let program: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
    ({ program } = await bundle('test/support/measure-commands.ts', BUILT));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** What each command cost on an image; one process runs them all. */
  async function measure(path: string): Promise<Measured[]> {
    const child = spawn(process.execPath, ['--expose-gc', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
      timeout: 150_000,
      killSignal: 'SIGKILL',
    });
    const measured: Measured[] = [];
    const lines = COMMANDS.map((command) =>
      JSON.stringify([...command, path, ...(command.includes('diff') ? [path] : [])]),
    );
    child.stdin.end(`${lines.join('\n')}\n`);
    for await (const line of createInterface({ input: child.stdout })) {
      measured.push(JSON.parse(line) as Measured);
    }
    return measured;
  }

  it.each(HOSTILE_ISOS)('because of $title is read within bounds, and named', async (iso) => {
    const path = await writeHostileIso(iso, directory);
    const measured = await measure(path);
    await rm(path);
    const exceeding = measured.filter(
      ({ seconds, memory, exitCode }) => seconds > SECONDS || memory > MEMORY || exitCode === 1,
    );
    expect(exceeding).toEqual([]);
    expect(measured).toHaveLength(COMMANDS.length); // else one of them did not end
    const told = measured.map(({ stdout, stderr }) => stdout + stderr).join('');
    for (const problem of iso.problems) expect(told).toMatch(problem);
  });
});
