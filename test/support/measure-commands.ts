import { PassThrough } from 'node:stream';
import { createInterface } from 'node:readline';
import { createRedaction } from '../../src/base/text/redact.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { runProgram } from '../../src/cli/program.ts';
import { beginEffort, type Effort } from './yardstick.ts';

/*
 * Runs command lines of the program, one a line of standard input as JSON, in one process, and writes
 * what each cost as a line of JSON. A server is asked for its repositories, and then interrupted.
 */

/** What one command cost. */
export type Measured = Effort & {
  readonly args: readonly string[];
  readonly exitCode: number;
  /** The start of standard output and of standard error. */
  readonly stdout: string;
  readonly stderr: string;
  /** Of standard output, all of it. */
  readonly lines: number;
};

const KEPT = 4000;

function collect() {
  const stream = new PassThrough();
  let text = '';
  let lines = 0;
  stream.on('data', (piece: Buffer) => {
    if (text.length < KEPT) text += piece.subarray(0, KEPT).toString();
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++;
  });
  return { stream, text: () => text, lines: () => lines };
}

async function measure(args: readonly string[]): Promise<Measured> {
  const end = await beginEffort();
  const [stdout, stderr] = [collect(), collect()];
  const stop = new AbortController();
  const running = runProgram(args, {
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: {},
    cwd: process.cwd(),
    containersDir: '/nonexistent',
    redaction: createRedaction(),
    isTTY: false,
    signal: stop.signal,
    now: Date.now,
  });
  let answer = '';
  if (args.includes('serve')) {
    stderr.stream.on('data', () => {
      const url = /http:\/\/[\d.:]+/.exec(stderr.text())?.[0];
      if (url === undefined || stop.signal.aborted || answer !== '') return;
      answer = 'asked';
      void fetch(`${url}/v2/_catalog`)
        .then((response) => response.text())
        .then((text) => (answer = text))
        .finally(() => {
          stop.abort(new InterruptedError('SIGTERM'));
        });
    });
  }
  const exitCode = await running;
  return {
    args,
    exitCode,
    ...end(),
    stdout: stdout.text() + answer,
    stderr: stderr.text(),
    lines: stdout.lines(),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await measure(JSON.parse(line) as string[]))}\n`);
}
