import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { createProgram } from '../../src/cli/program.ts';
import { listRows } from './rows.ts';

const redaction = createRedaction();

/** Commands that write nothing, or a work directory alone, as `plan` does. */
const READERS = [
  ...['catalog list', 'catalog show', 'cache ls', 'cat', 'completion', 'config show'],
  ...['config-iso check', 'config-iso diff', 'config-iso generations', 'config-iso show'],
  ...['config-iso validate', 'diff', 'ignition show', 'ls', 'plan upgrade-iso', 'registry serve'],
  ...['explain', 'help'],
  ...[
    'rehearse',
    'reproduce',
    'token issue',
    'audit verify',
    'serve doctor',
    'validate',
    'verify',
    'version',
    'why',
  ],
  ...[
    'plan installation-iso',
    'lock upgrade-iso',
    'lock installation-iso',
    'lock disk-image',
    'lock deployment-iso',
    'plan disk-image',
    'plan deployment-iso',
  ], // as their live ISO
];

function listLeaves(command: Command, path: readonly string[] = []): readonly string[] {
  const acts = '_actionHandler' in command && command._actionHandler !== null;
  const below = command.commands.flatMap((each) => listLeaves(each, [...path, each.name()]));
  return acts && path.length > 0 ? [path.join(' '), ...below] : below;
}

test('every command that writes has a row in the table of crashes', () => {
  const program = createProgram({
    ...{
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      cwd: '/',
      redaction,
      isTTY: false,
      env: {},
    },
    ...{ now: Date.now, signal: new AbortController().signal },
  });
  const rows = listRows({ registry: 'registry' }).map(({ args }) => `${args('/x').join(' ')} `);
  const missing = listLeaves(program)
    .filter((name) => !rows.some((row) => row.startsWith(`${name} `)))
    .filter((name) => !READERS.includes(name));
  expect(missing).toEqual([]);
});
