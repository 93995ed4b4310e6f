import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ToolError } from '../../../src/base/errors.ts';
import type { Credential } from '../../../src/registry/client/credential-helper.ts';
import {
  imageManifest,
  startScriptedRegistry,
  type LoggedRequest,
  type Script,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';
import { createTestClient, storeOf } from '../../support/registry-client.ts';

const { signal } = new AbortController();
const basic: Credential = { kind: 'basic', username: 'me', password: 's3cret:x', from: 'entry A' };
let registry: ScriptedRegistry;
let clock = 0;

beforeEach(async () => {
  clock = 1_000_000;
  registry = await startScriptedRegistry();
  for (const tag of ['v1', 'v2']) registry.addManifest(imageManifest(tag), tag);
});

afterEach(() => registry.close());

const clientWith = (credential?: Credential) =>
  createTestClient({
    credentials: credential ? [storeOf({ [registry.host]: credential })] : [],
    now: () => clock,
  });

const at = (tag: string, repository = 'ocp/release') => ({
  registry: registry.host,
  repository,
  tag,
});

const challenge = (text: string): Script => ({
  status: 401,
  headers: { 'www-authenticate': text },
});

/** A registry whose tokens are numbered. `accept` says which Authorization is good enough. */
function scriptTokens(
  accept: (request: LoggedRequest) => boolean,
  more = '',
  life: unknown = 100,
): void {
  let issued = 0;
  registry.script((request) => {
    if (request.path.startsWith('/token')) {
      issued += 1;
      return { status: 200, body: JSON.stringify({ token: `t${issued}`, expires_in: life }) };
    }
    const realm = `Bearer realm="http://${registry.host}/token",service="reg"${more}`;
    return accept(request) ? undefined : challenge(realm);
  });
}

const hasToken = ({ headers }: LoggedRequest): boolean =>
  headers.authorization?.startsWith('Bearer t') ?? false;

it.each([{ toString: 1, valueOf: 1 }, 'soon', null, [], -5])(
  'a token that is valid for %j s is used as one of the shortest life',
  async (life) => {
    scriptTokens(hasToken, '', life);
    const client = clientWith(basic);
    await client.fetchManifest(at('v1'), { signal });
    expect(registry.requestsOf('token')).toHaveLength(1);
    await client.close();
  },
);

describe('a registry with passwords', () => {
  it('gets the password once it asked for one', async () => {
    registry.script(({ headers }) =>
      headers.authorization ? undefined : challenge('Basic realm="r"'),
    );
    const client = clientWith(basic);
    await client.fetchManifest(at('v1'), { signal });
    const [ping, manifest] = registry.requests;
    expect(ping?.headers.authorization).toBeUndefined();
    expect(manifest?.headers.authorization).toBe(
      `Basic ${Buffer.from('me:s3cret:x').toString('base64')}`,
    );
    await client.close();
  });

  it('that refuses it is asked once, and the error names the entry but not the password', async () => {
    registry.script(() => challenge('Basic realm="r"'));
    const client = clientWith(basic);
    const failure = await client.fetchManifest(at('v1'), { signal }).catch((e: unknown) => e);
    expect(failure).toMatchObject({
      code: 'registry.unauthorized',
      message: expect.stringContaining('the credential "entry A"') as string,
    });
    expect(JSON.stringify(failure) + String(failure)).not.toContain('s3cret');
    expect(registry.requestsOf('manifests')).toHaveLength(1);
    await client.close();
  });

  it('is refused without a credential, with a hint how to add one', async () => {
    registry.script(() => challenge('Basic realm="r"'));
    const client = clientWith();
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      hint: expect.stringContaining(`add an entry for ${registry.host}`) as string,
    });
    await client.close();
  });

  it.each(['Basic realm="r"', 'Bearer realm="http://HOST/token"'])(
    'that refuses an old password gets the new one of its store: %s',
    async (text) => {
      const secrets = ['old', 'new', 'newer'];
      const good = `Basic ${Buffer.from('me:new').toString('base64')}`;
      registry.script(({ path, headers }) => {
        const isToken = path.startsWith('/token');
        if (isToken && headers.authorization === good)
          return { status: 200, body: '{"token":"t"}' };
        if (isToken) return { status: 401 };
        const isGood = [good, 'Bearer t'].includes(headers.authorization ?? '');
        return isGood ? undefined : challenge(text.replace('HOST', registry.host));
      });
      const make = (password: string): Credential => ({ ...basic, password });
      let current = make(secrets.shift() ?? '');
      const client = createTestClient({
        credentials: [
          {
            find: (_, _signal, refused) => {
              if (refused === current) current = make(secrets.shift() ?? '');
              return Promise.resolve(current);
            },
          },
        ],
      });
      const { digest } = (await client.fetchManifest(at('v1'), { signal })).descriptor;
      expect(digest).toMatch(/^sha256:/);
      expect(secrets).toEqual(['newer']);
      await client.close();
    },
  );

  it.each([
    ['Basic realm="r"', false],
    ['Bearer realm="http://HOST/token"', false],
    ['Bearer realm="http://HOST/token"', true],
  ])('names a helper that fails only where it is needed: %s, open: %s', async (text, isOpen) => {
    registry.script(({ path, headers }) => {
      if (path.startsWith('/token')) {
        return isOpen ? { status: 200, body: '{"token":"","access_token":"t"}' } : { status: 401 };
      }
      const isGood = headers.authorization === 'Bearer t';
      return isGood ? undefined : challenge(text.replace('HOST', registry.host));
    });
    const failure = new ToolError('tool.missing', 'program "docker-credential-x" is missing');
    const client = createTestClient({ credentials: [{ find: () => Promise.reject(failure) }] });
    const fetched = client.fetchManifest(at('v1'), { signal }).catch((error: unknown) => error);
    if (isOpen) expect(await fetched).toHaveProperty('descriptor');
    else expect(await fetched).toMatchObject({ code: 'tool.missing' });
    await client.close();
  });

  it('cannot be used with an identity token', async () => {
    registry.script(() => challenge('Basic realm="r"'));
    const client = clientWith({ kind: 'identity', token: 'idtoken', from: 'entry B' });
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'credentials.unusable',
    });
    await client.close();
  });
});

