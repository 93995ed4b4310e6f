#!/usr/bin/env node
import { InterruptedError } from '../base/errors.ts';
import { startTimer } from '../base/wait.ts';
import { runProgram } from './program.ts';
import { listenForSignals } from './terminal/signals.ts';

/** As a DiskError ends (docs/exit-codes.md). */
const DISK = 7;

const { signal, stop } = listenForSignals(process, (exitCode) => process.exit(exitCode));

// A reader that closes the pipe early (`sealift ls X | head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: what was to be printed is lost: ${error.message} [stdout.lost]\n`);
  process.exit(DISK);
});

// Nor is one that reads no progress any more: the work goes on.
process.stderr.on('error', () => undefined);

process.exitCode = await runProgram(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  containersDir: '/etc/containers',
  isTTY: process.stderr.isTTY,
  signal,
  now: Date.now,
});
stop();

/** Milliseconds for what the process still holds: a name being looked up, a connection in the making. */
const LEAVE = 400;

// process.exit waits for threads of the file system, which may wait for ever; a signal does not. With
// our listeners gone it ends the process as it would end any other.
startTimer(LEAVE, () => {
  if (signal.reason instanceof InterruptedError) process.kill(process.pid, signal.reason.signal);
  else process.exit();
}).unref();
