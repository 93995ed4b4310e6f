import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRegistriesConf } from '../../src/registry/client/mirrors.ts';
import { MAX_MANIFEST_SIZE } from '../../src/registry/manifest.ts';
import type { Reference } from '../../src/registry/reference.ts';
import {
  imageManifest,
  patternOf,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../support/scripted-registry.ts';
import { createTestClient, storeOf } from '../support/registry-client.ts';

const signal = new AbortController().signal;
let registry: ScriptedRegistry;
let client: ReturnType<typeof createTestClient>;
const at = (tag: string): Reference => ({
  registry: registry.host,
  repository: 'ocp/release',
  tag,
});

beforeEach(async () => {
  registry = await startScriptedRegistry();
  client = createTestClient();
});

afterEach(async () => {
  await client.close();
  await registry.close();
});

describe('a manifest', () => {
  it('comes with its bytes untouched, by tag and by digest', async () => {
    const { digest } = registry.addManifest(imageManifest('one'), 'v1');
    const byTag = await client.fetchManifest(at('v1'), { signal });
    const { registry: host, repository } = at('');
    const byDigest = await client.fetchManifest({ registry: host, repository, digest }, { signal });
    expect(byTag.descriptor.digest).toBe(digest);
    expect(byDigest.bytes).toEqual(byTag.bytes);
    expect(Buffer.from(byTag.bytes).toString()).toBe(JSON.stringify(imageManifest('one')));
  });

  it('asks for lists, so that no server picks an architecture', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    await client.fetchManifest(at('v1'), { signal });
    const [request] = registry.requestsOf('manifests');
    expect(request?.headers.accept).toContain('manifest.list.v2+json');
    expect(request?.headers.accept).toContain('image.index.v1+json');
  });

  it('is refused with both digests when its bytes are others', async () => {
    const { digest } = registry.addManifest(imageManifest('one'), 'v1');
    const other = JSON.stringify(imageManifest('two'));
    registry.script(({ path }) => (path.includes('manifests') ? { body: other } : undefined));
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'manifest.digest-mismatch',
      expected: digest,
      found: expect.stringMatching(/^sha256:/) as string,
    });
  });

  it('is refused by its own digest, not by the one that the registry announces', async () => {
    const { digest } = registry.addManifest(imageManifest('one'), 'v1');
    const other = registry.addManifest(imageManifest('two'), 'v2');
    const body = JSON.stringify(imageManifest('two'));
    const headers = { 'docker-content-digest': other.digest };
    registry.script(({ path }) => (path.includes('manifests') ? { body, headers } : undefined));
    const { registry: host, repository } = at('');
    const fetching = client.fetchManifest({ registry: host, repository, digest }, { signal });
    await expect(fetching).rejects.toMatchObject({
      code: 'manifest.digest-mismatch',
      expected: digest,
      found: other.digest,
    });
  });

  it('is refused when it has more than 4 MiB', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    const body = new Uint8Array(MAX_MANIFEST_SIZE + 1);
    registry.script(({ path }) => (path.includes('manifests') ? { body } : undefined));
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'manifest.too-large',
    });
  });

  it('that does not exist is reported with the registries that were asked', async () => {
    await expect(client.fetchManifest(at('gone'), { signal })).rejects.toThrow(
      `there is no ${registry.host}/ocp/release:gone on ${registry.host}`,
    );
  });
});

describe('a tag', () => {
  it('resolves to a descriptor without the bytes', async () => {
    const descriptor = registry.addManifest(imageManifest('one'), 'sha256-aa.sig');
    expect(await client.resolveTag(at('sha256-aa.sig'), { signal })).toEqual(descriptor);
    expect(registry.requestsOf('manifests').map(({ method }) => method)).toEqual(['HEAD']);
  });

  it('is absent on 404 alone', async () => {
    expect(await client.resolveTag(at('none'), { signal })).toBeUndefined();
    registry.script(({ path }) => (path.includes('manifests') ? { status: 403 } : undefined));
    await expect(client.resolveTag(at('none'), { signal })).rejects.toMatchObject({
      code: 'registry.forbidden',
    });
    registry.script(({ path }) => (path.includes('manifests') ? { status: 500 } : undefined));
    await expect(client.resolveTag(at('none'), { signal })).rejects.toMatchObject({
      code: 'registry.unavailable',
    });
  });

  it('is read with GET if HEAD is refused', async () => {
    const descriptor = registry.addManifest(imageManifest('one'), 'v1');
    registry.script(({ method }) => (method === 'HEAD' ? { status: 405 } : undefined));
    expect(await client.resolveTag(at('v1'), { signal })).toEqual(descriptor);
  });
});

