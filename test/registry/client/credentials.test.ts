import { chmod, mkdir, mkdtemp, rm, writeFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { formatBasic } from '../../../src/base/http/basic.ts';
import {
  credentialsFromFiles,
  credentialsFromPullSecret,
  listUnusableEntries,
} from '../../../src/registry/client/credentials.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const redaction = createRedaction();

const { signal } = new AbortController();

const encode = (text: string): string => Buffer.from(text).toString('base64');
const entry = (text: string) => ({ auth: encode(text) });
const reference = (text: string) => parseReference(text);

describe('a pull secret', () => {
  const store = credentialsFromPullSecret(
    JSON.stringify({
      auths: {
        'quay.io': { ...entry('host:p'), email: 'x' },
        'quay.io/team': entry('team:p:with:colons'),
        'quay.io/open': {},
        'https://old.example/v1/': entry('old:p'),
        'https://index.docker.io/v1/': { auth: encode('hub:p'), identitytoken: 'identity' },
      },
    }),
    { name: 'pullSecret', redaction },
  );

  it('gives the most specific entry', async () => {
    expect(await store.find(reference('quay.io/team/app:v1'), signal)).toEqual({
      kind: 'basic',
      username: 'team',
      password: 'p:with:colons',
      from: 'pullSecret entry quay.io/team',
    });
    expect(await store.find(reference('quay.io/teams/app:v1'), signal)).toMatchObject({
      username: 'host',
    });
    expect(await store.find(reference('quay.io:443/team/app:v1'), signal)).toBeUndefined();
  });

  it('with an empty entry leads to anonymous requests', async () => {
    expect(await store.find(reference('quay.io/open/app:v1'), signal)).toBeUndefined();
  });

  it('may have keys in the form of old clients', async () => {
    expect(await store.find(reference('old.example/a:v1'), signal)).toMatchObject({
      username: 'old',
    });
    expect(await store.find(reference('docker.io/busybox:v1'), signal)).toMatchObject({
      kind: 'identity',
      token: 'identity',
    });
  });

  it.each([
    ['hush {', 'not JSON'],
    ['["hush"]', 'not a JSON object'],
    ['{"auths": "hush"}', '"auths" is not an object'],
  ])('that is malformed is refused without being repeated: %s', (json, reason) => {
    let failure: unknown;
    try {
      credentialsFromPullSecret(json, { name: 'pullSecret', redaction });
    } catch (error) {
      failure = error;
    }
    expect(failure).toMatchObject({ code: 'credentials.malformed', exitCode: 3 });
    expect(String(failure)).toContain(reason);
    expect(String(failure)).not.toContain('hush');
    expect((failure as Error).cause).toBeUndefined();
  });
});

describe('an entry of a pull secret that cannot be used', () => {
  const AUTHS = {
    'quay.io': { auth: 'hush-hush!' },
    'docker.io': { auth: 'aHVzaA==' },
    'odd.example': 'hush',
    'empty.example': {},
    'good.example': entry('user:hush'),
  };
  const json = JSON.stringify({ auths: AUTHS });

  it.each(['quay.io', 'docker.io', 'odd.example'])(
    'is an error only if its registry is looked up: %s',
    async (host) => {
      const store = credentialsFromPullSecret(json, { name: 'pullSecret', redaction });
      expect(await store.find(reference('good.example/a:1'), signal)).toMatchObject({
        username: 'user',
      });
      const failure: unknown = await store
        .find(reference(`${host}/a:1`), signal)
        .catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'credentials.malformed', exitCode: 3 });
      expect(String(failure)).toContain(`pullSecret entry ${host} cannot be used`);
      expect(String(failure)).not.toMatch(/hush|aHVz/);
    },
  );

  it('is listed with a reason and without its value', () => {
    const listed = listUnusableEntries(json);
    expect(listed.map(({ key }) => key)).toEqual([
      ...['quay.io', 'docker.io', 'odd.example', 'empty.example'],
    ]);
    expect(JSON.stringify(listed)).not.toMatch(/hush|aHVz/);
    expect(listUnusableEntries('hush {')).toEqual([]);
    const broken = JSON.stringify({ auths: { 'a.example': entry('user:hush\n') } });
    expect(listUnusableEntries(broken)).toEqual([
      { key: 'a.example', reason: 'its password ends in a line break' },
    ]);
  });
});

