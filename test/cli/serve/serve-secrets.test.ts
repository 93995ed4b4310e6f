import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { warnOfSecrets } from '../../../src/cli/serve/doctor.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'sealift-secrets-'));
  await writeFile(join(cwd, 'serve.key'), 'ab'.repeat(32));
});
afterAll(() => rm(cwd, { recursive: true }));

it.each([
  [
    0o644,
    'file:serve.key',
    /^--key: every user of the machine can read ".*serve\.key" \(mode 0644\) \[doctor\.secret-readable\]/,
  ],
  [0o600, 'file:serve.key', undefined],
  [0o640, 'file:serve.key', undefined],
  [0o644, 'env:KEY', undefined],
])('serve warns about a key that every user can read: mode %i, %s', async (mode, key, said) => {
  await chmod(join(cwd, 'serve.key'), mode);
  const warnings: string[] = [];
  await warnOfSecrets({ key }, { cwd }, (message) => warnings.push(message));
  expect(warnings).toEqual(said === undefined ? [] : [expect.stringMatching(said)]);
});

it.each([
  ['postgres://u:hunter2@db/sealift', 1],
  ['postgres://u@db/sealift', 0],
  ['postgres:///d1?host=/run/postgresql&user=postgres', 0],
  ['env:DATABASE', 0],
])('serve warns about a password that is in the list of processes: %s', async (database, count) => {
  const warnings: string[] = [];
  await warnOfSecrets({ key: 'env:KEY', database }, { cwd }, (message) => warnings.push(message));
  expect(warnings).toHaveLength(count);
  expect(warnings.join()).not.toContain('hunter2');
});
