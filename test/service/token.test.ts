import { execFile } from 'node:child_process';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { exportJWK, SignJWT, type JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runLine } from '../support/run-line.ts';
import { API, startService, type TestService } from '../support/service.ts';
import { serveByTls, type TlsServer } from '../support/tls-server.ts';
import { requireTool } from '../support/tools.ts';
import { createRedaction } from '../../src/base/text/redact.ts';

const run = promisify(execFile);
const hasOpenssl = requireTool('openssl');
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-token-'));
});
afterAll(() => rm(directory, { recursive: true }));

const token = (...args: string[]) => runLine(['token', ...args], { cwd: directory });
const statusOf = async (service: TestService, token: string): Promise<number> =>
  (await service.call('GET', `${API}/v2/clusters`, { token })).status;

describe.skipIf(!hasOpenssl)('a token that is issued on the command line', () => {
  it('is accepted by a service with the public key, for its tenant, and verified by openssl', async () => {
    const made = await token('keys', '--out', 'keys');
    expect(made).toMatchObject({ exitCode: 0 });
    expect(made.stdout + made.stderr).not.toContain('PRIVATE KEY');
    expect((await stat(join(directory, 'keys/issuer.key'))).mode & 0o777).toBe(0o600);
    expect(await token('keys', '--out', 'keys')).toMatchObject({ exitCode: 2 });
    const keys = await readFile(join(directory, 'keys/issuer.pub'), 'utf8');
    const service = await startService({ auth: { type: 'local', keys, issuer: 'me' } });
    const issue = async (...args: string[]): Promise<string> => {
      const line = ['issue', '--private-key', 'file:keys/issuer.key', '--user', 'alice', ...args];
      const { exitCode, stdout, stderr } = await token(...line);
      expect([exitCode, stderr]).toEqual([0, '']);
      return stdout.trim();
    };
    const good = await issue('--issuer', 'me', '--org', '7', '--lifetime', '5m');
    expect(await statusOf(service, good)).toBe(200);
    const body = { name: 'edge', openshift_version: '4.21.3' };
    const made201 = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body,
      token: good,
    });
    expect(made201.body).toMatchObject({ user_name: 'alice', org_id: '7' });
    expect(await statusOf(service, await issue())).toBe(401);
    const [head = '', claims = '', signature = ''] = good.split('.');
    const forged = Buffer.from(
      Buffer.from(claims, 'base64url').toString().replace('"7"', '"8"'),
    ).toString('base64url');
    expect(await statusOf(service, [head, forged, signature].join('.'))).toBe(401);
    const raw = Buffer.from(signature, 'base64url');
    await writeFile(join(directory, 'signature'), encodeSignature(raw));
    await writeFile(join(directory, 'signed'), `${head}.${claims}`);
    const verify = ['-verify', 'keys/issuer.pub', '-signature', 'signature', 'signed'];
    const { stdout } = await run('openssl', ['dgst', '-sha256', ...verify], { cwd: directory });
    expect(stdout).toBe('Verified OK\n');
    await service.close();
  });

  it('can be signed with any kind of key that the service verifies, and with no other', async () => {
    const make = async (...args: string[]): Promise<void> => {
      await run('openssl', ['genpkey', '-out', 'a.key', ...args], { cwd: directory });
    };
    for (const args of [
      ['-algorithm', 'ed25519'],
      ['-algorithm', 'RSA'],
      ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'],
    ]) {
      await make(...args);
      await run('openssl', ['pkey', '-in', 'a.key', '-pubout', '-out', 'a.pub'], {
        cwd: directory,
      });
      const keys = await readFile(join(directory, 'a.pub'), 'utf8');
      const service = await startService({ auth: { type: 'local', keys } });
      const line = ['issue', '--private-key', 'file:a.key', '--user', 'a', '-o', 'json'];
      const { stdout } = await token(...line);
      const { token: value } = JSON.parse(stdout) as { token: string };
      expect(await statusOf(service, value)).toBe(200);
      await service.close();
    }
    await make('-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1');
    const issue = ['issue', '--private-key', 'file:a.key', '--user'];
    const refused = await token(...issue, 'a');
    expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringContaining('[token.key]')]);
    await writeFile(join(directory, 'a.key'), 'no-key-at-all-canary');
    const other = await token(...issue, 'a');
    expect(other.stderr).toContain('[token.key]');
    expect(other.stderr).not.toContain('no-key-at-all');
    expect((await token(...issue, 'a\nb')).stderr).toContain('[usage.user]');
    expect((await token(...issue, 'a', '--lifetime', '0s')).stderr).toContain('[usage.lifetime]');
  });
});

