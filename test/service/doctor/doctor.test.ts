import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { Secret } from '../../../src/base/secret.ts';
import { checkCertificate } from '../../../src/service/doctor/certificate.ts';
import { examineService, type DoctorSettings } from '../../../src/service/doctor/doctor.ts';
import { readMachineFacts } from '../../../src/service/doctor/facts.ts';
import { checkMachine } from '../../../src/service/doctor/machine.ts';
import { requireTool } from '../../support/tools.ts';

const NOW = Date.parse('2026-11-27T00:00:00Z');
const USER = process.geteuid?.() ?? 0;

let folder: string;
const at = (...names: readonly string[]): string => join(folder, ...names);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealift-doctor-'));
  for (const name of ['data', 'log', 'open', 'store']) mkdirSync(at(name), { mode: 0o700 });
  chmodSync(at('open'), 0o777);
  for (const name of ['key', 'shown', 'group', 'shared', 'open/key']) {
    writeFileSync(at(name), 'x', { mode: 0o600 });
  }
  chmodSync(at('shown'), 0o644);
  chmodSync(at('group'), 0o640);
  chmodSync(at('shared'), 0o666);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Settings that no rule objects to. */
const sound = (): DoctorSettings => ({
  files: {
    user: USER,
    secrets: [{ option: '--key', path: at('key') }],
    trusted: [],
    data: at('data'),
    stores: [],
    auditLog: at('log', 'audit.log'),
  },
  keys: {
    source: 'file:key',
    key: new Secret(randomBytes(32).toString('hex')),
    hasPrevious: false,
    databaseSource: 'env:DATABASE',
  },
  access: {
    auth: 'rhsso',
    hasIssuer: true,
    hasAudience: true,
    authLifetime: 3_600_000,
    urlLifetime: 3_600_000,
    isLoopback: false,
    hasTls: true,
    hasPlain: false,
    publicUrl: 'https://iso.example.com',
    corsOrigins: ['https://console.example.com'],
    proxies: ['192.0.2.7', '10.1.0.0/16'],
  },
  machine: {
    node: 'v24.1.0',
    now: NOW,
    user: 1000,
    coreLimit: 0,
    hasAuditLog: true,
    hasSyslog: true,
  },
});

type Change = {
  readonly [Part in keyof DoctorSettings]?: Partial<DoctorSettings[Part]>;
};

const examine = async (change: Change): Promise<readonly (readonly string[])[]> => {
  const { files, keys, access, machine } = sound();
  const found = await examineService({
    files: { ...files, ...change.files },
    keys: { ...keys, ...change.keys },
    access: { ...access, ...change.access },
    machine: { ...machine, ...change.machine },
  });
  return found.map(({ severity, code, file }) => [severity, code, file]);
};

it('sound settings have no finding', async () => {
  expect(await examine({})).toEqual([]);
});

const DAYS = 24 * 3_600_000;

