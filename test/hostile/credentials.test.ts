import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { mayName, type Lookup } from '../../src/base/http/address.ts';
import { createHttp, type Http } from '../../src/base/http/http.ts';
import { parseNoProxy } from '../../src/base/http/address.ts';
import { openBuildTools } from '../../src/stages/tools.ts';
import { createTokens } from '../../src/registry/client/tokens.ts';
import { createTransport } from '../../src/registry/client/transport.ts';
import type { Credential } from '../../src/registry/client/credential-helper.ts';
import { credentialsFromFiles } from '../../src/registry/client/credentials.ts';
import { parseReference } from '../../src/registry/reference.ts';
import { createTestClient, storeOf } from '../support/registry-client.ts';
import { createTestRetries } from '../support/test-clock.ts';
import {
  imageManifest,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../support/scripted-registry.ts';

const redaction = createRedaction();

const { signal } = new AbortController();
const PASSWORD = 'canary-password-5d1e';
const credential: Credential = {
  kind: 'basic',
  username: 'puller',
  password: PASSWORD,
  from: 'entry A',
};

let registry: ScriptedRegistry;
let other: ScriptedRegistry;
let cleanUps: (() => unknown)[] = [];
beforeEach(async () => {
  registry = await startScriptedRegistry();
  other = await startScriptedRegistry();
  registry.addManifest(imageManifest('v1'), 'v1');
});
afterEach(async () => {
  for (const cleanUp of [...cleanUps.reverse(), registry.close, other.close]) await cleanUp();
  cleanUps = [];
});

/** A client that has the password of the registry, and of the other one where it is asked for it. */
function openClient(http: Http = createHttp({ redaction, env: {}, retries: createTestRetries() })) {
  const credentials = [storeOf({ [registry.host]: credential, [other.host]: credential })];
  const client = createTestClient({ http, credentials });
  cleanUps.push(() => client.close());
  return client;
}

const image = () => ({ registry: registry.host, repository: 'a/b', tag: 'v1' });
const ask = (text: string) => ({ status: 401, headers: { 'www-authenticate': text } });

/** Whether anything that was sent holds the password, in the clear or in base64. */
const sentPassword = ({ requests }: ScriptedRegistry): boolean =>
  requests.some((request) => {
    const [, value = ''] = /^Basic (.*)$/.exec(request.headers.authorization ?? '') ?? [];
    return `${JSON.stringify(request)}${Buffer.from(value, 'base64').toString()}`.includes(
      PASSWORD,
    );
  });

async function listen(server: Server | ReturnType<typeof createNetServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe('the password of a registry', () => {
  it('is not sent to a proxy if the registry is on this machine', async () => {
    const heard: string[] = [];
    const proxy = createServer().on('connection', (socket) => {
      socket.on('data', (bytes: Buffer) => heard.push(bytes.toString('latin1')));
      socket.destroy();
    });
    const at = `http://127.0.0.1:${await listen(proxy)}`;
    const env = { HTTP_PROXY: at, HTTPS_PROXY: at, ALL_PROXY: at };
    registry.script(({ headers }) => (headers.authorization ? undefined : ask('Basic realm="r"')));
    const client = openClient(createHttp({ redaction, env, retries: createTestRetries() }));
    await client.fetchManifest(image(), { signal });
    expect(sentPassword(registry)).toBe(true);
    expect(heard).toEqual([]);
  });

  it('is not given to a host that the ping is redirected to', async () => {
    const location = `http://${other.host}/v2/`;
    registry.script(({ path }) =>
      path === '/v2/' ? { status: 307, headers: { location } } : undefined,
    );
    for (const challenge of [
      `Bearer realm="http://${other.host}/token",service="evil"`,
      'Basic realm="evil"',
    ]) {
      other.script(({ path }) =>
        path.startsWith('/token') ? { status: 200, body: '{"token":"t"}' } : ask(challenge),
      );
      await openClient().fetchManifest(image(), { signal });
    }
    expect(sentPassword(other)).toBe(false);
    expect(other.requestsOf('/token')).toEqual([]);
    expect(registry.requests.map(({ headers }) => headers.authorization)).not.toContain('Bearer t');
    expect(sentPassword(registry)).toBe(false);
  });

  it('is not sent along a redirect of a token server', async () => {
    const location = `http://${other.host}/token`;
    registry.script(({ path, headers }) => {
      if (path.startsWith('/token')) return { status: 307, headers: { location } };
      return headers.authorization
        ? undefined
        : ask(`Bearer realm="http://${registry.host}/token"`);
    });
    other.script(() => ({ status: 401 }));
    const failure = openClient().fetchManifest(image(), { signal });
    await expect(failure).rejects.toMatchObject({
      code: 'registry.unauthorized',
      message: expect.stringContaining('an anonymous request') as string,
    });
    expect(sentPassword(other)).toBe(false);
  });
});

/** Names of this test's own DNS. */
const NAMES: Readonly<Record<string, string>> = {
  'registry.example': '203.0.113.7',
  'inside.example': '10.1.2.3',
  'localhost': '127.0.0.1',
  'here.example': '127.0.0.1',
  'beside.example': '169.254.1.1',
  'rebound.example': '127.0.0.1',
};

const lookup: Lookup = (name, report) => {
  const address = NAMES[name];
  if (address !== undefined) report(null, [{ address, family: 4 }]);
  else report(Object.assign(new Error('unknown name'), { code: 'ENOTFOUND' }), []);
};

describe('a token server', () => {
  const http = createHttp({ redaction, env: {}, retries: createTestRetries(), lookup });
  afterAll(() => http.close());

  /** The code of the failure of asking `realm` on behalf of a registry. */
  async function askRealm(base: string, realm: string): Promise<string> {
    const transport = createTransport(http, () => Promise.resolve({}));
    const tokens = createTokens({ transport, http, now: () => 0 });
    const endpoint = { host: new URL(base).host, insecure: false };
    const challenge = { scheme: 'bearer', parameters: { realm } };
    const failure = await tokens
      .get({
        endpoint,
        base: new URL(base),
        repository: 'a/b',
        scopes: ['repository:a/b:pull'],
        challenge,
        credential,
        signal,
        refused: undefined,
      })
      .then(String, (error: unknown) => error as { readonly code: string });
    return typeof failure === 'string' ? failure : failure.code;
  }

  it('gets no request for a public registry if it is on this machine, link-local or private', async () => {
    let connections = 0;
    const port = await listen(
      createNetServer((socket) => {
        connections += 1;
        socket.destroy();
      }),
    );
    const hosts = [
      ...['127.0.0.1', 'localhost', 'localhost.', '127.1', '2130706433', '0x7f.1', '0.0.0.0'],
      ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', 'rebound.example'],
      ...['169.254.169.254', '[fe80::1]', '[::ffff:169.254.169.254]', 'beside.example'],
      ...['10.0.0.1', '172.31.255.255', '192.168.0.1', '100.100.100.200', '[fd00:ec2::254]'],
      'inside.example',
    ];
    for (const host of hosts) {
      const code = await askRealm('https://registry.example/', `https://${host}:${port}/token`);
      expect([host, code]).toEqual([host, 'registry.realm']);
    }
    expect(connections).toBe(0);
  });

  it.each([
    [
      'a private registry may not name a name of this machine',
      '10.0.0.1',
      'here.example',
      'registry.realm',
    ],
    ['a private registry may not name this machine', '10.0.0.1', '127.0.0.1', 'registry.realm'],
    ['a private registry may not name link-local', '10.0.0.1', '169.254.1.1', 'registry.realm'],
    ['one on this machine may not name link-local', '127.0.0.1', '169.254.1.1', 'registry.realm'],
    ['one on this machine may name this machine', '127.0.0.1', 'here.example', 'reached'],
    ['one on this machine may name itself', '127.0.0.1', 'localhost', 'reached'],
  ])('%s', async (_, ...[base, realm, wanted]) => {
    const closed = createNetServer();
    const port = await listen(closed);
    await new Promise((resolve) => closed.close(resolve));
    const code = await askRealm(`https://${base}/`, `https://${realm}:${port}/token`);
    expect(code === 'registry.unreachable' ? 'reached' : code).toBe(wanted);
  });
});

it.each([
  ['private', 'private', true],
  ['loopback', 'private', true],
  ['public', 'private', false],
  ['link-local', 'link-local', true],
  ['private', 'loopback', false],
  ['loopback', 'public', true],
] as const)('a %s registry may name a token server that is %s: %s', (by, named, may) => {
  expect(mayName(by, named)).toBe(may);
});

/** The table of golang.org/x/net/http/httpproxy. */
const GO_NO_PROXY =
  'foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, ' +
  '10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64';

describe('sealift reads NO_PROXY as Go does:', () => {
  it.each([
    ['localhost', false],
    ['127.0.0.1', false],
    ['127.0.0.2', false],
    ['[::1]', false],
    ['[::2]', true],
    ['192.168.1.1', false],
    ['192.168.1.2', true],
    ['192.168.1.3', false],
    ['192.168.1.4', true],
    ['10.0.0.2', false],
    ['[2001:db8::52:0:1]', false],
    ['[2001:db8::52:0:2]', true],
    ['[2001:db8::52:0:3]', false],
    ['[2002:db8:a::123]', false],
    ['[fe80::424b:c8be:1643:a1b6]', true],
    ['barbaz.net', true],
    ['www.barbaz.net', false],
    ['foobar.com', false],
    ['www.foobar.com', false],
    ['foofoobar.com', true],
    ['baz.com', true],
    ['localhost.net', true],
    ['local.localhost', true],
    ['barbarbaz.net', true],
    ['wildcard.io', true],
    ['nested.wildcard.io', false],
    ['awildcard.io', true],
  ])('http://%s goes through the proxy: %s', (host, isProxied) => {
    expect(parseNoProxy(GO_NO_PROXY)(new URL(`http://${host}/`))).toBe(isProxied);
  });

  it.each([
    ['*', 'https://quay.io/', false],
    ['a.example,*', 'https://quay.io/', false],
    ['', 'https://quay.io/', true],
    ['', 'http://127.8.9.1:5000/', false],
    ['', 'http://[::ffff:127.0.0.1]:5000/', false],
    ['', 'http://localhost.:5000/', false],
    ['quay.io:443', 'https://quay.io/', false],
    ['quay.io:443', 'http://quay.io/', true],
    ['QUAY.io', 'https://quay.IO/', false],
    [' quay.io , ', 'https://cdn.quay.io/', false],
    ['.quay.io:8443', 'https://cdn.quay.io:8443/', false],
    ['.quay.io:8443', 'https://cdn.quay.io/', true],
    [':443', 'https://quay.io/', true],
    ['10.0.0.0/33', 'https://10.0.0.1/', true],
    ['10.0.0.0/8', 'https://ten.example/', true],
    ['::ffff:10.0.0.0/104', 'https://10.1.2.3/', false],
    ['[2001:db8::1]:8443', 'https://[2001:db8::1]:8443/', false],
    ['b\u00fccher.example', 'https://b\u00fccher.example/', false],
  ])('"%s" at %s: proxied is %s', (text, url, isProxied) => {
    expect(parseNoProxy(text)(new URL(url))).toBe(isProxied);
  });
});

describe('a refusal', () => {
  it.each([401, 403])('%s does not blame a credential that was not sent', async (status) => {
    registry.script(({ path }) => (path === '/v2/' ? undefined : { status }));
    await expect(openClient().fetchManifest(image(), { signal })).rejects.toMatchObject({
      message: expect.stringContaining(' refuses an anonymous request for a/b: ') as string,
      hint: expect.stringContaining('asks for no credential') as string,
    });
  });

  it('by a host that the registry redirects to blames that host', async () => {
    const location = `http://${other.host}/signed`;
    registry.script(({ path, headers }) => {
      if (path === '/v2/') return undefined;
      return headers.authorization
        ? { status: 307, headers: { location } }
        : ask('Basic realm="r"');
    });
    other.script(() => ({ status: 403 }));
    const failure = await openClient()
      .fetchManifest(image(), { signal })
      .then(String, (error: unknown) => error as Error);
    expect(failure).toMatchObject({ code: 'registry.forbidden', found: '403' });
    const message = failure instanceof Error ? failure.message : failure;
    expect(message).toContain(`${other.host}, to which ${registry.host} redirects`);
    expect(message).not.toContain('entry A');
  });
});

describe('an auth file', () => {
  it('is refused by name and not read if it is a pipe or larger than a megabyte', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sealift-auth-'));
    const [large, pipe] = [join(directory, 'large.json'), join(directory, 'pipe')];
    writeFileSync(large, Buffer.alloc((1 << 20) + 1, ' '));
    execFileSync('mkfifo', [pipe]);
    const reference = parseReference('quay.io/a/b:latest');
    const find = (path: string): Promise<unknown> =>
      credentialsFromFiles({ REGISTRY_AUTH_FILE: path }, redaction).find(reference, signal);
    await expect(find(large)).rejects.toMatchObject({ code: 'credentials.too-large' });
    await expect(find(pipe)).rejects.toMatchObject({ code: 'credentials.unreadable' });
    rmSync(directory, { recursive: true });
  });
});

it('a warning that passwords are sent without encryption names registries without verified TLS', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-insecure-'));
  const warnings: string[] = [];
  const tools = await openBuildTools({
    config: {
      build: { insecureRegistries: ['registry.example:5000', '127.0.0.1:5000', 'localhost'] },
    },
    workDir: join(folder, 'work'),
    env: {},
    redaction,
    cwd: folder,
    signal,
    program: `sha256:${'0'.repeat(64)}`,
    emit: (event) => {
      if (event.type === 'warning') warnings.push(event.message);
    },
  });
  await tools.close();
  rmSync(folder, { recursive: true });
  expect(warnings).toEqual([
    'TLS of registry.example:5000 is not verified: passwords may be sent without encryption, ' +
      'or to another server that answers in its place',
  ]);
});