/** RFC 3279 2.2.3: what openssl takes, of two numbers one behind the other (RFC 7518 3.4). */
function encodeSignature(raw: Buffer): Buffer {
  const numbers = [raw.subarray(0, 32), raw.subarray(32)].map((number) => {
    const start = number.findIndex((byte) => byte !== 0);
    const plain = number.subarray(start);
    const bytes = (plain[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), plain]) : plain;
    return Buffer.concat([Buffer.of(2, bytes.length), bytes]);
  });
  const body = Buffer.concat(numbers);
  return Buffer.concat([Buffer.of(0x30, body.length), body]);
}

describe.skipIf(!hasOpenssl)('keys at a URL', () => {
  let issuer: TlsServer;
  let jwks: () => string | undefined = () => undefined;
  const [first, second] = ['k1', 'k2'].map((kid) => ({
    kid,
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  }));
  type Key = {
    readonly kid: string;
    readonly publicKey: KeyObject;
    readonly privateKey: KeyObject;
  };
  const listKeys = async (...keys: (Key | undefined)[]): Promise<string> => {
    const all = keys.map(async (key): Promise<JWK> =>
      key ? { ...(await exportJWK(key.publicKey)), kid: key.kid, alg: 'ES256' } : { kty: 'EC' },
    );
    return JSON.stringify({ keys: await Promise.all(all) });
  };
  const sign = (key: Key | undefined): Promise<string> =>
    new SignJWT({ sub: 'alice', preferred_username: 'alice' })
      .setProtectedHeader({ alg: 'ES256', kid: key?.kid ?? '' })
      .setExpirationTime('1h')
      .sign(key?.privateKey ?? Buffer.of());
  beforeAll(async () => {
    issuer = await serveByTls(directory, (_, response) => {
      const text = jwks();
      response.writeHead(text === undefined ? 503 : 200, { 'content-type': 'application/json' });
      response.end(text ?? '');
    });
  });
  afterAll(() => issuer.close());
  const serve = async (): Promise<TestService> => {
    const env = { SSL_CERT_FILE: join(directory, 'server.pem') };
    const host = {
      env,
      redaction: createRedaction(),
      cwd: directory,
      signal: new AbortController().signal,
      emit: () => undefined,
    };
    return startService({ auth: { type: 'rhsso', keys: `${issuer.url}/keys` }, host });
  };

  it('are fetched once for many requests, and again for an unknown key', async () => {
    const text = await listKeys(first);
    jwks = () => text;
    const service = await serve();
    const before = issuer.requests.length;
    const good = await sign(first);
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(service, good)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(issuer.requests.slice(before)).toEqual(['/keys']);
    expect(await statusOf(service, await sign(second))).toBe(401);
    expect(await statusOf(service, 'x.y.z')).toBe(401);
    expect(issuer.requests.length - before).toBeLessThanOrEqual(2);
    await service.close();
  });

  it('cause a 503 and not a 401 if they cannot be fetched, and earlier keys stay valid', async () => {
    for (const broken of [undefined, 'not JSON', '{"keys":5}', 'x'.repeat(2 << 20)]) {
      jwks = () => broken;
      const service = await serve();
      const { status, body } = await service.call('GET', `${API}/v2/clusters`, {
        token: await sign(first),
      });
      expect([status, body['reason']]).toEqual([
        503,
        'the keys of the token issuer cannot be fetched',
      ]);
      expect(await statusOf(service, 'x.y.z')).toBe(401);
      await service.close();
    }
    const text = await listKeys(first);
    jwks = () => text;
    const service = await serve();
    expect(await statusOf(service, await sign(first))).toBe(200);
    jwks = () => undefined;
    expect(await statusOf(service, await sign(first))).toBe(200);
    expect([401, 503]).toContain(await statusOf(service, await sign(second)));
    await service.close();
  });
});
