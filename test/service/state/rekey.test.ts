import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { rekeyRecords } from '../../../src/service/state/rekey.ts';
import { hasPostgres, startPostgres, type Postgres } from '../../support/postgres.ts';
import { API, PULL_SECRET, startService, type TestService } from '../../support/service.ts';

const OLD = new Secret('a'.repeat(64));
const NEW = new Secret('b'.repeat(64));
const WRONG = { code: 'service.key-wrong' };

const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const auth = {
  type: 'local' as const,
  keys: issuer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
};
const tokenOf = (user: string): Promise<string> =>
  new SignJWT({ sub: user })
    .setProtectedHeader({ alg: 'ES256' })
    .setExpirationTime('1h')
    .sign(issuer.privateKey);

const createInfraEnv = async (service: TestService, user: string): Promise<string> => {
  const body = { name: user, pull_secret: PULL_SECRET };
  const token = await tokenOf(user);
  const { status, body: made } = await service.call('POST', `${API}/v2/infra-envs`, {
    body,
    token,
  });
  expect(status).toBe(201);
  return String(made['id']);
};

const canRead = async (service: TestService, user: string, id: string): Promise<boolean> => {
  const token = await tokenOf(user);
  return (await service.call('GET', `${API}/v2/infra-envs/${id}`, { token })).status === 200;
};

describe.skipIf(!hasPostgres)('two replicas whose key is changed', () => {
  let postgres: Postgres;
  let data: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    data = await mkdtemp(join(tmpdir(), 'sealift-rekey-'));
  });
  afterAll(async () => {
    await postgres.stop();
    await rm(data, { recursive: true });
  });

  it('read and write for old and new tenants before, meanwhile and afterwards', async () => {
    const database = postgres.createDatabase();
    const common = { database, auth };
    const first = await startService({ ...common, key: OLD });
    const alice = await createInfraEnv(first, 'alice');
    // One replica after the other gets both keys: what one makes, the other can read.
    const one = await startService({ ...common, key: NEW, previousKey: OLD });
    const bob = await createInfraEnv(one, 'bob');
    expect(await canRead(first, 'bob', bob)).toBe(true);
    await first.close();
    const two = await startService({ ...common, key: NEW, previousKey: OLD });
    const place = { data, database, env: {}, signal: AbortSignal.timeout(60_000) };
    const rekey = rekeyRecords({ ...place, warn: () => undefined, key: NEW, previousKey: OLD });
    const meanwhile = await Promise.all(
      ['carol', 'dave', 'erin'].map((user, at) => createInfraEnv(at === 1 ? two : one, user)),
    );
    expect((await rekey).keys).toBeGreaterThanOrEqual(3);
    const fay = await createInfraEnv(one, 'fay');
    expect(await canRead(two, 'fay', fay)).toBe(true);
    const again = await rekeyRecords({ ...place, warn: () => undefined, key: NEW });
    expect(again).toEqual({ keys: 0, records: 0 });
    await Promise.all([one.close(), two.close()]);
    const last = await startService({ ...common, key: NEW });
    for (const [user, id] of [
      ['alice', alice],
      ['bob', bob],
      ['carol', meanwhile[0]],
      ['dave', meanwhile[1]],
      ['fay', fay],
    ] as const) {
      expect(await canRead(last, user, id ?? ''), user).toBe(true);
    }
    await last.close();
    await expect(startService({ ...common, key: OLD })).rejects.toMatchObject(WRONG);
  });
});

it('a service on files changes its key at a start with both, and keeps its URLs', async () => {
  const data = await mkdtemp(join(tmpdir(), 'sealift-rekey-'));
  const before = await startService({ data, auth, key: OLD });
  const id = await createInfraEnv(before, 'alice');
  await before.close();
  await (await startService({ data, auth, key: NEW, previousKey: OLD })).close();
  await expect(startService({ data, auth, key: OLD })).rejects.toMatchObject(WRONG);
  const after = await startService({ data, auth, key: NEW });
  expect(await canRead(after, 'alice', id)).toBe(true);
  await after.close();
  await rm(data, { recursive: true });
});
