import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Measured } from './measure-commands.ts';

/** What each command line cost; one process, the bundled `measure-commands.ts`, runs them all. */
export async function runMeasured(
  program: string,
  commands: readonly (readonly string[])[],
  timeout = 150_000,
): Promise<Measured[]> {
  const child = spawn(process.execPath, ['--expose-gc', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout,
    killSignal: 'SIGKILL',
  });
  const measured: Measured[] = [];
  child.stdin.end(commands.map((command) => `${JSON.stringify(command)}\n`).join(''));
  for await (const line of createInterface({ input: child.stdout })) {
    measured.push(JSON.parse(line) as Measured);
  }
  return measured;
}
