import { generateKeyPairSync } from 'node:crypto';
import { connect } from 'node:net';
import { SignJWT, exportJWK, type JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API, PULL_SECRET, startService, type TestService } from '../support/service.ts';

const issuer = generateKeyPairSync('rsa', { modulusLength: 2048 });
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });

const sign = (claims: object, { key = issuer.privateKey, expires = '1h' } = {}): Promise<string> =>
  new SignJWT({
    sub: 'preferred_username' in claims ? String(claims.preferred_username) : '',
    ...claims,
  })
    .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
    .setIssuer('https://sso.example')
    .setExpirationTime(expires)
    .sign(key);

describe('a service with single sign-on', () => {
  let service: TestService;
  let clock = Date.now();
  const tokens: Record<string, string> = {};
  beforeAll(async () => {
    const jwk: JWK = { ...(await exportJWK(issuer.publicKey)), kid: 'k1', alg: 'RS256' };
    const keys = JSON.stringify({ keys: [jwk] });
    service = await startService({
      auth: { type: 'rhsso', keys, issuer: 'https://sso.example' },
      now: () => clock,
    });
    tokens['alice'] = await sign({ preferred_username: 'alice', org_id: '1' });
    tokens['anna'] = await sign({ preferred_username: 'anna', org_id: '1' });
    tokens['bob'] = await sign({ preferred_username: 'bob', org_id: '2' });
    // A user may be called as an organisation is.
    tokens['1'] = await sign({ preferred_username: '1' });
  });
  afterAll(() => service.close());

  const create = async (
    who: string,
  ): Promise<Record<'url' | 'short', URL> & Record<'cluster' | 'infraEnv', string>> => {
    const token = tokens[who] ?? '';
    const body = { name: 'edge', openshift_version: '4.21.3' };
    const made = await service.call('POST', `${API}/v2/clusters/disconnected`, { body, token });
    const cluster = String(made.body['id']);
    const params = { name: 'edge', cluster_id: cluster, pull_secret: PULL_SECRET };
    const env = await service.call('POST', `${API}/v2/infra-envs`, { body: params, token });
    const infraEnv = String(env.body['id']);
    const path = `${API}/v2/infra-envs/${infraEnv}/downloads/image-url`;
    const urls = (await service.call('GET', path, { token })).body;
    const url = new URL(String(urls['long_url']));
    return { cluster, infraEnv, url, short: new URL(String(urls['url'])) };
  };

  it('refuses requests without a token that the issuer signed, in the format of assisted-service', async () => {
    const refused = [
      undefined,
      'x.y.z',
      await sign({ preferred_username: 'eve' }, { key: stranger.privateKey }),
      await sign({ preferred_username: 'eve' }, { expires: '-1h' }),
      await sign({}),
      await new SignJWT({ sub: 'eve', preferred_username: 'eve' })
        .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
        .setIssuer('https://other.example')
        .setExpirationTime('1h')
        .sign(issuer.privateKey),
      // The public key as a shared secret.
      await new SignJWT({ sub: 'eve', preferred_username: 'eve' })
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .setExpirationTime('1h')
        .sign(Buffer.from(issuer.publicKey.export({ type: 'spki', format: 'pem' }))),
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`,
    ];
    for (const token of refused) {
      const call = token === undefined ? {} : { token };
      const { status, body } = await service.call('GET', `${API}/v2/clusters`, call);
      expect([status, body['code']]).toEqual([401, 401]);
    }
  });

  it.each([
    ['a subject that is a number', { sub: 7 }],
    ['a subject that is a list', { sub: ['eve'] }],
    ['no subject', { sub: '' }],
    ['an organisation that is a list', { sub: 'eve', org_id: ['1'] }],
    ['an organisation that is a number', { sub: 'eve', org_id: 1 }],
    ['organisations', { sub: 'eve', organization: ['1'] }],
    ['a line break in its organisation', { sub: 'eve', org_id: '1\n' }],
    ['a long organisation', { sub: 'eve', org_id: '1'.repeat(513) }],
    ['an issue in the future', { sub: 'eve', iat: Math.floor(Date.now() / 1000) + 600 }],
    ['a start in the future', { sub: 'eve', nbf: Math.floor(Date.now() / 1000) + 600 }],
  ])('refuses a genuine token with %s', async (_, claims) => {
    const token = await sign(claims);
    expect((await service.call('GET', `${API}/v2/clusters`, { token })).status).toBe(401);
  });

  it('refuses a genuine token that is valid for longer than a day', async () => {
    const token = await sign({ sub: 'eve' }, { expires: '25h' });
    const { status, body } = await service.call('GET', `${API}/v2/clusters`, { token });
    expect([status, body['message']]).toEqual([
      401,
      'the token is valid for longer than is accepted',
    ]);
  });

  it('counts the life of a token from its issue, not from now', async () => {
    const iat = Math.floor(Date.now() / 1000) - 2 * 86_400;
    const token = await sign({ sub: 'eve', iat });
    expect((await service.call('GET', `${API}/v2/clusters`, { token })).status).toBe(401);
  });

  it('shows a tenant only its own records, and hides that others exist', async () => {
    const { cluster, infraEnv } = await create('alice');
    const paths = [
      ['GET', `${API}/v2/clusters/${cluster}`],
      ['DELETE', `${API}/v2/clusters/${cluster}`],
      ['GET', `${API}/v2/infra-envs/${infraEnv}`],
      ['PATCH', `${API}/v2/infra-envs/${infraEnv}`],
      ['DELETE', `${API}/v2/infra-envs/${infraEnv}`],
      ['POST', `${API}/v2/infra-envs/${infraEnv}/hosts`],
      ['GET', `${API}/v2/infra-envs/${infraEnv}/downloads/image-url`],
      ['GET', `${API}/v2/infra-envs/${infraEnv}/downloads/files?file_name=discovery.ign`],
    ] as const;
    for (const who of ['bob', '1']) {
      const token = tokens[who] ?? '';
      for (const [method, path] of paths) {
        const body = method === 'PATCH' ? { body: {} } : {};
        expect((await service.call(method, path, { token, ...body })).status, path).toBe(404);
      }
      for (const list of ['clusters', 'infra-envs']) {
        const { text } = await service.call('GET', `${API}/v2/${list}`, { token });
        expect(text).toBe('[]');
      }
      const stolen = { name: 'x', cluster_id: cluster, pull_secret: PULL_SECRET };
      const bound = await service.call('POST', `${API}/v2/infra-envs`, { token, body: stolen });
      expect(bound.status).toBe(404);
    }
    const colleague = { token: tokens['anna'] ?? '' };
    expect((await service.call('GET', `${API}/v2/clusters/${cluster}`, colleague)).status).toBe(
      200,
    );
  });

  it('gives the image of a URL, and no other image, until the URL expires', async () => {
    const mine = await create('alice');
    const other = await create('bob');
    const ask = async ({ pathname, search }: URL): Promise<number> =>
      (await service.call('GET', pathname + search)).status;
    expect(mine.url.pathname).toMatch(/^\/bytoken\//);
    // The token is taken: what is missing is the release, as nothing is in the store.
    expect(await ask(mine.url)).toBe(503);
    const token = mine.url.pathname.split('/')[2] ?? '';
    const files = (id: string): string =>
      `${API}/v2/infra-envs/${id}/downloads/files?file_name=discovery.ign&image_token=${token}`;
    expect((await service.call('GET', files(mine.infraEnv))).status).toBe(500);
    expect((await service.call('GET', files(other.infraEnv))).status).toBe(404);
    const [head = '', , signature = ''] = token.split('.');
    const claims = { sub: other.infraEnv, aud: 'image', exp: Date.now() };
    const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
    const forgedUrl = new URL(mine.url.href.replace(token, `${head}.${forged}.${signature}`));
    expect(await ask(forgedUrl)).toBe(401);
    // Who may ask for records is another matter.
    expect((await service.call('GET', `${API}/v2/clusters`, { token })).status).toBe(401);
    const byId = `/byid/${mine.infraEnv}/4.21.3/x86_64/disconnected.iso`;
    expect((await service.call('GET', byId)).status).toBe(401);
    expect(await ask(mine.short)).toBe(503);
    clock += 3_601_000;
    expect(await ask(mine.url)).toBe(401);
  });

  it('ends with the revision that it was made for, on every route', async () => {
    const { infraEnv, url, short } = await create('alice');
    const token = url.pathname.split('/')[2] ?? '';
    const version = 'version=4.21.3';
    const paths = [
      url.pathname + url.search,
      url.pathname,
      `${url.pathname}?revision=2`,
      `/images/${infraEnv}?${version}&type=disconnected-iso&image_token=${token}`,
      `/images/${infraEnv}/pxe-initrd?${version}&image_token=${token}`,
      `/images/${infraEnv}/s390x-initrd-addrsize?${version}&image_token=${token}`,
      `/s390x-initrd-addrsize?${version}&image_token=${token}`,
      ...['discovery.ign', 'ipxe-script', 'static-network-config'].map(
        (name) =>
          `${API}/v2/infra-envs/${infraEnv}/downloads/files?file_name=${name}&image_token=${token}`,
      ),
    ];
    const ask = (): Promise<readonly number[]> =>
      Promise.all(paths.map(async (path) => (await service.call('GET', path)).status));
    expect(await ask()).toEqual([503, 503, 410, 503, 503, 503, 503, 500, 500, 200]);
    const path = `${API}/v2/infra-envs/${infraEnv}`;
    const body = { pull_secret: PULL_SECRET.replace('dXNlcjpj', 'dXNlcjpk') };
    await service.call('PATCH', path, { token: tokens['alice'] ?? '', body });
    expect(await ask()).toEqual(paths.map(() => 410));
    const earlier = await service.call('GET', short.pathname);
    // There is nothing in the store, and nothing to challenge for.
    expect([earlier.status, earlier.headers.get('www-authenticate')]).toEqual([503, null]);
  });
});

describe('bad input', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ requiredRegistries: ['quay.io', 'docker.io'] });
  });
  afterAll(() => service.close());

  const infraEnvs = `${API}/v2/infra-envs`;
  const { auths: own } = JSON.parse(PULL_SECRET) as { auths: Record<string, object> };
  const dockerHub = { 'https://index.docker.io/v1/': own['quay.io'] };
  const good = { name: 'edge', pull_secret: JSON.stringify({ auths: { ...own, ...dockerHub } }) };
  const prefix = 'pull secret for new infraEnv is invalid: ';
  const auths = (auth: unknown): string => JSON.stringify({ auths: { 'r.io': { auth } } });

  it.each([
    [{ pull_secret: '{' }, `${prefix}pull secret must be a well-formed JSON`],
    [{ pull_secret: '{}' }, `${prefix}pull secret must contain 'auths' JSON-object field`],
    [
      { pull_secret: '{"auths":{}}' },
      `${prefix}pull secret must contain 'auths' JSON-object field`,
    ],
    [{ pull_secret: '{"auths":{},"auths":{}}' }, `${prefix}pull secret has "auths" twice`],
    [
      { pull_secret: auths('%%') },
      `${prefix}invalid pull secret: 'auth' field of "r.io" is not base64-encoded`,
    ],
    [
      { pull_secret: auths('YWJj') },
      `${prefix}invalid pull secret: 'auth' for r.io is not in 'user:password' format`,
    ],
    [{ pull_secret: PULL_SECRET }, `${prefix}pull secret must contain auth for "docker.io"`],
    [{ pull_secret: auths('YTpi') }, `${prefix}pull secret must contain auth for "quay.io"`],
    [
      { ssh_authorized_key: 'ssh-rsa x' },
      'SSH key is not valid: is cut short: its base64 text is incomplete',
    ],
    [{ rendezvous_ip: 'here' }, expect.stringMatching(/^rendezvous_ip in body should match '/)],
    [
      { rendezvous_ip: '192.0.2.1', image_type: 'full-iso' },
      'RendezvousIP is only supported for disconnected ISO infra-envs',
    ],
    [
      { ntp_sources: 'a', additional_ntp_sources: 'b' },
      'ntp_sources and additional_ntp_sources are mutually exclusive',
    ],
    [
      { additional_ntp_sources: 'a,b c' },
      'Invalid NTP source: a,b c: "b c" is neither a name nor an address',
    ],
    [
      { kernel_arguments: [{ operation: 'delete', value: 'a' }] },
      'Only kernel argument operation append is supported.  Got delete',
    ],
    [
      { pull_secret: auths(5) },
      `${prefix}invalid pull secret: 'auth' field of "r.io" is not a text but should be a string`,
    ],
    [
      { pull_secret: '{"auths":{"r.io":{}}}' },
      `${prefix}invalid pull secret: 'auth' field of "r.io" is absent but should be a string`,
    ],
    [
      { ignition_config_override: '{"ignition":{"version":"2.2.0"}}' },
      'error parsing ignition: unsupported config version, error report: ' +
        'ignition_config_override has Ignition version "2.2.0"',
    ],
    [
      { ignition_config_override: '{' },
      'error parsing ignition: config is not valid, error report: ignition_config_override is not JSON',
    ],
  ])('%j is refused with the reason of assisted-service', async (more, reason) => {
    const { status, body } = await service.call('POST', infraEnvs, { body: { ...good, ...more } });
    expect([status, body['reason']]).toEqual([400, reason]);
  });

  it('a pull secret with all required registries is accepted, and a change to one without is refused', async () => {
    const { status, body } = await service.call('POST', infraEnvs, { body: good });
    expect(status).toBe(201);
    const changed = await service.call('PATCH', `${infraEnvs}/${String(body['id'])}`, {
      body: { pull_secret: PULL_SECRET },
    });
    expect([changed.status, changed.body['reason']]).toEqual([
      400,
      'pull secret must contain auth for "docker.io"',
    ]);
  });

  it('a missing cluster is reported in the words of assisted-service', async () => {
    const cluster_id = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';
    const { status, body } = await service.call('POST', infraEnvs, {
      body: { ...good, cluster_id },
    });
    expect([status, body['reason']]).toEqual([404, `Cluster ID ${cluster_id} does not exist`]);
  });

  it.each([
    [`${infraEnvs}/canary-7f3a`, 400, 'infra_env_id in path must be of type uuid: "canary-7f3a"'],
    [`${infraEnvs}?cluster_id=a%22`, 400, 'cluster_id in query must be of type uuid: "a\\""'],
    ['/canary-7f3a', 404, 'path /canary-7f3a was not found'],
  ])('%s is refused with its own words', async (path, status, reason) => {
    const answer = await service.call('GET', path);
    expect([answer.status, answer.body['reason']]).toEqual([status, reason]);
  });

  it('a malformed request gets a status and no echo of its content', async () => {
    const canary = 'canary-7f3a';
    const calls = [
      [400, 'POST', infraEnvs, { raw: `{"${canary}` }],
      [400, 'POST', infraEnvs, { body: { pull_secret: canary } }],
      [400, 'POST', infraEnvs, { body: { ...good, image_type: canary } }],
      [400, 'POST', infraEnvs, { body: [canary] }],
      [413, 'POST', infraEnvs, { raw: canary.padEnd(3 << 20) }],
      [400, 'GET', `${infraEnvs}/..%2f..%2fetc%2fpasswd`, {}],
      [405, 'PUT', infraEnvs, {}],
    ] as const;
    for (const [status, method, path, call] of calls) {
      const answer = await service.call(method, path, call);
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.text).not.toContain(canary);
    }
    expect(JSON.stringify(service.answered)).not.toContain(canary);
  });

  it('two thousand idle connections do not keep other clients from being answered', async () => {
    const { port } = new URL(service.url);
    // Of several addresses: each has a limit of its own.
    const sockets = Array.from({ length: 2100 }, (_, index) =>
      connect({
        port: Number(port),
        host: '127.0.0.1',
        localAddress: `127.0.1.${1 + (index % 10)}`,
      }),
    );
    for (const socket of sockets) socket.on('error', () => undefined);
    await Promise.all(
      sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
    );
    expect((await service.call('GET', '/live')).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });
});
