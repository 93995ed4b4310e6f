import { join } from 'node:path';
import { runProcess } from '../../src/base/process.ts';

/** What a program wrote at a time, in milliseconds since its start. */
export type Written = { readonly at: number; readonly text: string };

const SOURCE = join(import.meta.dirname, '../..');

/** Runs a TypeScript file in a terminal of this width (needs python3). */
export async function runInTerminal(
  columns: number,
  [file, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>> = {},
): Promise<readonly Written[]> {
  const tsx = join(SOURCE, 'node_modules/tsx/dist/esm/index.mjs');
  const program = [process.execPath, '--import', tsx, join(SOURCE, file), ...args];
  const { stdout } = await runProcess(
    'python3',
    [join(import.meta.dirname, 'terminal.py'), String(columns), ...program],
    { env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm', ...env }, timeout: 120_000 },
  );
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Written);
}
