import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { explainStart } from '../../src/base/program-start.ts';
import { bundleProgram } from '../support/bundle-program.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'program-start-'));
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

function make(name: string, content: string | Uint8Array, mode = 0o755): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

/** The header of an ELF program for a machine that nobody has: elf(5), e_machine 0xfffe. */
const ALIEN = Buffer.concat([
  Buffer.from('\x7fELF\x02\x01\x01', 'latin1'),
  Buffer.alloc(9),
  Buffer.from([2, 0, 0xfe, 0xff, 1, 0, 0, 0]),
  Buffer.alloc(100),
]);

describe('a program that the system does not start', () => {
  it.each([
    ['is not there', () => join(directory, 'missing'), 'tool.missing', /not installed/],
    ['is not in PATH', () => 'no-such-program', 'tool.missing', /not installed/],
    [
      'is not marked as executable',
      () => make('plain', '#!/bin/sh\n', 0o644),
      'tool.not-executable',
      /not marked as executable/,
    ],
    [
      'needs an interpreter that is missing',
      () => make('script', '#!/no/such/shell\n'),
      'tool.not-executable',
      /interpreter or a loader that does not exist/,
    ],
    [
      'is made for another machine',
      () => make('alien', ALIEN),
      'tool.not-executable',
      /not a program for this machine/,
    ],
  ])('is told apart: it %s', async (...[, prepare, code, message]) => {
    const running = runProcess(prepare(), []);
    await expect(running).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
      exitCode: 6,
    });
  });

  it.each([
    ['EMFILE', 'system.open-files'],
    ['ENFILE', 'system.open-files'],
    ['EAGAIN', 'system.processes'],
    ['ENOMEM', 'system.memory'],
  ])('is not blamed for a limit of the machine: %s', async (code, expected) => {
    const error = Object.assign(new Error(`spawn ${code}`), { code });
    const start = { file: '/bin/sh', shownAs: 'sh', env: {} };
    expect(await explainStart(error, start)).toMatchObject({ code: expected, exitCode: 7 });
  });

  it.each([
    ['EPERM', /a rule of this system forbids it/],
    ['ENOEXEC', /not a program that this system can run/],
  ])('has a reason for each code of the system: %s', async (code, message) => {
    const error = Object.assign(new Error(`spawn ${code}`), { code });
    const start = { file: '/bin/sh', shownAs: 'sh', env: {} };
    expect((await explainStart(error, start))?.message).toMatch(message);
  });

  const ALONE = ['--mount', 'sh', '-c', 'mount -t tmpfs -o noexec tmpfs "$1"', 'sh'];
  const isAllowed = spawnSync('unshare', [...ALONE, tmpdir()]).status === 0;
  it.runIf(isAllowed)('is on a file system that is mounted noexec', async () => {
    const place = mkdtempSync(join(directory, 'no exec-'));
    const user = [
      "import { runProcess } from '../../src/base/process.ts';",
      'await runProcess(`${process.argv[2]}/tool`, []).catch((e) => console.log(e.code, e.message, e.hint));',
    ].join('\n');
    const script = [
      'mount -t tmpfs -o noexec tmpfs "$1"',
      `printf '#!/bin/sh\\n' > "$1/tool"; chmod 755 "$1/tool"`,
      `exec "$2" "$3" "$1"`,
    ].join('; ');
    const program = await bundleProgram('program-start', { source: user });
    const args = [place, process.execPath, program];
    const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script, 'sh', ...args]);
    expect(stdout.toString(), stderr.toString()).toContain(
      `is on "${place}", which is mounted noexec`,
    );
    expect(stdout.toString()).toMatch(/^tool\.not-executable .*--work-dir/);
  });
});
