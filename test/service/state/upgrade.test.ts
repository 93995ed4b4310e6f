import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { rekeyRecords } from '../../../src/service/state/rekey.ts';
import { API, SSH_KEY, startService } from '../../support/service.ts';

/* Owns the reading of a store of the first format. The program of that time wrote first-format.json. */

const KEY = new Secret('the key of a store of the first format');
const ID = '1e921291-df44-434c-a695-085c9c576f53';
const CLUSTER = 'cd99246c-6707-4ddb-b978-e85e3a48f2f3';
/** Of the organisation 7. */
const OTHER = '40187bcc-15e7-48ba-94be-7451ff5b9a55';
const PATH = `${API}/v2/infra-envs/${ID}`;

const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const auth = {
  type: 'local' as const,
  keys: issuer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
};
const tokenOf = (org: string): Promise<string> =>
  new SignJWT({ sub: 'bob', org_id: org })
    .setProtectedHeader({ alg: 'ES256' })
    .setExpirationTime('1h')
    .sign(issuer.privateKey);

describe('records of the first format', () => {
  let data: string;
  beforeEach(async () => {
    data = await mkdtemp(join(tmpdir(), 'sealift-first-format-'));
    const files = JSON.parse(
      await readFile(new URL('first-format.json', import.meta.url), 'utf8'),
    ) as Readonly<Record<string, string>>;
    for (const [name, text] of Object.entries(files)) {
      const path = join(data, 'records', name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text, { mode: 0o600 });
    }
  });
  afterEach(() => rm(data, { recursive: true }));

  const readStored = (): Promise<string> =>
    readFile(join(data, `records/infra-envs/${ID}.json`), 'utf8');

  it('are read with all their values, and get the new format when they change', async () => {
    const first = await startService({ data, key: KEY });
    expect(first.warnings).toEqual([]);
    const { body } = await first.call('GET', PATH);
    expect(body).toMatchObject({
      ...{ name: 'edge', cluster_id: CLUSTER, openshift_version: '4.20.3' },
      ...{ ssh_authorized_key: SSH_KEY, rendezvous_ip: '192.0.2.7', pull_secret_set: true },
    });
    expect((await first.call('GET', `${API}/v2/clusters/${CLUSTER}`)).body['name']).toBe('edge');
    const list = await first.call('GET', `${API}/v2/infra-envs?cluster_id=${CLUSTER}`);
    expect(list.text).toContain(ID);
    expect(await readStored()).toContain('"sealed"');
    const patch = { body: { rendezvous_ip: '192.0.2.8' } };
    expect((await first.call('PATCH', PATH, patch)).status).toBe(201);
    expect(await readStored()).toMatch(/"body":\{"encrypted":"[^"]+"\}/);
    await first.close();
    const again = await startService({ data, key: KEY });
    expect((await again.call('GET', PATH)).body).toMatchObject({
      ...{ name: 'edge', rendezvous_ip: '192.0.2.8', ssh_authorized_key: SSH_KEY },
    });
    await again.close();
  });

  it('are converted by rekey, and are read afterwards with the new key alone', async () => {
    const key = new Secret('n'.repeat(40));
    const place = { data, env: {}, signal: new AbortController().signal, warn: () => undefined };
    const changed = await rekeyRecords({ ...place, key, previousKey: KEY });
    expect(changed.records).toBe(4);
    expect(await readStored()).not.toMatch(/sealed|4\.20\.3/);
    await expect(startService({ data, key: KEY })).rejects.toMatchObject({
      code: 'service.key-wrong',
    });
    const service = await startService({ data, key });
    expect((await service.call('GET', PATH)).body).toMatchObject({
      ...{ name: 'edge', ssh_authorized_key: SSH_KEY, pull_secret_set: true },
    });
    await service.close();
  });

  it('go to the first token of their organisation, and to no other', async () => {
    const service = await startService({ data, key: KEY, auth });
    const ask = async (org: string): Promise<number> => {
      const token = await tokenOf(org);
      return (await service.call('GET', `${API}/v2/infra-envs/${OTHER}`, { token })).status;
    };
    expect(await ask('8')).toBe(404);
    expect(await ask('7')).toBe(200);
    expect(await ask('8')).toBe(404);
    await service.close();
  });

  it('are refused with another key, and stay as they are', async () => {
    const before = await readStored();
    await expect(startService({ data, key: new Secret('o'.repeat(40)) })).rejects.toMatchObject({
      code: 'service.key-wrong',
    });
    expect(await readStored()).toBe(before);
  });
});