describe('a registry that stumbles', () => {
  it('is asked again after 5xx, and the retries are counted', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    registry.script(({ path }, nth) =>
      path.includes('manifests') && nth <= 2 ? { status: 502 } : undefined,
    );
    await client.fetchManifest(at('v1'), { signal });
    expect(client.waits).toEqual([250, 500]);
    expect(client.statistics()).toMatchObject([{ host: registry.host, requests: 5, retries: 2 }]);
  });

  it('is given the time its Retry-After asks for', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    registry.script(({ path }, nth) =>
      path.includes('manifests') && nth === 1
        ? { status: 429, headers: { 'retry-after': '7' } }
        : undefined,
    );
    await client.fetchManifest(at('v1'), { signal });
    expect(client.waits).toEqual([7500]);
  });

  it('is asked again when it cuts a manifest in two', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    registry.script(({ path }, nth) =>
      path.includes('manifests') && nth === 1 ? { cutAfter: 10 } : undefined,
    );
    await client.fetchManifest(at('v1'), { signal });
    expect(registry.requestsOf('manifests')).toHaveLength(2);
  });

  it('is given up after ten minutes, with its last answer', async () => {
    registry.script(({ path }) =>
      path.includes('manifests')
        ? { status: 429, body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}' }
        : undefined,
    );
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.rate-limited',
      message: expect.stringContaining('TOOMANYREQUESTS: slow down') as string,
    });
    expect(client.waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(599_000);
  });

  it('is unreachable, with exit code 4, if nothing listens at its address', async () => {
    await registry.close();
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.unreachable',
      exitCode: 4,
    });
  });

  it('is not waited for after an abort', async () => {
    const controller = new AbortController();
    registry.script(() => ({ hold: new Promise(() => undefined) }));
    const work = client.fetchManifest(at('v1'), { signal: controller.signal });
    controller.abort(new Error('called off'));
    await expect(work).rejects.toThrow('called off');
  });
});

describe('mirrors of registries.conf', () => {
  it('decide that a tag is absent while the origin is out of reach', async () => {
    const mirror = await startScriptedRegistry();
    const registriesConf = parseRegistriesConf(
      `[[registry]]
       location = "127.0.0.1:1"
       [[registry.mirror]]
       location = "${mirror.host}"`,
      'test',
    );
    const client = createTestClient({ registriesConf });
    const absent = { registry: '127.0.0.1:1', repository: 'release', tag: 'sha256-aa.sig' };
    expect(await client.resolveTag(absent, { signal })).toBeUndefined();
    await expect(client.fetchManifest(absent, { signal })).rejects.toMatchObject({ exitCode: 4 });
    await client.close();
    await mirror.close();
  });

  const confOf = (mirror: string, rule = 'all') =>
    parseRegistriesConf(
      `[[registry]]
       location = "${registry.host}/ocp"
       [[registry.mirror]]
       location = "${mirror}/copy"
       pull-from-mirror = "${rule}"`,
      'test',
    );

  it('are asked first, under their own name, and the origin is left alone', async () => {
    const mirror = await startScriptedRegistry();
    mirror.addManifest(imageManifest('one'), 'v1');
    const mirrored = createTestClient({ registriesConf: confOf(mirror.host) });
    await mirrored.fetchManifest(at('v1'), { signal });
    expect(mirror.requestsOf('/v2/copy/release/manifests/v1')).toHaveLength(1);
    expect(registry.requests).toHaveLength(0);
    expect(mirrored.sourcesOf(at('v1')).map(({ name }) => name)).toEqual([
      mirror.host,
      registry.host,
    ]);
    await mirrored.close();
    await mirror.close();
  });

  it('give way to the origin on every failure', async () => {
    const mirror = await startScriptedRegistry();
    registry.addManifest(imageManifest('one'), 'v1');
    for (const status of [404, 401, 500]) {
      mirror.script(() => ({ status }));
      const mirrored = createTestClient({ registriesConf: confOf(mirror.host) });
      await mirrored.fetchManifest(at('v1'), { signal });
      await mirrored.close();
    }
    await mirror.close();
  });

  it('for digests alone are not asked for tags', async () => {
    registry.addManifest(imageManifest('one'), 'v1');
    const mirrored = createTestClient({ registriesConf: confOf('mirror.invalid', 'digest-only') });
    await mirrored.fetchManifest(at('v1'), { signal });
    await mirrored.close();
  });
});

describe('a redirect', () => {
  it('to another origin is followed without the password', async () => {
    const storage = await startScriptedRegistry();
    const blob = registry.addBlob(patternOf(100));
    storage.addBlob(patternOf(100));
    const location = `http://${storage.host}/signed/blobs/${blob.digest}?X-Signature=abc`;
    registry.script(({ path, headers }) => {
      if (!headers.authorization) {
        return { status: 401, headers: { 'www-authenticate': 'Basic realm="r"' } };
      }
      return path.includes('blobs') ? { status: 307, headers: { location } } : undefined;
    });
    const authorised = createTestClient({
      credentials: [
        storeOf({
          [registry.host]: { kind: 'basic', username: 'u', password: 'p', from: 'test' },
          [storage.host]: { kind: 'basic', username: 'u', password: 'p', from: 'test' },
        }),
      ],
    });
    const [source] = authorised.sourcesOf(at('v1'));
    const opened = await source?.open(blob, { offset: 0, signal });
    expect(await opened?.body.toArray()).toEqual([patternOf(100)]);
    expect(registry.requestsOf('blobs')[0]?.headers.authorization).toMatch(/^Basic /);
    expect(storage.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    await authorised.close();
    await storage.close();
  });

  it('to a file is refused for its scheme', async () => {
    const location = 'file:///etc/passwd';
    registry.script(({ path }) =>
      path === '/v2/' ? undefined : { status: 302, headers: { location } },
    );
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.redirect',
      message: expect.stringContaining('an address of file:, which is neither') as string,
    });
  });

  it('in a circle ends with an error', async () => {
    registry.script(({ path }) =>
      path === '/v2/' ? undefined : { status: 302, headers: { location: path } },
    );
    await expect(client.fetchManifest(at('v1'), { signal })).rejects.toMatchObject({
      code: 'registry.redirects',
    });
  });
});