const CASES: readonly (readonly [string, string, string, () => Change])[] = [
  ['error', 'doctor.secret-readable', '--key', () => secret('shown')],
  ['warning', 'doctor.secret-readable', '--key', () => secret('group')],
  ['error', 'doctor.file-writable', '--auth-keys', () => trusted('shared')],
  ['error', 'doctor.file-writable', '--auth-keys', () => trusted('open/key')],
  ['error', 'doctor.data-shared', '--data', () => ({ files: { data: at('open') } })],
  ['error', 'doctor.store-writable', '--store', () => ({ files: { stores: [at('open')] } })],
  ['error', 'doctor.audit-shared', '--audit-log', () => ({ files: { auditLog: at('open/a') } })],
  ['error', 'doctor.audit-shared', '--audit-log', () => ({ files: { auditLog: at('shared') } })],
  ['error', 'doctor.audit-shared', '--audit-log', () => ({ files: { auditLog: at('data') } })],
  ['warning', 'doctor.audit-shared', '--audit-log', () => ({ files: { auditLog: at('shown') } })],
  ['error', 'doctor.key-weak', '--key', () => key('k'.repeat(64))],
  ['error', 'doctor.key-weak', '--key', () => key(`${'0123456789abcdef'.repeat(4)}\n`)],
  ['warning', 'doctor.key-in-environment', '--key', () => ({ keys: { source: 'env:KEY' } })],
  ['warning', 'doctor.previous-key', '--previous-key', () => ({ keys: { hasPrevious: true } })],
  ['error', 'doctor.database-password', '--database', () => database('postgres://a:b@db/x')],
  ['error', 'doctor.database-tls', '--database', () => ({ keys: { databaseDoubt: 'plain' } })],
  ['error', 'doctor.no-auth', '--auth', () => ({ access: { auth: 'none' } })],
  ['error', 'doctor.no-audience', '--auth-audience', () => ({ access: { hasAudience: false } })],
  ['error', 'doctor.no-issuer', '--auth-issuer', () => ({ access: { hasIssuer: false } })],
  [
    'warning',
    'doctor.long-lifetime',
    '--auth-lifetime',
    () => ({ access: { authLifetime: 2 * DAYS } }),
  ],
  [
    'warning',
    'doctor.long-lifetime',
    '--url-lifetime',
    () => ({ access: { urlLifetime: 2 * DAYS } }),
  ],
  ['warning', 'doctor.no-tls', '--tls-cert', () => ({ access: { hasTls: false } })],
  ['warning', 'doctor.plain-listener', '--listen-http', () => ({ access: { hasPlain: true } })],
  [
    'error',
    'doctor.plain-url',
    '--public-url',
    () => ({ access: { publicUrl: 'http://a.example' } }),
  ],
  [
    'warning',
    'doctor.plain-origin',
    '--cors-origin',
    () => ({ access: { corsOrigins: ['http://a.example'] } }),
  ],
  ['error', 'doctor.wide-proxy', '--trusted-proxy', () => ({ access: { proxies: ['0.0.0.0/0'] } })],
  ['error', 'doctor.wide-proxy', '--trusted-proxy', () => ({ access: { proxies: ['::/0'] } })],
  ['error', 'doctor.root', 'process', () => ({ machine: { user: 0 } })],
  ['warning', 'doctor.core-dumps', 'process', () => ({ machine: { coreLimit: Infinity } })],
  ['error', 'doctor.no-audit', '--audit-log', () => ({ machine: { hasAuditLog: false } })],
  [
    'warning',
    'doctor.audit-here-alone',
    '--audit-syslog',
    () => ({ machine: { hasSyslog: false } }),
  ],
  ['error', 'doctor.runtime-end', 'process', () => ({ machine: { node: 'v20.20.0' } })],
];

it.each(CASES)('%s %s at %s is found alone', async (...[severity, code, place, change]) => {
  expect(await examine(change())).toEqual([[severity, code, place]]);
});

const secret = (name: string): Change => ({
  files: { secrets: [{ option: '--key', path: at(name) }] },
});
const trusted = (name: string): Change => ({
  files: { trusted: [{ option: '--auth-keys', path: at(name) }] },
});
const key = (text: string): Change => ({ keys: { key: new Secret(text) } });
const database = (databaseSource: string): Change => ({ keys: { databaseSource } });

it('without TLS and without a proxy with TLS, a service for others is refused; on loopback it is not', async () => {
  const access = { hasTls: false, publicUrl: undefined };
  expect(await examine({ access })).toEqual([['error', 'doctor.no-tls', '--tls-cert']]);
  expect(await examine({ access: { ...access, isLoopback: true, auth: 'none' } })).toEqual([]);
});

