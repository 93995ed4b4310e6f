import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { createRedaction } from '../../src/base/text/redact.ts';
import { toMessage } from '../../src/cli/terminal/output.ts';
import {
  credentialsFromFiles,
  credentialsFromPullSecret,
} from '../../src/registry/client/credentials.ts';
import { runLine } from '../support/run-line.ts';

const redaction = createRedaction();

/** With everything that some program escapes. */
const PASSWORD = `c4nary/pa+ss=&<w>"o'r\\d é%`;
const USER = 'canary+robot|7';
const PAIR = `${USER}:${PASSWORD}`;
const AUTH = Buffer.from(PAIR).toString('base64');
const TOKEN = 'canary.eyJhbGciOiJSUzI1NiJ9_refresh-token/+x';
const PULL_SECRET = JSON.stringify({
  auths: {
    'quay.io': { auth: AUTH, email: 'canary.person7@example.com' },
    'registry.example': { username: USER, password: PASSWORD },
    'token.example': { identitytoken: TOKEN },
  },
});
/** No output has any of these. */
const CANARIES = [PASSWORD, USER, AUTH, TOKEN, 'canary', 'c4nary', AUTH.slice(4, 24)];

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const escapeGo = (text: string): string =>
  JSON.stringify(text)
    .replaceAll('&', String.raw`\u0026`)
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('>', String.raw`\u003e`);

/** What programs print a text as. */
const FORMS: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'in JSON': (text) => JSON.stringify({ a: text }),
  'in JSON inside of JSON': (text) => JSON.stringify(JSON.stringify({ a: text })),
  'in JSON of Go': escapeGo,
  'in YAML': (text) => `a: '${text.replaceAll("'", "''")}'`,
  'percent-encoded': (text) => `a=${encodeURIComponent(text)}&b`,
  'percent-encoded in lower case': (text) =>
    encodeURIComponent(text).replaceAll(/%../g, (escape) => escape.toLowerCase()),
  'in a form': (text) => new URLSearchParams({ a: text }).toString(),
  'in base64': base64,
  'in base64url': (text) => Buffer.from(text).toString('base64url'),
  'in base64 with one byte before it': (text) => base64(`x${text}y`),
  'in base64 with two bytes before it': (text) => base64(`xx${text}yy`),
};

