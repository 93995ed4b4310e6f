import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createRedaction } from '../../src/base/text/redact.ts';
import { runProgram } from '../../src/cli/program.ts';
import type { CliHost } from '../../src/cli/host.ts';
import { requireEvents } from './events.ts';

/** Runs a command line as the program does, in this process. */
export async function runLine(
  args: readonly string[],
  given: { readonly cwd: string } & Partial<CliHost>,
): Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const written = Promise.all([text(stdout), text(stderr)]);
  const exitCode = await runProgram(args, {
    stdout,
    stderr,
    env: {},
    redaction: createRedaction(),
    isTTY: false,
    signal: new AbortController().signal,
    now: Date.now,
    ...given,
  });
  stdout.end();
  stderr.end();
  const [out, err] = await written;
  requireEvents(err);
  return { exitCode, stdout: out, stderr: err };
}
