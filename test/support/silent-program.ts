import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { createRedaction } from '../../src/base/text/redact.ts';
import { createProgram } from '../../src/cli/program.ts';

/** The commands of the program, with a host that prints nothing and has no environment. */
export const createSilentProgram = (cwd = '/'): Command =>
  createProgram({
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    cwd,
    redaction: createRedaction(),
    isTTY: false,
    signal: new AbortController().signal,
    now: () => 0,
  });
