import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { registerServe } from '../../../src/cli/serve/serve.ts';
import { runCommand } from '../../support/run-command.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'sealift-doctor-cli-'));
  await writeFile(join(cwd, 'serve.key'), randomBytes(32).toString('hex'), { mode: 0o600 });
});
afterAll(async () => {
  await rm(cwd, { recursive: true });
});

const BAD = [
  ...['--data', 'data', '--key', 'file:serve.key', '--listen', '0.0.0.0:0'],
  ...['--database', 'postgres://sealift:canary-word@db.example.com/sealift'],
  ...['--auth', 'local', '--auth-keys', 'missing.pub'],
];

type Result = { readonly errors: number; readonly findings: readonly { readonly code: string }[] };

it('names all errors at once, without a secret and without touching the data', async () => {
  const line = ['serve', 'doctor', ...BAD, '-o', 'json'];
  const { stdout, stderr, exitCode } = await runCommand(registerServe, line, { cwd });
  expect(exitCode).toBe(3);
  const { errors, findings } = JSON.parse(stdout) as Result;
  const codes = findings.map(({ code }) => code);
  for (const code of [
    ...['doctor.database-password', 'doctor.database-tls', 'doctor.no-audience'],
    ...['doctor.no-issuer', 'doctor.no-tls', 'doctor.no-audit', 'input.missing'],
  ]) {
    expect(codes).toContain(code);
  }
  expect(errors).toBeGreaterThanOrEqual(7);
  expect(stderr).toContain('[doctor.refused]');
  expect(stdout + stderr).not.toContain('canary-word');
  expect(existsSync(join(cwd, 'data'))).toBe(false);
});

it('"serve --strict" refuses by the same rules, before it opens or listens', async () => {
  const { stderr, exitCode } = await runCommand(registerServe, ['serve', ...BAD, '--strict'], {
    cwd,
  });
  expect(exitCode).toBe(3);
  for (const code of ['doctor.no-audience', 'doctor.no-tls', 'doctor.refused']) {
    expect(stderr).toContain(`[${code}]`);
  }
  expect(stderr).not.toContain('serving on');
  expect(existsSync(join(cwd, 'data'))).toBe(false);
});

it('ends with 0 where only advice is left', async () => {
  const line = ['serve', 'doctor', '--data', 'data', '--key', 'file:serve.key'];
  const { stdout, exitCode } = await runCommand(
    registerServe,
    [...line, '--audit-log', join(cwd, 'audit.log'), '-o', 'json'],
    { cwd },
  );
  const codes = (JSON.parse(stdout) as Result).findings.map(({ code }) => code);
  // Tests may run as root, and with core dumps.
  const others = codes.filter((code) => !['doctor.root', 'doctor.core-dumps'].includes(code));
  expect(others).toEqual(['doctor.audit-here-alone']);
  expect(exitCode).toBe(codes.includes('doctor.root') ? 3 : 0);
});

it('names the option of a finding once, and counts in whole words', async () => {
  const line = ['serve', 'doctor', '--data', 'data', '--key', 'file:serve.key'];
  const { stdout } = await runCommand(registerServe, [...line, '--database', 'env:NOT_SET'], {
    cwd,
  });
  expect(stdout).toMatch(/^--database: the environment variable NOT_SET is not set/m);
  expect(stdout).not.toContain('1 errors');
});

it('tells how long the time of an option may be', async () => {
  const line = ['serve', 'doctor', '--data', 'data', '--key', 'file:serve.key'];
  const { stderr, exitCode } = await runCommand(
    registerServe,
    [...line, '--auth-lifetime', '900h'],
    { cwd },
  );
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('99h at most')]);
});