describe('a registry with tokens', () => {
  it('is given one token for many requests that come at once', async () => {
    scriptTokens(hasToken);
    const client = clientWith(basic);
    await Promise.all(Array.from({ length: 20 }, () => client.fetchManifest(at('v1'), { signal })));
    const tokens = registry.requestsOf('/token');
    expect(tokens).toHaveLength(1);
    const query = new URL(tokens[0]?.path ?? '', 'http://x').searchParams;
    expect(Object.fromEntries(query)).toEqual({
      account: 'me',
      service: 'reg',
      scope: 'repository:ocp/release:pull',
    });
    expect(tokens[0]?.headers.authorization).toMatch(/^Basic /);
    await client.close();
  });

  it('gets another token for another repository', async () => {
    scriptTokens(hasToken);
    const client = clientWith();
    await client.fetchManifest(at('v1'), { signal });
    await client.fetchManifest(at('v1', 'other'), { signal });
    expect(registry.requestsOf('/token')).toHaveLength(2);
    await client.close();
  });

  it('gets a new token before the old one ends', async () => {
    scriptTokens(hasToken);
    const client = clientWith();
    await client.fetchManifest(at('v1'), { signal });
    clock += 79_000;
    await client.fetchManifest(at('v1'), { signal });
    expect(registry.requestsOf('/token')).toHaveLength(1);
    clock += 2000;
    await client.fetchManifest(at('v1'), { signal });
    expect(registry.requestsOf('/token')).toHaveLength(2);
    await client.close();
  });

  it('that forgot a token gets a new one, once for all', async () => {
    let good = /^Bearer t1$/;
    scriptTokens(({ headers }) => good.test(headers.authorization ?? ''));
    const client = clientWith();
    await client.fetchManifest(at('v1'), { signal });
    good = /^Bearer t2$/;
    await Promise.all([1, 2, 3].map(() => client.fetchManifest(at('v2'), { signal })));
    expect(registry.requestsOf('/token')).toHaveLength(2);
    await client.close();
  });

  it('that wants a wider scope gets it, and gets it at once the next time', async () => {
    let issued = 0;
    registry.script(({ path, headers }) => {
      if (path.startsWith('/token')) {
        issued += 1;
        const isWide = path.includes(encodeURIComponent('repository:base:pull'));
        return { status: 200, body: JSON.stringify({ access_token: isWide ? 'wide' : 'narrow' }) };
      }
      const bearer = `Bearer realm="http://${registry.host}/token",service="reg"`;
      if (headers.authorization === 'Bearer wide') return undefined;
      if (headers.authorization === undefined) return challenge(bearer);
      const scope = 'repository:ocp/release:pull repository:base:pull';
      return challenge(`${bearer},scope="${scope}",error="insufficient_scope"`);
    });
    const client = clientWith();
    await client.fetchManifest(at('v1'), { signal });
    await client.fetchManifest(at('v2'), { signal });
    expect(issued).toBe(2);
    expect(registry.requestsOf('manifests')).toHaveLength(3);
    await client.close();
  });

  it('is sent an identity token in a form, never in an address', async () => {
    scriptTokens(hasToken);
    const client = clientWith({ kind: 'identity', token: 'id-token', from: 'entry B' });
    await client.fetchManifest(at('v1'), { signal });
    const [token] = registry.requestsOf('/token');
    expect(token?.method).toBe('POST');
    expect(token?.path).toBe('/token');
    expect(new URLSearchParams(token?.body).get('refresh_token')).toBe('id-token');
    expect(new URLSearchParams(token?.body).get('grant_type')).toBe('refresh_token');
    await client.close();
  });

  it('whose token server refuses is named with the credential', async () => {
    registry.script(({ path }) =>
      path.startsWith('/token')
        ? { status: 401 }
        : challenge(`Bearer realm="http://${registry.host}/token"`),
    );
    const client = clientWith(basic);
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.unauthorized',
      message: expect.stringContaining('"entry A"') as string,
    });
    await client.close();
  });

  it('may not send the password over plain HTTP to another host', async () => {
    registry.script(() => challenge('Bearer realm="http://tokens.example/token"'));
    const client = clientWith(basic);
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.realm',
    });
    await client.close();
  });

  it('whose token server sends a malformed answer fails without quoting that answer', async () => {
    registry.script(({ path }) =>
      path.startsWith('/token')
        ? { status: 200, body: '{"token": ["hush"]}' }
        : challenge(`Bearer realm="http://${registry.host}/token"`),
    );
    const client = clientWith();
    const failure = await client.fetchManifest(at('v1'), { signal }).catch((e: unknown) => e);
    expect(failure).toMatchObject({ code: 'registry.token' });
    expect(String(failure)).not.toContain('hush');
    await client.close();
  });
});
