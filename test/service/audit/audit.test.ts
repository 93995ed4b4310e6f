import { generateKeyPairSync } from 'node:crypto';
import { cp, mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { formatAuditLine, readAuditLine } from '../../../src/service/audit/chain.ts';
import { verifyAuditLog } from '../../../src/service/audit/verify.ts';
import {
  API,
  PULL_SECRET,
  SSH_KEY,
  startService,
  type TestService,
} from '../../support/service.ts';

const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const auth = {
  type: 'local' as const,
  keys: issuer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
};
const tokenOf = (sub: string): Promise<string> =>
  new SignJWT({ sub, org_id: '7' })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer('https://sso.example.com')
    .setExpirationTime('1h')
    .sign(issuer.privateKey);

type Entry = {
  readonly event: string;
  readonly sequence: number;
  readonly what?: Readonly<Record<string, unknown>>;
  readonly who?: Readonly<Record<string, unknown>>;
  readonly ledger?: { readonly seq: number };
  readonly count?: number;
};

let folder: string;
let log: string;
let data: string;
let token: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-audit-'));
  log = join(folder, 'log', 'audit.log');
  data = join(folder, 'data');
  token = await tokenOf('alice');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const start = (more: Partial<Parameters<typeof startService>[0]> = {}): Promise<TestService> =>
  startService({ data, auth, audit: { file: log, settings: 'sha256:0' }, ...more });
const readEntries = async (path = log): Promise<readonly Entry[]> =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry);
const eventsOf = (entries: readonly Entry[]): readonly string[] =>
  entries.map(({ event }) => event);
const createInfraEnv = async (service: TestService, name = 'edge'): Promise<string> => {
  const body = { name, pull_secret: PULL_SECRET, ssh_authorized_key: SSH_KEY };
  const made = await service.call('POST', `${API}/v2/infra-envs`, { body, token });
  expect(made.status).toBe(201);
  return String(made.body['id']);
};

it('has who made which change before the change is answered, without a secret', async () => {
  const service = await start();
  const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, {
    body: { name: 'c', openshift_version: '4.21.3' },
    token,
  });
  const id = await createInfraEnv(service);
  const path = `${API}/v2/infra-envs/${id}`;
  const after = await readEntries();
  expect(eventsOf(after)).toEqual(['process.start', 'cluster.create', 'infra_env.create']);
  expect(after[2]).toMatchObject({
    what: { id, revision: 1 },
    who: {
      issuer: 'https://sso.example.com',
      subject: 'alice',
      tenant: '["https://sso.example.com","org","7"]',
      address: '127.0.0.1',
    },
    ledger: { seq: 3 },
  });
  await service.call('PATCH', path, { body: { ssh_authorized_key: '' }, token });
  await service.call('POST', `${path}/regenerate-signing-key`, { token });
  const url = `${path}/downloads/image-urls`;
  await service.call('POST', url, { body: { host: 'worker-1' }, token });
  await service.call('DELETE', `${url}?host=worker-1`, { token });
  await service.call('GET', `${path}/downloads/files-presigned?file_name=discovery.ign`, { token });
  await service.call('DELETE', path, { token });
  await service.call('DELETE', `${API}/v2/clusters/${String(cluster.body['id'])}`, { token });
  await service.close();
  const all = await readEntries();
  expect(eventsOf(all.slice(3))).toEqual([
    'infra_env.update',
    'infra_env.update',
    'url.issue',
    'url.revoke',
    'url.issue',
    'infra_env.delete',
    'cluster.delete',
    'process.stop',
  ]);
  const text = await readFile(log, 'utf8');
  const secrets = [token, 'canary-password', 'dXNlcjpjYW5hcnktcGFzc3dvcmQ', 'AAAAC3NzaC1lZDI1NTE5'];
  for (const secret of secrets) expect(text).not.toContain(secret);
  expect((await stat(log)).mode & 0o777).toBe(0o600);
  expect(await verifyAuditLog([log])).toMatchObject({ lines: all.length, isFromBeginning: true });
});

