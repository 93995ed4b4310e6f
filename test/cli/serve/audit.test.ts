import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { InterruptedError } from '../../../src/base/errors.ts';
import { registerAudit } from '../../../src/cli/serve/audit.ts';
import { registerServe } from '../../../src/cli/serve/serve.ts';
import { runCommand, startCommand } from '../../support/run-command.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'sealift-audit-cli-'));
  await writeFile(join(cwd, 'serve.key'), 'k'.repeat(40), { mode: 0o600 });
  await writeFile(join(cwd, 'new.key'), 'n'.repeat(40), { mode: 0o600 });
  const stop = new AbortController();
  const line = ['serve', '--listen', '127.0.0.1:0', '--data', 'data', '--key', 'file:serve.key'];
  const run = startCommand(registerServe, [...line, '--audit-log', 'audit.log'], {
    cwd,
    signal: stop.signal,
  });
  await vi.waitUntil(() => run.stderr().includes('serving on'), { timeout: 30_000 });
  stop.abort(new InterruptedError('SIGTERM'));
  expect(await run.exitCode).toBe(143);
});
afterAll(async () => {
  await rm(cwd, { recursive: true });
});

const verify = (...args: string[]) =>
  runCommand(registerAudit, ['audit', 'verify', ...args], { cwd });

it('"audit verify" prints the last hash, which --expect finds again', async () => {
  const { stdout, exitCode } = await verify('audit.log', '-o', 'json');
  expect(exitCode).toBe(0);
  const { last, lines } = JSON.parse(stdout) as { last: { hash: string }; lines: number };
  expect(lines).toBe(2);
  const again = await verify('audit.log', '--expect', last.hash);
  expect(again.stdout).toContain(`last hash: ${last.hash}`);
  expect(again.stdout).toContain('the expected hash is that of line 2');
  const other = await verify('audit.log', '--expect', '0'.repeat(63) + '1');
  expect([other.exitCode, other.stderr]).toEqual([
    8,
    expect.stringContaining('[audit.hash-missing]'),
  ]);
});

it('names the first line that was changed', async () => {
  const text = await readFile(join(cwd, 'audit.log'), 'utf8');
  await writeFile(join(cwd, 'changed.log'), text.replace('process.start', 'process.stort'));
  const { exitCode, stderr } = await verify('changed.log');
  expect(exitCode).toBe(8);
  expect(stderr).toContain('line 1 of');
  expect(stderr).toContain('its hash is not that of its members');
});

it('"serve rekey" has a line in the log', async () => {
  const keys = ['--key', 'file:new.key', '--previous-key', 'file:serve.key'];
  const line = ['serve', 'rekey', '--data', 'data', ...keys, '--audit-log', 'audit.log'];
  const { exitCode } = await runCommand(registerServe, line, { cwd });
  expect(exitCode).toBe(0);
  const lines = (await readFile(join(cwd, 'audit.log'), 'utf8')).trimEnd().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ event: 'records.rekey', keys: 1 });
  expect((await verify('audit.log')).exitCode).toBe(0);
});
it('reads files that logrotate has packed, and says which one is cut off', async () => {
  const packed = gzipSync(await readFile(join(cwd, 'audit.log')));
  await writeFile(join(cwd, 'audit.log.1.gz'), packed);
  const { stdout, exitCode } = await verify('audit.log.1.gz');
  expect([exitCode, stdout.split('\n')[0]]).toEqual([0, expect.stringMatching(/^\d+ lines, /)]);
  await writeFile(join(cwd, 'audit.log.2.gz'), packed.subarray(0, packed.length / 2));
  const cut = await verify('audit.log.2.gz');
  expect([cut.exitCode, cut.stderr]).toEqual([8, expect.stringContaining('[audit.broken]')]);
  expect(cut.stderr).toMatch(/audit\.log\.2\.gz" cannot be unpacked/);
});
