import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { connect, createServer as createNetServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { diagnoseTls } from '../../../src/base/http/tls-failure.ts';
import { readBodyText } from '../../../src/base/http/body.ts';
import { requireTool } from '../../support/tools.ts';

const { signal } = new AbortController();
let cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
  cleanUps = [];
});

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanUps.push(() => {
    if ('closeAllConnections' in server)
      (server as unknown as { closeAllConnections: () => void }).closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The error of a request, or the text of its answer. */
async function ask(url: string, env: NodeJS.ProcessEnv = {}, insecure = false) {
  const http = createHttp({ redaction: createRedaction(), env });
  cleanUps.push(() => http.close());
  try {
    const { body } = await http.request({ url: new URL(url), signal, tls: { insecure } });
    return { text: await readBodyText(body) };
  } catch (error) {
    const { code, message, expected, found, hint } = error as Record<string, string>;
    return { code, message, expected, found, hint };
  }
}

/** Opens a tunnel to every target, and counts them. */
async function startProxy(): Promise<{ port: number; targets: string[] }> {
  const targets: string[] = [];
  const server = createPlainServer();
  server.on('connect', ({ url = '' }, socket) => {
    targets.push(url);
    const [host = '', port] = url.split(':');
    const far = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      far.pipe(socket).pipe(far);
    });
    far.on('error', () => socket.destroy());
    socket.on('error', () => far.destroy());
  });
  return { port: await listen(server), targets };
}

/** A proxy of RFC 1928 with a user and a password (RFC 1929). */
async function startSocks(): Promise<{ port: number; logins: string[] }> {
  const logins: string[] = [];
  const server = createNetServer((socket) => {
    let step = 0;
    socket
      .on('error', () => undefined)
      .on('data', (data) => {
        step += 1;
        if (step === 1) socket.write(Buffer.of(5, data.includes(2, 2) ? 2 : 0));
        if (step === 2) {
          const [, length = 0] = data;
          logins.push(
            `${data.toString('latin1', 2, 2 + length)}:${data.toString('latin1', 3 + length)}`,
          );
          socket.write(Buffer.of(1, 0));
        }
        if (step !== 3) return;
        socket.removeAllListeners('data');
        const port = data.readUInt16BE(data.length - 2);
        const far = connect(port, '127.0.0.1', () => {
          socket.write(Buffer.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 0));
          far.pipe(socket).pipe(far);
        });
        far.on('error', () => socket.destroy());
      });
  });
  return { port: await listen(server), logins };
}