const directory = mkdtempSync(join(tmpdir(), 'sealift-redaction-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

beforeAll(() => {
  credentialsFromPullSecret(PULL_SECRET, { name: 'pullSecret', redaction });
});

const expectNoCanary = (text: string): void => {
  const printed = toMessage(text, redaction);
  expect(CANARIES.filter((canary) => printed.includes(canary))).toEqual([]);
};

describe('a credential of a pull secret is masked', () => {
  it.each(Object.entries(FORMS))('%s', (_, form) => {
    for (const secret of [PASSWORD, PAIR, AUTH, TOKEN, PULL_SECRET]) {
      expectNoCanary(`level=fatal msg=${form(secret)}, while pulling`);
    }
    expect(redaction.mask(`error: ${form(PASSWORD)}`)).toContain('[redacted]');
  });

  it('in a pull secret that was printed again on several lines', () => {
    expectNoCanary(JSON.stringify(JSON.parse(PULL_SECRET), null, 2));
    expectNoCanary(escapeGo(JSON.stringify(JSON.parse(PULL_SECRET), null, '\t')));
    expectNoCanary(base64(JSON.stringify(JSON.parse(PULL_SECRET), null, 4)));
  });

  it('in an address that is masked again', () => {
    const once = redaction.mask('see https://a.example/b?token=canary-again, please');
    expect(once).toBe('see https://a.example/b?token=[redacted], please');
    expect(redaction.mask(once)).toBe(once);
  });

  it('while the text around it is not', () => {
    redaction.add('hush');
    const text = `image quay.io/hushed/a@sha256:${'ab'.repeat(32)} of "hush": 12 MiB`;
    expect(redaction.mask(text)).toBe(text.replace('"hush"', '"[redacted]"'));
  });
});

it('a secret is masked by the redaction of the command line that read it, and by no other', () => {
  const [mine, other] = [createRedaction(), createRedaction()];
  credentialsFromPullSecret(PULL_SECRET, { name: 'pullSecret', redaction: mine });
  expect(mine.mask(`refused: ${TOKEN}`)).toBe('refused: [redacted]');
  expect(other.mask(`refused: ${TOKEN}`)).toBe(`refused: ${TOKEN}`);
});

describe('what a registry repeats of a credential is masked where the failure is printed', () => {
  it.each([
    ['a short message', 0],
    ['a message that is not shown, because it is too long', 5000],
  ])('%s', async (_, size) => {
    const server = createServer(({ headers }, response) => {
      const { authorization = '' } = headers;
      const login = Buffer.from(authorization.slice('Basic '.length), 'base64').toString();
      const message = `${'x '.repeat(size)}no ${authorization} (${login})`;
      const challenge = { 'www-authenticate': 'Basic realm="r"' };
      response.writeHead(authorization === '' ? 401 : 403, challenge);
      response.end(JSON.stringify({ errors: [{ code: 'DENIED', message }] }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const registry = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const auth = join(directory, 'login.json');
    writeFileSync(auth, JSON.stringify({ auths: { [registry]: { auth: AUTH } } }));
    const log = join(directory, 'run.log');
    const { exitCode, stderr } = await runLine(
      ['catalog', 'list', `${registry}/catalog:v1`, '--log-file', log, '-v'],
      { cwd: directory, env: { REGISTRY_AUTH_FILE: auth } },
    );
    server.close();
    expect(exitCode).toBe(4);
    for (const printed of [stderr, readFileSync(log, 'utf8')]) {
      expect(printed).toContain(size === 0 ? 'DENIED: no Basic [redacted] ([redacted])' : '[10');
      expect(CANARIES.filter((canary) => printed.includes(canary))).toEqual([]);
    }
  });
});

describe('the output of another program that fails is quoted', () => {
  const script = (name: string, ...lines: readonly string[]): string => {
    const path = join(directory, name);
    writeFileSync(path, `#!/bin/sh\n${lines.join('\n')}\n`);
    chmodSync(path, 0o755);
    return path;
  };

  it('without a pull secret in any form, as the installer may print it', async () => {
    writeFileSync(join(directory, 'a.json'), JSON.stringify(JSON.parse(PULL_SECRET), null, 2));
    const path = script('installer', `cat ${directory}/a.json >&2`, 'echo level=fatal >&2; exit 1');
    const failure = await runProcess(path, []).then(() => 'no failure', String);
    expect(failure).toContain('level=fatal');
    expectNoCanary(failure);
  });

  it.each([
    ['an answer', '{"ServerURL":"a","Username":"canary-u1","Secret":"canary\\"unheard"}'],
    [
      'an entry of a file',
      '{"auths":{"a":{"password":"canary-stored","identitytoken":"canary-t"}}}',
    ],
    ['an answer in quotes', String.raw`"{\"Username\":\"canary-u2\",\"Secret\":\"canary-inner\"}"`],
    ['free text', 'password canary-free for canary-u3 is no longer valid'],
    ['free text around a known message', 'canary-a: pass store is uninitialized'],
  ])('without what a failing credential helper prints: %s', async (_, answer) => {
    script('docker-credential-evil', `echo '${answer}' >&2; echo locked >&2; exit 1`);
    const auth = join(directory, 'auth.json');
    writeFileSync(auth, '{"credHelpers":{"a.example":"evil"}}');
    const env = {
      REGISTRY_AUTH_FILE: auth,
      PATH: `${directory}${delimiter}${process.env['PATH'] ?? ''}`,
    };
    const { signal } = new AbortController();
    const failure = await credentialsFromFiles(env, redaction)
      .find({ registry: 'a.example', repository: 'b' }, signal)
      .then(
        () => 'no failure',
        (error: unknown) => inspect(error),
      );
    expect(failure).toContain('docker-credential-evil gives no answer for a.example');
    expect(failure).toContain('exit code 1');
    expect(failure).not.toContain('locked');
    expectNoCanary(failure);
  });
});