it('every route that changes something, and was answered with success, has a line', async () => {
  const service = await start();
  const changing = service.routes.filter(({ method }) => !['ALL', 'GET'].includes(method));
  const known = [
    'DELETE /v2/clusters/:cluster_id',
    'DELETE /v2/infra-envs/:infra_env_id',
    'DELETE /v2/infra-envs/:infra_env_id/downloads/image-urls',
    'PATCH /v2/clusters/:cluster_id', // always refused
    'PATCH /v2/infra-envs/:infra_env_id',
    'POST /sealift/forms/check', // stores nothing
    'POST /sealift/forms/host-table',
    'POST /sealift/forms/networks',
    'POST /v2/clusters', // always refused
    'POST /v2/clusters/disconnected',
    'POST /v2/infra-envs',
    'POST /v2/infra-envs/:infra_env_id/downloads/image-urls',
    'POST /v2/infra-envs/:infra_env_id/hosts', // always refused
    'POST /v2/infra-envs/:infra_env_id/regenerate-signing-key',
  ];
  const found = changing.map(({ method, path }) => `${method} ${path.replace(API, '')}`);
  expect([...new Set(found)].sort()).toEqual(known);
  await service.close();
});

it('counts tokens that are refused, and has a line for the first of a kind', async () => {
  let clock = Date.parse('2026-01-01T00:00:00Z');
  const service = await start({ now: () => clock });
  for (let at = 0; at < 5; at += 1) {
    await service.call('GET', `${API}/v2/infra-envs`, { token: 'a.b.c' });
    await service.call('GET', `${API}/v2/infra-envs`);
  }
  clock += 120_000;
  await service.close();
  const refused = (await readEntries()).filter(({ event }) => event === 'request.refuse');
  expect(
    refused.map(({ what, who, count }) => [what?.['reason'], who?.['address'], count]),
  ).toEqual([
    ['the token is not valid', '127.0.0.1', undefined],
    ['a bearer token is required', '127.0.0.1', undefined],
    ['the token is not valid', '127.0.0.1', 4],
    ['a bearer token is required', '127.0.0.1', 4],
  ]);
  expect(await readFile(log, 'utf8')).not.toContain('a.b.c');
});

it('a line that was changed, left out or moved is named, and a log made again has another hash', async () => {
  const service = await start();
  await createInfraEnv(service);
  await service.close();
  const { last } = await verifyAuditLog([log]);
  const lines = (await readFile(log, 'utf8')).trimEnd().split('\n');
  const check = async (changed: readonly (string | undefined)[], expected?: string) => {
    const path = join(folder, 'changed.log');
    await writeFile(path, changed.map((line) => `${line ?? ''}\n`).join(''));
    return verifyAuditLog([path], expected);
  };
  const broken = (number: number) => ({
    code: 'audit.broken',
    exitCode: 8,
    message: expect.stringContaining(`line ${number} of`) as string,
  });
  const [one, two, three] = lines;
  const changed = [one, two?.replace('alice', 'mallory'), three];
  await expect(check(changed)).rejects.toMatchObject(broken(2));
  const tail = readAuditLine(one ?? '');
  if (!tail) throw new Error('the log has no first line');
  const forged = formatAuditLine(tail, { event: 'forged', time: tail.time }).text.trimEnd();
  await expect(check([one, forged, three])).rejects.toMatchObject(broken(3));
  await expect(check([one, three])).rejects.toMatchObject(broken(2));
  await expect(check([two, one, three])).rejects.toMatchObject(broken(2));
  await expect(check([one, ` ${two ?? ''}`])).rejects.toMatchObject(broken(2));
  await expect(check([one, 'x'.repeat(100_000)])).rejects.toMatchObject(broken(2));
  const deep = `{"a":${'['.repeat(15_000)}${']'.repeat(15_000)},"hash":"","previous":"","sequence":2,"time":""}`;
  await expect(check([one, deep])).rejects.toMatchObject(broken(2));
  expect(await check(lines, last.hash)).toMatchObject({ expectedAt: last.sequence });
  const cut = { code: 'audit.hash-missing', exitCode: 8 };
  await expect(check([one, two], last.hash)).rejects.toMatchObject(cut);
  await expect(check([])).rejects.toMatchObject({ code: 'audit.empty' });
});

