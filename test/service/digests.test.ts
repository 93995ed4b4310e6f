import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createIssuerKeys, issueToken } from '../../src/service/auth/tokens.ts';
import { Secret } from '../../src/base/secret.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';

/* Owns the proof that the digests of an image are those of its bytes, before and after its download. */

type Described = {
  readonly url: string;
  readonly long_url: string;
  readonly sha256_url: string;
  readonly size_bytes: number;
  readonly medium_digest: string;
  readonly sha256?: string;
};

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function download(url: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}

/** Asks until the SHA-256 is known, and gives the statuses on the way. */
async function awaitSha256(url: string) {
  const statuses: number[] = [];
  for (;;) {
    const answer = await fetch(url);
    const text = await answer.text();
    statuses.push(answer.status);
    if (answer.status !== 202) return { text, statuses, answer };
    expect(answer.headers.get('retry-after')).toBe('1'); // a small ISO, also while it waits
    expect(JSON.parse(text)).toMatchObject({
      status: expect.stringMatching(/computing|waiting/) as unknown,
    });
  }
}

describe('the digests of an image', () => {
  let world: LiveWorld;
  let service: TestService;
  let clock = Date.now() + 10_000;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    service = await startService({ stores: [join(world.directory, 'store')], now: () => clock });
  });
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const order = async (of = service, token?: string, more: object = {}) => {
    const own = { name: 'edge', openshift_version: '4.21.3', pull_secret: PULL_SECRET };
    const params = { ...own, ...more };
    const asked = { body: params, ...(token !== undefined && { token }) };
    const { status, body } = await of.call('POST', `${API}/v2/infra-envs`, asked);
    expect(status).toBe(201);
    clock += 2000; // the time of the image is strong by then
    return body as { readonly id: string; readonly size_bytes: number };
  };
  const describeOne = async (id: string, of = service, token?: string): Promise<Described> => {
    const path = `${API}/v2/infra-envs/${id}/downloads/image-url`;
    const asked = token === undefined ? {} : { token };
    return (await of.call('GET', path, asked)).body as Described;
  };

  it('are those of the downloaded bytes, and get known behind a remembered URL too', async () => {
    const { id, size_bytes } = await order();
    const before = await describeOne(id);
    const { url, sha256_url } = before;
    expect(url.length).toBeLessThan(100);
    expect(sha256_url).toBe(`${url}.sha256`);
    expect(before.sha256).toBeUndefined();
    const first = await fetch(url, { method: 'HEAD' });
    await download(url); // the URL is remembered from here on
    expect(first.headers.get('repr-digest')).toBeNull();
    expect(first.headers.get('content-length')).toBe(String(size_bytes));
    const { text, statuses, answer } = await awaitSha256(sha256_url);
    expect(statuses[0]).toBe(202);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const bytes = await download(url);
    expect(bytes.length).toBe(before.size_bytes);
    expect(text).toBe(`${hash(bytes)}  ${url.split('/').at(-1) ?? ''}\n`);
    const base64 = Buffer.from(hash(bytes), 'hex').toString('base64');
    for (const headers of [{}, { range: 'bytes=5-9' }]) {
      const later = await fetch(url, { headers });
      await later.arrayBuffer();
      expect(later.headers.get('repr-digest')).toBe(`sha-256=:${base64}:`);
    }
    expect((await describeOne(id)).sha256).toBe(hash(bytes));
    const head = await fetch(sha256_url, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('are accepted by verify for the downloaded file, and refused for one of other values', async () => {
    const kernel_arguments = [{ operation: 'append', value: 'console=ttyS0' }];
    const one = await order(service, undefined, { kernel_arguments });
    const described = await describeOne(one.id);
    const iso = join(world.directory, 'downloaded.iso');
    await writeFile(iso, await download(described.url));
    const verify = (digest: string) =>
      world.run('verify', iso, '--medium-digest', digest, '-o', 'json');
    const right = await verify(described.medium_digest);
    expect(right).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(right.stdout)).toMatchObject({
      state: 'whole',
      customised: true,
      mediumDigest: described.medium_digest,
    });
    // Nothing else proves the bytes of kernel arguments.
    const plain = await world.run('verify', iso);
    expect(plain.stdout).toContain('is not provable');
    expect(plain.stdout).toContain(`medium digest ${described.medium_digest}\n`);
    const change = { body: { ssh_authorized_key: SSH_KEY } };
    await service.call('PATCH', `${API}/v2/infra-envs/${one.id}`, change);
    const wrong = (await describeOne(one.id)).medium_digest;
    expect(wrong).not.toBe(described.medium_digest);
    const refused = await verify(wrong);
    expect(refused).toMatchObject({ exitCode: 8 });
    expect(refused.stdout).toContain('has another medium digest than the given one');
    const built = join(world.directory, 'store/appliance.iso');
    const base = await world.run('verify', built, '--medium-digest', described.medium_digest);
    expect(base).toMatchObject({ exitCode: 8 });
  });

  it('are those of the new bytes when a damaged ISO is replaced by a whole one of the same tag', async () => {
    const store = join(world.directory, 'repaired');
    await cp(join(world.directory, 'store', 'appliance.iso'), join(store, 'appliance.iso'));
    const whole = await readFile(join(store, 'appliance.iso'));
    const damaged = Buffer.from(whole);
    damaged.fill(0xff, 3 << 20, (3 << 20) + 512);
    await writeFile(join(store, 'appliance.iso'), damaged);
    const repaired = await startService({ stores: [store], now: () => clock });
    const { url, sha256_url } = await describeOne((await order(repaired)).id, repaired);
    await awaitSha256(sha256_url);
    await writeFile(join(store, 'new'), whole);
    await rename(join(store, 'new'), join(store, 'appliance.iso'));
    await vi.waitFor(
      async () => {
        const { text } = await awaitSha256(sha256_url);
        expect(text.split(' ')[0]).toBe(hash(await download(url)));
      },
      { timeout: 10_000 },
    );
    await repaired.close();
  });

  it('end with a change of the InfraEnv, and with the InfraEnv', async () => {
    const { id } = await order();
    const { sha256_url } = await describeOne(id);
    await awaitSha256(sha256_url);
    const kept = async (): Promise<readonly string[]> =>
      (await readdir(join(service.data, 'digests'))).filter((name) => name.startsWith(id));
    expect(await kept()).toHaveLength(1);
    const changed = await service.call('PATCH', `${API}/v2/infra-envs/${id}`, {
      body: { ssh_authorized_key: SSH_KEY },
    });
    expect(changed.status).toBe(201);
    expect(await kept()).toEqual([]);
    expect((await fetch(sha256_url)).status).toBe(410);
    const next = await describeOne(id);
    await awaitSha256(next.sha256_url);
    expect(await kept()).toHaveLength(1);
    await service.call('DELETE', `${API}/v2/infra-envs/${id}`);
    expect(await kept()).toEqual([]);
    expect((await fetch(next.sha256_url)).status).toBe(404);
  });

  it('are found below every form of URL, by who has the URL alone', async () => {
    const { privateKey, publicKey } = createIssuerKeys();
    const issued = Date.now();
    const claims = { user: 'alice', issued, expires: issued + 3_600_000 };
    const token = await issueToken(new Secret(privateKey), claims);
    const auth = { type: 'local', keys: publicKey } as const;
    const stores = [join(world.directory, 'store')];
    const locked = await startService({ stores, auth });
    try {
      const { id } = await order(locked, token);
      const { url, long_url, sha256_url } = await describeOne(id, locked, token);
      const { text } = await awaitSha256(sha256_url);
      const long = await awaitSha256(long_url.replace('.iso?', '.iso.sha256?'));
      expect(long.statuses).toEqual([200]);
      expect(long.text.split(' ')[0]).toBe(text.split(' ')[0]);
      const forged = url.replace(/\/i\/./, (start) => (start === '/i/A' ? '/i/B' : '/i/A'));
      expect((await fetch(`${forged}.sha256`)).status).not.toBe(200);
      expect(locked.answered.map(({ route }) => route)).not.toContain(sha256_url);
    } finally {
      await locked.close();
    }
    const { id } = await order();
    const { long_url, url } = await describeOne(id);
    const { text } = await awaitSha256(long_url.replace('.iso?', '.iso.sha256?'));
    expect(text.split(' ')[0]).toBe(hash(await download(url)));
  });

  it('are not computed if the operator wants none, and the answer says so', async () => {
    const off = await startService({ stores: [join(world.directory, 'store')], digestRate: 0 });
    try {
      const { id } = await order(off);
      const { sha256_url, medium_digest } = await describeOne(id, off);
      expect(medium_digest).toMatch(/^sha256:/);
      const answer = await fetch(sha256_url);
      expect(answer.status).toBe(404);
      expect(await answer.text()).toContain('computes no SHA-256');
    } finally {
      await off.close();
    }
  });

  it('survive a kill of the service; a damaged one is computed again', async () => {
    await writeFile(join(world.directory, 'serve.key'), 'k'.repeat(32));
    const words = ['serve', '--listen', '127.0.0.1:0', '--data', 'killed', '--store', 'store'];
    const start = async () => {
      const child = startSealift([...words, '--key', 'file:serve.key'], { cwd: world.directory });
      for (let text = ''; ;) {
        const [piece] = (await once(child.process.stderr ?? child.process, 'data')) as [Buffer];
        text += piece.toString();
        const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
        if (url !== undefined) return { ...child, url };
      }
    };
    const ask = async (url: string, path: string, body?: object) => {
      const answer = await fetch(url + API + path, {
        ...(body && {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      });
      return (await answer.json()) as Readonly<Record<string, string>>;
    };
    const first = await start();
    const params = { name: 'edge', openshift_version: '4.21.3', pull_secret: PULL_SECRET };
    const { id = '' } = await ask(first.url, '/v2/infra-envs', params);
    const path = `/v2/infra-envs/${id}/downloads/image-url`;
    const { sha256_url = '' } = await ask(first.url, path);
    const known = await awaitSha256(sha256_url);
    first.process.kill('SIGKILL');
    await first.ended;
    const second = await start();
    const again = (await ask(second.url, path))['sha256_url'] ?? '';
    const kept = await awaitSha256(again);
    expect(kept.statuses).toEqual([200]);
    expect(kept.text).toBe(known.text);
    second.process.kill('SIGKILL');
    await second.ended;
    const folder = join(world.directory, 'killed/digests');
    const [name = ''] = await readdir(folder);
    const sealed = await readFile(join(folder, name));
    sealed.writeUInt8(sealed.readUInt8(40) ^ 1, 40);
    await writeFile(join(folder, name), sealed);
    const third = await start();
    const damaged = await awaitSha256((await ask(third.url, path))['sha256_url'] ?? '');
    expect(damaged.statuses[0]).toBe(202);
    expect(damaged.text).toBe(known.text);
    third.process.kill('SIGTERM');
    expect(await third.ended).toMatchObject({ code: 143 });
  });
});