describe('credential files', () => {
  let home: string;
  const put = async (path: string, document: unknown): Promise<void> => {
    await mkdir(join(home, path, '..'), { recursive: true });
    await writeFile(join(home, path), JSON.stringify(document));
  };

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'credentials-'));
  });
  afterEach(() => rm(home, { recursive: true }));

  it('are searched in order, and the first that has an entry wins', async () => {
    await put('run/containers/auth.json', { auths: { 'a.example': entry('run:p') } });
    await put('.config/containers/auth.json', { auths: { 'b.example': entry('config:p') } });
    await put('.docker/config.json', {
      auths: { 'a.example': entry('docker:p'), 'b.example': entry('docker:p') },
    });
    await put('.dockercfg', { 'c.example': entry('cfg:p') });
    const store = credentialsFromFiles(
      { HOME: home, XDG_RUNTIME_DIR: join(home, 'run') },
      redaction,
    );
    expect(await store.find(reference('a.example/x:v1'), signal)).toMatchObject({
      username: 'run',
    });
    expect(await store.find(reference('b.example/x:v1'), signal)).toMatchObject({
      username: 'config',
    });
    expect(await store.find(reference('c.example/x:v1'), signal)).toMatchObject({
      username: 'cfg',
    });
    expect(await store.find(reference('d.example/x:v1'), signal)).toBeUndefined();
  });

  it('are ignored if REGISTRY_AUTH_FILE names another file', async () => {
    await put('.docker/config.json', { auths: { 'a.example': entry('docker:p') } });
    await put('mine.json', { auths: { 'b.example': entry('mine:p') } });
    const env = { HOME: home, REGISTRY_AUTH_FILE: join(home, 'mine.json') };
    expect(
      await credentialsFromFiles(env, redaction).find(reference('a.example/x:v1'), signal),
    ).toBeUndefined();
    expect(
      await credentialsFromFiles(env, redaction).find(reference('b.example/x:v1'), signal),
    ).toMatchObject({
      username: 'mine',
    });
    const missing = credentialsFromFiles(
      { REGISTRY_AUTH_FILE: join(home, 'none.json') },
      redaction,
    );
    await expect(missing.find(reference('a.example/x:v1'), signal)).rejects.toMatchObject({
      code: 'credentials.missing',
    });
  });

  it('may name helpers, which are asked with the host on standard input', async () => {
    await put('.docker/config.json', {
      auths: { 'a.example': {} },
      credHelpers: { 'a.example': 'test', 'broken.example': 'broken' },
      credsStore: 'none',
    });
    const helpers = {
      test: 'read h; echo "{\\"Username\\":\\"<token>\\",\\"Secret\\":\\"for $h\\"}"',
      none: 'echo "credentials not found in native keychain"; exit 1',
      broken: 'echo "keyring is locked" >&2; exit 1',
    };
    for (const [name, script] of Object.entries(helpers)) {
      const path = join(home, `docker-credential-${name}`);
      await writeFile(path, `#!/bin/sh\n${script}\n`);
      await chmod(path, 0o755);
    }
    const env = { HOME: home, PATH: `${home}:${process.env['PATH'] ?? ''}` };
    const store = credentialsFromFiles(env, redaction);
    expect(await store.find(reference('a.example/x:v1'), signal)).toEqual({
      kind: 'identity',
      token: 'for a.example',
      from: 'docker-credential-test for a.example',
    });
    expect(await store.find(reference('b.example/x:v1'), signal)).toBeUndefined();
    await expect(store.find(reference('broken.example/x:v1'), signal)).rejects.toMatchObject({
      code: 'tool.failed',
    });
  });

  it.each([
    ['echo "pass store is uninitialized"; exit 1', 'exit code 1: pass store is uninitialized'],
    ['echo "exit status 2: gpg: decryption failed: No secret key"; exit 1', 'No secret key'],
    ['echo "oops: 7 of 9"; exit 3', 'ended with exit code 3'],
    ['kill -9 $$', 'ended with SIGKILL'],
  ])('report a helper that fails, with a known message alone: %s', async (script, shown) => {
    await put('.docker/config.json', { credsStore: 'fails' });
    const path = join(home, 'docker-credential-fails');
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
    const env = { HOME: home, PATH: `${home}:${process.env['PATH'] ?? ''}` };
    const failure: unknown = await credentialsFromFiles(env, redaction)
      .find(reference('a.example/x:v1'), signal)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 'tool.failed',
      message: 'docker-credential-fails gives no answer for a.example',
      hint: 'see what it says: echo a.example | docker-credential-fails get',
    });
    const cause = String((failure as Error).cause);
    expect(cause.endsWith(shown)).toBe(true);
    expect(cause).not.toContain('7 of 9');
  });

  it('may have logins whose bytes are not UTF-8', async () => {
    const auth = Buffer.from('us\u00E9r:p\u00F6', 'latin1').toString('base64');
    await put('.docker/config.json', { auths: { 'a.example': { auth } } });
    const found = await credentialsFromFiles({ HOME: home }, redaction).find(
      reference('a.example/x'),
      signal,
    );
    if (found?.kind !== 'basic') throw new Error('no login');
    expect(formatBasic(found)).toBe(`Basic ${auth}`);
  });

  describe('that name helpers', () => {
    let log: string;
    let env: NodeJS.ProcessEnv;
    const asked = async () => (await readFile(log, 'utf8')).trim().split('\n').sort();

    beforeEach(async () => {
      log = join(home, 'asked');
      const note = `read h; echo "$h" >> "${log}"`;
      const scripts = {
        count: `${note}; n=$(wc -l < "${log}"); echo "{\\"Username\\":\\"u\\",\\"Secret\\":\\"p$n\\"}"`,
        fail: `${note}; echo locked >&2; exit 1`,
      };
      for (const [name, script] of Object.entries(scripts)) {
        const path = join(home, `docker-credential-${name}`);
        await writeFile(path, `#!/bin/sh\n${script}\n`);
        await chmod(path, 0o755);
      }
      env = { HOME: home, PATH: `${home}:${process.env['PATH'] ?? ''}` };
    });

    it('ask each once for a host, also one that fails', async () => {
      await put('.docker/config.json', {
        credHelpers: { 'a.example': 'count', 'b.example': 'count', 'c.example': 'fail' },
      });
      const store = credentialsFromFiles(env, redaction);
      const ask = (name: string) =>
        store.find(reference(`${name}/x:v1`), signal).catch(() => 'failed');
      const names = ['a.example', 'a.example', 'b.example', 'a.example'];
      const found = await Promise.all(names.map(ask));
      expect(new Set(found.map((one) => JSON.stringify(one))).size).toBe(2);
      expect([await ask('c.example'), await ask('c.example')]).toEqual(['failed', 'failed']);
      expect(await asked()).toEqual(['a.example', 'b.example', 'c.example']);
    });

    it('ask for an answer that was refused again, once for all', async () => {
      await put('.docker/config.json', { credHelpers: { 'a.example': 'count' } });
      const store = credentialsFromFiles(env, redaction);
      const place = reference('a.example/x:v1');
      const first = await store.find(place, signal);
      const ask = () => store.find(place, signal, first);
      const renewed = await Promise.all([ask(), ask(), ask()]);
      expect(first).toMatchObject({ password: 'p1' });
      expect(new Set(renewed).size).toBe(1);
      expect(renewed[0]).toMatchObject({ password: 'p2' });
      expect(await store.find(place, signal, renewed[0])).toBe(renewed[0]);
      expect(await asked()).toEqual(['a.example', 'a.example']);
    });

    it('use an entry where a helper is missing', async () => {
      await put('.docker/config.json', {
        auths: { 'a.example': entry('u:p') },
        credsStore: 'nowhere',
      });
      const store = credentialsFromFiles(env, redaction);
      expect(await store.find(reference('a.example/x:v1'), signal)).toMatchObject({
        username: 'u',
      });
      await expect(store.find(reference('b.example/x:v1'), signal)).rejects.toMatchObject({
        code: 'tool.missing',
      });
    });

    it('know a host by an address, which they are asked with', async () => {
      await put('.docker/config.json', {
        credHelpers: { 'https://index.docker.io/v1/': 'count', 'https://a.example/': 'count' },
      });
      const store = credentialsFromFiles(env, redaction);
      await store.find(reference('docker.io/library/x:v1'), signal);
      await store.find(reference('a.example/x:v1'), signal);
      expect(await asked()).toEqual(['https://a.example/', 'https://index.docker.io/v1/']);
    });
  });
});