it('is continued in a new file when it is moved away, while the service runs and before it starts', async () => {
  const first = await start();
  await createInfraEnv(first, 'one');
  await rename(log, `${log}.2`);
  await createInfraEnv(first, 'two');
  await first.close();
  await rename(log, `${log}.1`);
  const second = await start();
  await createInfraEnv(second, 'three');
  await second.close();
  const files = [`${log}.2`, `${log}.1`, log];
  const verified = await verifyAuditLog(files);
  expect(verified).toMatchObject({ lines: 7, isFromBeginning: true });
  expect(await verifyAuditLog([log])).toMatchObject({ isFromBeginning: false });
  await expect(verifyAuditLog([`${log}.2`, log])).rejects.toMatchObject({ code: 'audit.broken' });
});

it('goes on after a crash in the middle of a line, and says so', async () => {
  const first = await start();
  await createInfraEnv(first);
  await first.close();
  const whole = await readFile(log);
  await writeFile(log, Buffer.concat([whole, Buffer.from('{"event":"infra_env.cr')]));
  const second = await start();
  await second.close();
  const entries = await readEntries();
  expect(entries[3]).toMatchObject({ event: 'log.resume', torn: 22 });
  await verifyAuditLog([log]);
});

it('names what others did to the file, and goes on', async () => {
  const service = await start();
  await createInfraEnv(service, 'one');
  const { size } = await stat(log);
  await truncate(log, 10);
  await createInfraEnv(service, 'two');
  await service.close();
  expect(service.warnings.join()).toContain(`changed by others: 10 bytes, not ${size}`);
  const [, ...rest] = (await readFile(log, 'utf8')).split('\n').slice(0, -1);
  expect(rest.length).toBeGreaterThan(0);
  await expect(verifyAuditLog([log])).rejects.toMatchObject({ code: 'audit.broken' });
});

it('has one writer', async () => {
  const service = await start();
  const other = start({ data: join(folder, 'other') });
  await expect(other).rejects.toMatchObject({ code: 'service.audit-in-use' });
  await service.close();
});

it('is not continued behind a line that was changed', async () => {
  await (await start()).close();
  const text = await readFile(log, 'utf8');
  await writeFile(log, text.replace('process.stop', 'process.stap'));
  await expect(start()).rejects.toMatchObject({ code: 'service.audit-damaged' });
});

it('a restore of records and ledger together is refused by name, and accepted on demand alone', async () => {
  const backup = join(folder, 'backup');
  const first = await start();
  const kept = await createInfraEnv(first, 'one');
  await first.close();
  await cp(data, backup, { recursive: true });
  const second = await start();
  await createInfraEnv(second, 'two');
  await second.close();
  await rm(data, { recursive: true });
  await rename(backup, data);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(start()).rejects.toMatchObject({ code: 'service.restored', exitCode: 5 });
  }
  const accepted = await start({ audit: { file: log, settings: '', acceptRestore: true } });
  const answer = await accepted.call('GET', `${API}/v2/infra-envs/${kept}`, { token });
  expect(answer.status).toBe(200);
  await accepted.close();
  await (await start()).close();
  const events = eventsOf(await readEntries()).slice(6);
  expect(events).toEqual([
    'records.refuse',
    'records.refuse',
    'records.restore',
    ...['process.start', 'process.stop', 'process.start', 'process.stop'],
  ]);
  await verifyAuditLog([log]);
});