it('the end of a version of Node.js is a day, by the given clock; later versions are not judged', () => {
  const { machine } = sound();
  const judge = (node: string, now: string) =>
    checkMachine({ ...machine, node, now: Date.parse(now) }).map(({ code }) => code);
  expect(judge('v20.19.0', '2026-04-30T23:59:59Z')).toEqual([]);
  expect(judge('v20.19.0', '2026-05-01T00:00:00Z')).toEqual(['doctor.runtime-end']);
  expect(judge('v16.0.0', '2024-01-01T00:00:00Z')).toEqual(['doctor.runtime-end']);
  expect(judge('v99.0.0', '2026-11-27T00:00:00Z')).toEqual([]);
});

it('reads the facts of this process', async () => {
  const { node, user, coreLimit } = await readMachineFacts();
  expect([node, user]).toEqual([process.version, process.geteuid?.()]);
  expect(coreLimit).toBeGreaterThanOrEqual(0);
});

describe.skipIf(!requireTool('openssl'))('a certificate', () => {
  const openssl = (...args: string[]) => runProcess('openssl', args, { cwd: folder });
  const make = async (name: string, kind: readonly string[], days = '365') => {
    const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:iso.example.com'];
    const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
    await openssl(
      'req',
      '-x509',
      '-nodes',
      '-days',
      days,
      '-newkey',
      ...kind,
      ...files,
      ...subject,
    );
  };
  const EC = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const issue = async (name: string, digest: string) => {
    await openssl(
      'req',
      '-new',
      '-nodes',
      '-newkey',
      ...EC,
      '-keyout',
      `${name}.key`,
      '-out',
      'csr',
      '-subj',
      `/CN=${name}`,
    );
    writeFileSync(at('ext'), 'subjectAltName=DNS:iso.example.com');
    const by = ['-CA', 'root.crt', '-CAkey', 'root.key', '-CAcreateserial', '-days', '365'];
    await openssl(
      'x509',
      '-req',
      '-in',
      'csr',
      ...by,
      `-${digest}`,
      '-extfile',
      'ext',
      '-out',
      `${name}.crt`,
    );
  };
  beforeAll(async () => {
    await make('root', EC);
    await make('rsa', ['rsa:1024']);
    await make('curve', ['ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1']);
    await make('short', EC, '20');
    await issue('good', 'sha256');
    await issue('sha1', 'sha1');
  });
  const judge = (names: readonly string[], publicUrl?: string, now = Date.now()) =>
    checkCertificate({
      cert: names.map((name) => readFileSync(at(`${name}.crt`), 'utf8')).join(''),
      publicUrl,
      now,
    }).map(({ severity, code }) => [severity, code.replace('doctor.certificate-', '')]);

  it('of an authority, with its chain, for the name of the service, has no finding', () => {
    expect(judge(['good'], 'https://iso.example.com:8443/x')).toEqual([]);
    expect(judge(['good', 'root'], 'https://iso.example.com')).toEqual([]);
  });

  it('has a finding for a weak key, a weak signature, another name, its time, its issuer and its order', () => {
    const self = ['warning', 'self-signed'];
    expect(judge(['root'])).toEqual([self]);
    expect(judge(['rsa'])).toEqual([['error', 'weak'], self]);
    expect(judge(['curve'])).toEqual([['error', 'weak'], self]);
    expect(judge(['sha1'])).toEqual([['error', 'weak']]);
    expect(judge(['good'], 'https://other.example.com')).toEqual([['error', 'name']]);
    expect(judge(['good'], 'https://192.0.2.1')).toEqual([['error', 'name']]);
    expect(judge(['good', 'rsa'])).toEqual([
      ['error', 'weak'],
      ['error', 'chain'],
    ]);
    expect(judge(['short'])).toEqual([['warning', 'expires'], self]);
    expect(judge(['good'], undefined, Date.now() + 366 * DAYS)).toEqual([['error', 'expires']]);
    expect(judge(['good'], undefined, Date.now() - DAYS)).toEqual([['error', 'expires']]);
  });
});