describe.skipIf(!requireTool('openssl'))('a server with TLS', () => {
  let directory: string;
  const run = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' });
  const read = (name: string) => readFileSync(join(directory, name));

  /** Issues `NAME.pem` with `NAME.key`, by `openssl ca`, which alone takes any dates. */
  function issue(name: string, [from, to]: readonly [string, string], extensions: string): void {
    writeFileSync(
      join(directory, `${name}.ext`),
      `[v3]\nbasicConstraints=CA:FALSE\n${extensions}\n`,
    );
    run(
      'req',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
      '-subj',
      '/CN=127.0.0.1',
    );
    run(
      ...['ca', '-batch', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key'],
      ...[
        '-startdate',
        from,
        '-enddate',
        to,
        '-in',
        `${name}.csr`,
        '-out',
        `${name}.pem`,
        '-notext',
      ],
      ...['-extfile', `${name}.ext`, '-extensions', 'v3'],
    );
  }

  const NOW = ['20240101000000Z', '20990101000000Z'] as const;
  const OURS = 'subjectAltName=IP:127.0.0.1';

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'tls-'));
    mkdirSync(join(directory, 'new'));
    writeFileSync(join(directory, 'index'), '');
    writeFileSync(
      join(directory, 'ca.cnf'),
      '[ca]\ndefault_ca=x\n[x]\ndatabase=index\nnew_certs_dir=new\nrand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n',
    );
    const root = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30000'];
    run(...root, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test CA');
    run(...root, '-keyout', 'squid.key', '-out', 'squid.pem', '-subj', '/CN=Squid CA of a company');
    run(...root, '-keyout', 'self.key', '-out', 'self.pem', '-subj', '/CN=nobody', '-addext', OURS);
    issue('good', NOW, OURS);
    issue('expired', ['20200101000000Z', '20210101000000Z'], OURS);
    issue('early', ['20980101000000Z', '20990101000000Z'], OURS);
    issue('other', NOW, 'subjectAltName=DNS:a.example,DNS:b.example');
    issue('common', NOW, 'keyUsage=digitalSignature');
    issue('client', NOW, `${OURS}\nextendedKeyUsage=clientAuth`);
    run(
      'x509',
      '-req',
      '-in',
      'good.csr',
      '-CA',
      'squid.pem',
      '-CAkey',
      'squid.key',
      '-CAcreateserial',
      '-out',
      'read.pem',
      '-days',
      '9000',
      '-extfile',
      'good.ext',
      '-extensions',
      'v3',
    );
    writeFileSync(join(directory, 'read.key'), read('good.key'));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  async function serve(name: string): Promise<string> {
    const pair = { cert: read(`${name}.pem`), key: read(`${name}.key`) };
    return `https://127.0.0.1:${await listen(createServer(pair, (_, response) => response.end('hello')))}/`;
  }
  const trust = () => ({ SSL_CERT_FILE: join(directory, 'ca.pem') });

  it('is asked if its certificate is whole', async () => {
    expect(await ask(await serve('good'), trust())).toEqual({ text: 'hello' });
  });

  it.each([
    [
      'expired',
      /has an expired certificate/,
      /2020-01-01T00:00:00Z to 2021-01-01T00:00:00Z/,
      /correct the clock/,
    ],
    ['early', /not valid yet/, /2098-01-01T00:00:00Z/, /correct the clock of this machine/],
    [
      'other',
      /does not cover this name/,
      /DNS:a.example, DNS:b.example/,
      /name that the certificate covers/,
    ],
    ['common', /a common name only/, /ERR_TLS_CERT_ALTNAME_INVALID/, /subjectAltName/],
    ['client', /must not have/, /INVALID_PURPOSE/, /serverAuth/],
  ])(
    'with the wrong certificate (%s) is refused with both values and a hint',
    async (...[name, message, found, hint]) => {
      const error = await ask(await serve(name), trust());
      expect(error).toMatchObject({ code: 'registry.certificate' });
      expect(error.message).toMatch(message);
      expect(error.found).toMatch(found);
      expect(error.hint).toMatch(hint);
    },
  );

  it('names the time of this machine if a certificate is expired', async () => {
    const before = new Date().toISOString().slice(0, 10);
    const { expected = '' } = await ask(await serve('expired'), trust());
    expect(expected).toContain(`valid at ${before.slice(0, 4)}-`);
  });

  it.each([
    [
      'good',
      /unknown CA/,
      /"CN=test CA"/,
      /add the CA that signed it: SSL_CERT_FILE, build\.caBundle/,
    ],
    ['read', /unknown CA/, /Squid CA/, /a proxy seems to sign in the name of servers: add its CA/],
    ['self', /self-signed/, /signed by itself/, /if it is the right one \(SHA-256 [0-9A-F:]{95}\)/],
  ])(
    'that nobody vouches for (%s) is refused with the CA to add',
    async (...[name, message, found, hint]) => {
      const error = await ask(await serve(name));
      expect(error).toMatchObject({ code: 'registry.certificate' });
      expect(error.message).toMatch(message);
      expect(error.found).toMatch(found);
      expect(error.hint).toMatch(hint);
    },
  );

  it('names the proxy that may have opened the connection', async () => {
    // Loopback is reached without a proxy, and the certificate is for another name in any case.
    const { port, targets } = await startProxy();
    const { port: far } = new URL(await serve('good'));
    const http_proxy = `http://127.0.0.1:${port}`;
    const error = await ask(`https://0.0.0.0:${far}/`, { https_proxy: http_proxy });
    expect(targets).toEqual([`0.0.0.0:${far}`]);
    expect(error.hint).toContain(`proxy ${http_proxy} may sign in the name of servers`);
  });

  it('without TLS is named as such', async () => {
    const port = await listen(createPlainServer((_, response) => response.end('plain')));
    expect(await ask(`https://127.0.0.1:${port}/`)).toMatchObject({
      code: 'registry.unreachable',
      message: `127.0.0.1:${port} does not speak TLS on this port`,
      hint: expect.stringContaining('build.insecureRegistries') as string,
    });
  });

  it('that is a proxy without TLS is not asked again', async () => {
    const { port } = await startProxy();
    const https_proxy = `https://127.0.0.1:${port}`;
    expect(await ask('https://registry.invalid/', { https_proxy })).toMatchObject({
      code: 'proxy.unreachable',
      hint: expect.stringContaining('write http:// in HTTPS_PROXY') as string,
    });
  });

  it('that speaks only old TLS is named as such', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    const pair = { cert: read('good.pem'), key: read('good.key') };
    const port = await listen(createServer({ ...old, ...pair }));
    const error = await ask(`https://127.0.0.1:${port}/`, trust());
    expect(error).toMatchObject({ code: 'registry.unreachable', expected: 'TLS 1.2 or TLS 1.3' });
  });

  it('that asks for a client certificate is named as such', async () => {
    const pair = { cert: read('good.pem'), key: read('good.key'), ca: read('ca.pem') };
    const server = createServer({
      ...pair,
      requestCert: true,
      rejectUnauthorized: true,
      maxVersion: 'TLSv1.2',
    });
    const port = await listen(server);
    const error = await ask(`https://127.0.0.1:${port}/`, trust());
    expect(error.hint).toContain(`certs.d/127.0.0.1:${port}`);
  });

  it('is not asked by a proxy with TLS to forward plain HTTP before the proxy is verified', async () => {
    const pair = { cert: read('good.pem'), key: read('good.key') };
    const asked: string[] = [];
    const server = createServer(pair, ({ url = '' }, response) => {
      asked.push(url);
      response.end('hello');
    });
    const http_proxy = `https://127.0.0.1:${await listen(server)}`;
    const url = 'http://registry.invalid/v2/';
    expect(await ask(url, { http_proxy })).toMatchObject({ code: 'proxy.certificate' });
    expect(asked).toEqual([]);
    expect(await ask(url, { http_proxy, ...trust() })).toEqual({ text: 'hello' });
    expect(asked).toEqual([url]);
  });

  it('is reached through SOCKS with the bytes of a password in Latin-1', async () => {
    const { port, logins } = await startSocks();
    const plain = await listen(createPlainServer((_, response) => response.end('hello')));
    const http_proxy = `socks5://user:s3cr%F6t@127.0.0.1:${port}`;
    expect(await ask(`http://0.0.0.0:${plain}/`, { http_proxy })).toEqual({ text: 'hello' });
    expect(logins).toEqual(['user:s3cr\u00F6t']);
  });

  it('is reached through SOCKS with the decoded password, and verified', async () => {
    const { port, logins } = await startSocks();
    const { port: far } = new URL(await serve('good'));
    const https_proxy = `socks5://user:p%25w%23@127.0.0.1:${port}`;
    const error = await ask(`https://0.0.0.0:${far}/`, { https_proxy, ...trust() });
    expect(logins).toEqual(['user:p%w#']);
    expect(error).toMatchObject({ code: 'registry.certificate', expected: '0.0.0.0' });
    const plain = await listen(createPlainServer((_, response) => response.end('hello')));
    expect(await ask(`http://0.0.0.0:${plain}/`, { http_proxy: https_proxy })).toEqual({
      text: 'hello',
    });
  });
});

it.each([
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_SIGNATURE_FAILURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'INVALID_CA',
  'PATH_LENGTH_EXCEEDED',
  'INVALID_PURPOSE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'HOSTNAME_MISMATCH',
  'UNSPECIFIED',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
])('every failure of a certificate has a hint: %s', (code) => {
  expect(diagnoseTls({ host: 'a.example', code, failure: {} })).toMatchObject({
    isCertificate: true,
    found: code,
    hint: expect.stringMatching(/\w{4}/) as string,
  });
});
