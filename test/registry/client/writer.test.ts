import { afterEach, beforeEach, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { PushedBlob } from '../../../src/registry/client/writer.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { createTestClient, storeOf } from '../../support/registry-client.ts';
import {
  startScriptedRegistry,
  type LoggedRequest,
  type Script,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';

const { signal } = new AbortController();
const BYTES = Buffer.from('a blob');
const DIGEST = digestOf(BYTES);
const HERE: Script = { status: 200, body: BYTES };

let registry: ScriptedRegistry;
let storage: ScriptedRegistry;
beforeEach(async () => {
  [registry, storage] = await Promise.all([startScriptedRegistry(), startScriptedRegistry()]);
});
afterEach(() => Promise.all([registry.close(), storage.close()]));

/** A registry that takes uploads, as far as `decide` does not answer. */
function takeUploads(decide: (request: LoggedRequest, nth: number) => Script | undefined): void {
  registry.script((request, nth) => {
    const own = decide(request, nth);
    if (own) return own;
    const { method, path } = request;
    if (method === 'POST') return { status: 202, headers: { location: `/v2/m/up/${nth}?state=x` } };
    if (method === 'PUT') return { status: 201 };
    return path === '/v2/' ? {} : { status: 404 };
  });
}

async function push(mountFrom: readonly string[] = []): Promise<PushedBlob> {
  const client = createTestClient({
    credentials: [
      storeOf({
        [registry.host]: { kind: 'basic', username: 'pusher', password: 'hush', from: 'a test' },
      }),
    ],
  });
  try {
    return await client.writerOf(parseReference(`${registry.host}/m/iso:t`)).pushBlob({
      blob: { digest: DIGEST, size: BYTES.length },
      async *open() {
        yield await Promise.resolve(BYTES);
      },
      mountFrom,
      signal,
      onSent: () => undefined,
    });
  } finally {
    await client.close();
  }
}

const sent = (): readonly string[] =>
  [registry, storage].flatMap(({ requests }) =>
    requests.filter(({ method }) => method === 'PUT').map(({ body }) => body),
  );

it('a push asks the token server for access to push, and to pull where it mounts from', async () => {
  const scopes: string[] = [];
  registry.script(({ method, path, headers }) => {
    const url = new URL(path, 'http://x');
    if (url.pathname === '/token') {
      scopes.push(url.searchParams.getAll('scope').join(' + '));
      return { status: 200, body: '{"token":"t"}' };
    }
    if (headers.authorization !== 'Bearer t') {
      const realm = `http://${registry.host}/token`;
      return { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}"` } };
    }
    if (method === 'POST') return { status: 201 };
    return path.includes('/ocp/') ? HERE : { status: 404 };
  });
  expect(await push(['ocp/release'])).toBe('mounted');
  expect(scopes).toEqual([
    'repository:m/iso:pull,push',
    'repository:ocp/release:pull',
    'repository:m/iso:pull,push + repository:ocp/release:pull',
  ]);
});

it('a push sends a blob that the registry refuses to mount, in the session that it opened', async () => {
  takeUploads(({ method, path }) =>
    method === 'HEAD' && path.includes('/ocp/') ? HERE : undefined,
  );
  expect(await push(['ocp/release'])).toBe('sent');
  expect(registry.requestsOf('mount=')).toHaveLength(1);
  expect(sent()).toEqual(['a blob']);
  expect(registry.requests.at(-1)?.path).toBe(
    `/v2/m/up/1?state=x&digest=${encodeURIComponent(DIGEST)}`,
  );
});

it.each<[string, Script]>([
  ['is cut off', { cutAfter: 0 }],
  ['is answered with 503', { status: 503 }],
  ['is answered with 404, because the registry restarted', { status: 404 }],
])('a push begins again if an upload %s', async (_what, failure) => {
  let puts = 0;
  takeUploads(({ method }) => (method === 'PUT' && (puts += 1) === 1 ? failure : undefined));
  expect(await push()).toBe('sent');
  expect(sent()).toEqual(['a blob', 'a blob']);
  expect(registry.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
});

it('a push does not send a blob again that arrived before the answer was lost', async () => {
  takeUploads(({ method }, nth) => {
    if (method === 'PUT') return { cutAfter: 0 };
    return method === 'HEAD' && nth > 1 ? HERE : undefined;
  });
  expect(await push()).toBe('present');
  expect(sent()).toEqual(['a blob']);
});

it('a push sends a blob to storage that the registry names, without its credential', async () => {
  takeUploads(({ method, path, headers }) => {
    if (headers.authorization === undefined && path !== '/v2/')
      return { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } };
    const location = `http://${storage.host}/signed`;
    return method === 'POST' ? { status: 202, headers: { location } } : undefined;
  });
  storage.script(() => ({ status: 201 }));
  expect(await push()).toBe('sent');
  expect(storage.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  expect(registry.requestsOf('uploads')[0]?.headers.authorization).toBeDefined();
});

it('a push of an account without permission fails with the name of the repository', async () => {
  takeUploads(({ method }) => (method === 'POST' ? { status: 403 } : undefined));
  await expect(push()).rejects.toMatchObject({ code: 'registry.forbidden' });
});
