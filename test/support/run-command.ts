import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { createRedaction } from '../../src/base/text/redact.ts';
import type { CliHost } from '../../src/cli/host.ts';
import { requireNoCanary, requireNoCanaryResult } from './canaries.ts';
import { addLogOptions } from '../../src/cli/program.ts';
import { describeError } from '../../src/cli/terminal/errors.ts';
import { createRunLog } from '../../src/cli/terminal/log.ts';
import { requireEvents } from './events.ts';

export type CommandRun = {
  /** What was written so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exitCode: Promise<number>;
};

/** Runs one command as the program does, without the others. */
export function startCommand(
  register: (program: Command, host: CliHost) => void,
  args: readonly string[],
  { cwd, signal = new AbortController().signal }: { cwd: string; signal?: AbortSignal },
): CommandRun {
  const [stdout, stderr] = [collect(), collect()];
  const given = { now: () => 0, redaction: createRedaction() };
  const log = createRunLog(given, () => undefined);
  const host: CliHost = {
    log,
    stdout: stdout.stream,
    stderr: stderr.stream,
    cwd,
    isTTY: false,
    env: {},
    ...given,
    signal,
  };
  const program = new Command('sealift').exitOverride();
  register(program, host);
  addLogOptions(program, host);
  const run = async (): Promise<number> => {
    try {
      await program.parseAsync([...args], { from: 'user' });
      return 0;
    } catch (error) {
      const { text, exitCode } = describeError(
        signal.aborted ? signal.reason : error,
        host.redaction,
      );
      stderr.stream.write(text);
      return exitCode;
    }
  };
  return { stdout: stdout.text, stderr: stderr.text, exitCode: run() };
}

/** The same, to its end. */
export async function runCommand(...call: Parameters<typeof startCommand>): Promise<{
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}> {
  const run = startCommand(...call);
  const exitCode = await run.exitCode;
  const stdout = requireNoCanaryResult(call[1], run.stdout());
  requireEvents(run.stderr());
  return { exitCode, stdout, stderr: requireNoCanary(run.stderr()) };
}

function collect(): { readonly stream: PassThrough; readonly text: () => string } {
  const stream = new PassThrough();
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  return { stream, text: () => Buffer.concat(pieces).toString('utf8') };
}
