import { writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/**
 * Reporter: writes the errors that broke a run although no test failed to the file that UNHANDLED_ERRORS names. A log
 * that was cut has them no longer.
 */
export default class UnhandledErrors implements Reporter {
  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[]): void {
    const { UNHANDLED_ERRORS: path } = process.env;
    if (path !== undefined) writeFileSync(path, errors.map(formatUnhandled).join(''));
  }
}

/** What was said, where, and beside which test file; with a line break at its end. */
function formatUnhandled({ name, message, stack = '', ...more }: SerializedError): string {
  const { VITEST_TEST_PATH: file, VITEST_TEST_NAME: test } = more as Record<string, unknown>;
  const beside = [file, test].filter((text) => typeof text === 'string').join(': ');
  const frames = stripVTControlCharacters(stack)
    .split('\n')
    .filter((line) => /^\s*at /.test(line))
    .slice(0, 12);
  return [
    `${name}: ${stripVTControlCharacters(message)}`,
    `    beside ${beside}`,
    ...frames,
    '',
  ].join('\n');
}
