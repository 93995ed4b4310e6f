import { buildProgram } from '../scripts/build-program.ts';

let built: Promise<void> | undefined;

/**
 * Runs before the tests of a project that starts the program as a process of its own; builds it once, unless the caller
 * says that it is built: two suites at a time would each replace the program of the other.
 */
export async function setup(): Promise<void> {
  if (process.env['PROGRAM_IS_BUILT'] !== undefined) return;
  built ??= buildProgram();
  await built;
}
