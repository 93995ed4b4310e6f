import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createIssuerKeys, issueToken } from '../../src/service/auth/tokens.ts';
import { Secret } from '../../src/base/secret.ts';
import {
  API,
  PULL_SECRET,
  readOpenApiFile,
  startService,
  type Answer,
  type TestService,
} from '../support/service.ts';

/* Owns what a tenant and an address may have at most, and how lists and answers tell it. */

const CLUSTERS = `${API}/v2/clusters`;
const INFRA_ENVS = `${API}/v2/infra-envs`;
const ROOM = { tenant: 512, rate: 10_000, bodies: 32 << 20, bodiesEach: 8 << 20 };

let service: TestService;
const start = async (settings: Parameters<typeof startService>[0]): Promise<void> => {
  service = await startService(settings);
};
const createCluster = (name: string, token?: string): Promise<Answer> => {
  const body = { name, openshift_version: '4.21.3' };
  return service.call('POST', `${CLUSTERS}/disconnected`, { body, ...(token && { token }) });
};
const createInfraEnv = (name: string, more: object = {}): Promise<Answer> =>
  service.call('POST', INFRA_ENVS, { body: { name, pull_secret: PULL_SECRET, ...more } });

describe('records of a tenant', () => {
  afterEach(() => service.close());

  it('are refused with 403 past their number, with the way out, until one is deleted', async () => {
    await start({ tenantLimits: { records: 3, bytes: 1 << 20 } });
    const made = [await createCluster('a'), await createInfraEnv('b'), await createInfraEnv('c')];
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201]);
    const message =
      'there are 3 records already, and no more are allowed: delete some that are not used';
    for (const refused of [await createCluster('d'), await createInfraEnv('d')]) {
      expect([refused.status, refused.body]).toEqual([403, { code: 403, message }]);
    }
    const last = `${INFRA_ENVS}/${String(made[2]?.body['id'])}`;
    // A change of a record is not another one.
    const changed = await service.call('PATCH', last, { body: { rendezvous_ip: '192.0.2.1' } });
    expect(changed.status).toBe(201);
    expect((await service.call('DELETE', last)).status).toBe(204);
    expect((await createCluster('d')).status).toBe(201);
  });

  it('are refused with 403 past their bytes, also by a change that makes one larger', async () => {
    await start({ tenantLimits: { records: 100, bytes: 8 << 10 } });
    const files = (bytes: number): object => ({ ignition_config_override: writeOverride(bytes) });
    const { status, body } = await createInfraEnv('a', files(2000));
    expect(status).toBe(201);
    const path = `${INFRA_ENVS}/${String(body['id'])}`;
    const refused = [
      await createInfraEnv('b', files(8000)),
      await service.call('PATCH', path, { body: files(8000) }),
    ];
    for (const { status, body } of refused) {
      expect([status, body['message']]).toEqual([
        403,
        'the records would have more than 8.0 KiB: delete some that are not used',
      ]);
    }
    expect((await service.call('GET', path)).body).toMatchObject(files(2000));
    expect((await service.call('PATCH', path, { body: files(1000) })).status).toBe(201);
  });

  it('of one tenant leave the room of another as it is', async () => {
    const { privateKey, publicKey } = createIssuerKeys();
    const issued = Date.now();
    const tokenOf = (user: string): Promise<string> =>
      issueToken(new Secret(privateKey), { user, issued, expires: issued + 3_600_000 });
    const [alice, bob] = await Promise.all(['alice', 'bob'].map(tokenOf));
    await start({
      auth: { type: 'local', keys: publicKey },
      tenantLimits: { records: 1, bytes: 1 << 20 },
    });
    const statuses: number[] = [];
    for (const token of [alice, alice, bob, bob]) {
      statuses.push((await createCluster('a', token)).status);
    }
    expect(statuses).toEqual([201, 403, 201, 403]);
  });
});

describe('a list', () => {
  beforeAll(() => start({ budgets: ROOM }));
  afterAll(() => service.close());

  it('has pages, each with a Link to the next one, which have every record once', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `edge-${index}`);
    for (const name of names) expect((await createCluster(name)).status).toBe(201);
    const found: string[] = [];
    const sizes: number[] = [];
    let next: string | undefined = `${CLUSTERS}?limit=3`;
    while (next !== undefined) {
      const { status, headers, text }: Answer = await service.call('GET', next);
      expect(status).toBe(200);
      const page = JSON.parse(text) as readonly { readonly name: string }[];
      sizes.push(page.length);
      found.push(...page.map(({ name }) => name));
      const link = headers.get('link') ?? '';
      next = /^<([^>]+)>; rel="next"$/.exec(link)?.[1];
      expect(next?.startsWith(`${CLUSTERS}?limit=3&after=`) ?? link === '').toBe(true);
    }
    expect(sizes).toEqual([3, 3, 1]);
    expect(found.toSorted()).toEqual(names);
  });

  it('of one cluster has pages of that cluster alone', async () => {
    const cluster_id = String((await createCluster('bound')).body['id']);
    for (const name of ['a', 'b']) await createInfraEnv(name, { cluster_id });
    await createInfraEnv('other');
    const first = await service.call('GET', `${INFRA_ENVS}?cluster_id=${cluster_id}&limit=1`);
    const [, next = ''] = /<([^>]+)>/.exec(first.headers.get('link') ?? '') ?? [];
    const second = await service.call('GET', next);
    const ids = [first, second].map(({ text }) => JSON.parse(text) as unknown[]);
    expect(ids.map(({ length }) => length)).toEqual([1, 1]);
    expect(second.headers.get('link')).toBeNull();
    expect((first.text + second.text).match(new RegExp(cluster_id, 'g'))).not.toBeNull();
    expect(first.text + second.text).not.toContain('"name":"other"');
  });

  it.each(['0', '-1', 'x', '1.5', '1000001'])('refuses the limit %s', async (limit) => {
    const { status, body } = await service.call('GET', `${CLUSTERS}?limit=${limit}`);
    expect([status, body['reason']]).toEqual([400, 'limit in query must be a number from 1 on']);
  });
});

