import { fileURLToPath } from 'node:url';
import { DiskError, InterruptedError, isErrno } from '../base/errors.ts';
import { createRedaction } from '../base/text/redact.ts';
import { startTimer } from '../base/wait.ts';
import { listenForSignals } from './host.ts';
import './keep-memory-small.ts';
import { explainFailure, runProgram, wantsJson } from './program.ts';
import { printError } from './terminal/errors.ts';

const args = process.argv.slice(2);

// Made once: what one part of the program reads, no other prints.
const redaction = createRedaction();
const { stderr } = process;

// A run reads the files that it writes, so the umask takes no rights from the owner.
process.umask(process.umask(0o077) & 0o077);

// Node's own warnings would come between the lines of a log; the program prints its warnings itself.
process.removeAllListeners('warning');

const { signal, stop } = listenForSignals(process, (exitCode) => process.exit(exitCode));

// Memory that is denied to code of Node itself ends here; the rest is a bug, and looks like one.
process.on('uncaughtException', (error) => {
  process.exit(
    printError({ stderr, redaction }, explainFailure(error), wantsJson(args, process.env)),
  );
});

process.stdout.on('error', (error: Error) => {
  // The command knows it from its write, and decides what follows (terminal/output.ts).
  if (isErrno(error, 'EPIPE')) return;
  const lost = new DiskError('stdout.lost', `the result could not be printed: ${error.message}`);
  process.exit(printError({ stderr, redaction }, lost, wantsJson(args, process.env)));
});

// A reader that no longer reads progress is not an error either: the work continues.
process.stderr.on('error', () => undefined);

// Node's code for work that waits for nothing that can happen: it would end with 0 otherwise.
process.exitCode = 13;

void runProgram(args, {
  stdout: process.stdout,
  stderr,
  redaction,
  env: process.env,
  cwd: process.cwd(),
  containersDir: '/etc/containers',
  isTTY: process.stderr.isTTY,
  workerProgram: fileURLToPath(new URL('./range-worker.mjs', import.meta.url)),
  signal,
  now: Date.now,
}).then(end);

/** Milliseconds in which remaining work may end: the lookup of a name, an opening connection. */
const LEAVE = 400;

function end(exitCode: number): void {
  process.exitCode = exitCode;
  stop();
  // process.exit waits for threads of the file system, which may wait forever; a signal does not.
  // Without our listeners it ends the process as it would end any other.
  startTimer(LEAVE, () => {
    if (signal.reason instanceof InterruptedError) process.kill(process.pid, signal.reason.signal);
    else process.exit();
  }).unref();
}
