import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProcess } from '../../../../src/base/process.ts';
import { readRetained as read } from '../../../../src/sites/identity/retained/read.ts';
import { parseRetainedManifest } from '../../../../src/sites/identity/retained/documents.ts';

let dir = '';
const readRetained = (directory: string) =>
  read({ directory, readIso: () => Promise.reject(new Error('no ISO is there')) });

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'retained-'));
  mkdirSync(join(dir, 'cluster-configuration'));
  mkdirSync(join(dir, 'tls'));
});
afterEach(() => {
  rmSync(dir, { recursive: true });
});

it('a pipe among the retained files is not waited for', async () => {
  await runProcess('mkfifo', [join(dir, 'tls/admin-kubeconfig-signer.key')]);
  await expect(readRetained(dir)).rejects.toMatchObject({ code: 'retained.unreadable' });
});

it('a retained file that is larger than any manifest is not read', async () => {
  const file = join(dir, 'cluster-configuration/manifest.json');
  writeFileSync(file, '');
  truncateSync(file, 2 ** 40);
  await expect(readRetained(dir)).rejects.toMatchObject({ code: 'retained.unreadable' });
});

it('a manifest of many levels is refused before its members are read', () => {
  const levels = 50_000;
  const text = `{"api_version":1,"cluster_name":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  const file = { directory: dir, path: 'cluster-configuration/manifest.json' };
  expect(() => parseRetainedManifest(text, file)).toThrow('has more than 64 levels');
});

it.each(['server_ssh_keys', 'status_proxy', 'install_config', 'key_of_a_later_version'])(
  'a member of a manifest outside of the identity is ignored: %s',
  (key) => {
    const file = { directory: dir, path: 'cluster-configuration/manifest.json' };
    const text = `{"api_version":1,"cluster_name":"alpha","${key}":{"x":[1]}}`;
    expect(parseRetainedManifest(text, file).clusterName).toBe('alpha');
  },
);