describe('a cluster with InfraEnvs', () => {
  beforeAll(() => start({}));
  afterAll(() => service.close());

  it('is deleted with a warning that names them; they stay, and can be deleted', async () => {
    const cluster_id = String((await createCluster('edge')).body['id']);
    const ids: string[] = [];
    for (const name of ['a', 'b']) {
      ids.push(String((await createInfraEnv(name, { cluster_id })).body['id']));
    }
    const { status, headers } = await service.call('DELETE', `${CLUSTERS}/${cluster_id}`);
    expect(status).toBe(204);
    const warning = headers.get('warning') ?? '';
    expect(warning).toMatch(/^299 - "/);
    for (const id of ids) expect(warning).toContain(id);
    for (const id of ids) {
      const path = `${INFRA_ENVS}/${id}`;
      expect((await service.call('GET', path)).status).toBe(200);
      expect((await service.call('DELETE', path)).status).toBe(204);
    }
  });

  it('is deleted without a warning if it has none', async () => {
    const id = String((await createCluster('edge')).body['id']);
    const { status, headers } = await service.call('DELETE', `${CLUSTERS}/${id}`);
    expect([status, headers.get('warning')]).toEqual([204, null]);
  });
});

describe('an address or a tenant with too much', () => {
  afterEach(() => service.close());

  it('gets 429 with Retry-After for calls past the rate, in the format of errors', async () => {
    await start({ budgets: { ...ROOM, rate: 1 } });
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => service.call('GET', CLUSTERS)),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(10);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(5);
    expect(refused[0]?.body).toMatchObject({
      kind: 'Error',
      code: '429',
      reason: 'there are more than 1 calls a second: wait a while',
    });
    expect(refused[0]?.headers.get('retry-after')).toBe('5');
  });

  it('gets 429 on a connection past its share, and 503 past that of all', async () => {
    for (const [limits, status] of [
      [{ each: 2, connections: 100 }, 429],
      [{ each: 100, connections: 2 }, 503],
    ] as const) {
      await start({ limits });
      const held = [holdBody(INFRA_ENVS, 100), holdBody(INFRA_ENVS, 100)];
      // The service reads both, or refuses one.
      await Promise.all(held.map((socket) => once(socket, 'data')));
      const next = connect(Number(new URL(service.url).port), '127.0.0.1');
      next.write(`GET ${CLUSTERS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      const answer = await text(next);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*"code":"${status}"`));
      expect(answer).toMatch(/^Retry-After: 5\r$/im);
      for (const socket of held) socket.destroy();
      if (status === 429) await service.close();
    }
  });

  it('loses its oldest body, with 503, if another tenant needs the memory', async () => {
    const { privateKey, publicKey } = createIssuerKeys();
    const issued = Date.now();
    const [alice, bob] = await Promise.all(
      ['alice', 'bob'].map((user) =>
        issueToken(new Secret(privateKey), { user, issued, expires: issued + 3_600_000 }),
      ),
    );
    await start({
      auth: { type: 'local', keys: publicKey },
      budgets: { ...ROOM, bodies: 4000, bodiesEach: 3000 },
    });
    const answered = text(holdBody(INFRA_ENVS, 2900, alice));
    const override = { ignition_config_override: writeOverride(2000) };
    const body = { name: 'b', pull_secret: PULL_SECRET, ...override };
    const settled = await vi.waitFor(async () => {
      // As soon as those bytes of hers were read.
      const { status } = await service.call('POST', INFRA_ENVS, { body, token: bob ?? '' });
      expect(status).toBe(201);
      const first = await Promise.race([answered, Promise.resolve('')]);
      expect(first).not.toBe('');
      return first;
    });
    expect(settled).toMatch(/^HTTP\/1\.1 503 [^]*"reason":"too many bodies are being read"/m);
    expect(settled).toMatch(/^Retry-After: 5\r$/im);
  });

  it('is told so by the document, for every operation, and by no status that clients do not read', async () => {
    await start({});
    const { paths } = (await readOpenApiFile()) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    };
    const operations = Object.values(paths).flatMap((each) => Object.values(each));
    expect(operations.length).toBeGreaterThan(30);
    for (const { operationId, responses } of operations) {
      const statuses = Object.keys(responses);
      expect(statuses, operationId).toEqual(expect.arrayContaining(['429', '503']));
      // Go's client has 400 in their place, and loses the reason of a status that it does not know.
      expect(statuses, operationId).not.toContain('415');
      expect(statuses, operationId).not.toContain('422');
    }
  });
});

/** An Ignition config with a file of so many bytes. */
const writeOverride = (bytes: number): string =>
  JSON.stringify({
    ignition: { version: '3.2.0' },
    storage: { files: [{ path: '/etc/a', contents: { source: `data:,${'a'.repeat(bytes)}` } }] },
  });

type Operation = { readonly operationId: string; readonly responses: object };

/** Begins a POST whose body does not end: so many bytes of one more. */
function holdBody(path: string, bytes: number, token?: string): Socket {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  const credentials = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
      `${credentials}Expect: 100-continue\r\nContent-Length: ${bytes + 1}\r\n\r\n{"name":"${'a'.repeat(bytes - 9)}`,
  );
  return socket;
}
