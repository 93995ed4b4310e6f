import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { API, PULL_SECRET, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const hasJudges = ['xorriso', 'cpio', 'genisoimage'].map(requireTool).every(Boolean);

type HostUrl = {
  readonly url: string;
  readonly host: string;
  readonly once: boolean;
  readonly is_reading: boolean;
  readonly ended_at?: string;
  readonly expires_at: string;
};

describe.skipIf(!hasJudges)('the URL of a host', () => {
  let world: LiveWorld;
  let service: TestService;
  let clock = Date.parse('2026-01-01T00:00:00Z');
  let infraEnv = '';
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    const stores = [join(world.directory, 'store')];
    const audit = { file: join(world.directory, 'audit.log'), settings: '' };
    service = await startService({ stores, audit, now: () => clock });
    const body = { name: 'edge', openshift_version: '4.21.3' };
    const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, { body });
    const params = { name: 'edge', cluster_id: cluster.body['id'], pull_secret: PULL_SECRET };
    const made = await service.call('POST', `${API}/v2/infra-envs`, { body: params });
    infraEnv = `${API}/v2/infra-envs/${String(made.body['id'])}`;
  });
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const urls = (): string => `${infraEnv}/downloads/image-urls`;
  const create = async (body: object): Promise<HostUrl> => {
    const answer = await service.call('POST', urls(), { body });
    expect(answer.status).toBe(201);
    return answer.body as HostUrl;
  };
  const list = async (): Promise<readonly HostUrl[]> =>
    JSON.parse((await service.call('GET', urls())).text) as readonly HostUrl[];
  const ask = async (url: string, range = 'bytes=0-0'): Promise<readonly [number, unknown]> => {
    const answer = await fetch(url, { headers: { range } });
    const text = await answer.text();
    return [answer.status, answer.status >= 400 && (JSON.parse(text) as { reason: string }).reason];
  };
  const current = async (): Promise<string> =>
    String((await service.call('GET', `${infraEnv}/downloads/image-url`)).body['url']);

  it('ends when the host gets another one, or when it is revoked; those of others go on', async () => {
    const first = await create({ host: 'worker-1' });
    const other = await create({ host: 'worker-2' });
    expect(new URL(first.url).pathname).toMatch(
      /^\/i\/[\w-]{32}\/1\.1\/edge-4\.21\.3-x86_64\.iso$/,
    );
    expect(await ask(first.url)).toEqual([206, false]);
    const second = await create({ host: 'worker-1' });
    expect(await ask(first.url)).toEqual([410, 'the URL was revoked']);
    expect(await ask(second.url)).toEqual([206, false]);
    const revoked = await service.call('DELETE', `${urls()}?host=worker-1`);
    expect(revoked.status).toBe(204);
    expect((await service.call('DELETE', `${urls()}?host=worker-1`)).status).toBe(404);
    expect(await ask(second.url)).toEqual([410, 'the URL was revoked']);
    expect(await ask(other.url)).toEqual([206, false]);
    // A number that was revoked is never given again.
    expect(await ask((await create({ host: 'worker-1' })).url)).toEqual([206, false]);
    expect(await ask(second.url)).toEqual([410, 'the URL was revoked']);
  });

  it('ends at its time, also where no others end', async () => {
    const { url, expires_at } = await create({ host: 'timed', expires_in: 60 });
    expect(expires_at).toBe(new Date(clock + 60_000).toISOString());
    clock += 59_000;
    expect(await ask(url)).toEqual([206, false]);
    clock += 1000;
    const [status, reason] = await ask(url);
    expect([status, reason]).toEqual([
      410,
      'the URL has expired: request the URL of the image again',
    ]);
    for (const body of [{}, { host: '' }, { host: 'a b' }, { host: 'a', expires_in: 1 }]) {
      expect((await service.call('POST', urls(), { body })).status).toBe(400);
    }
  });

  it('ends after every byte was delivered once: HEAD, repeated ranges and all but one byte do not end it', async () => {
    const { url, once: isOnce } = await create({ host: 'single', once: true });
    expect(isOnce).toBe(true);
    const head = await fetch(url, { method: 'HEAD' });
    const size = Number(head.headers.get('content-length'));
    const middle = Math.floor(size / 2);
    for (const range of [`${middle}-`, '0-9', '0-9', `8-${middle - 2}`]) {
      expect(await ask(url, `bytes=${range}`)).toEqual([206, false]);
    }
    expect(await ask(url, `bytes=${middle - 1}-${middle - 1}`)).toEqual([206, false]);
    await expect
      .poll(() => ask(url))
      .toEqual([410, 'every byte of this one-time URL was delivered']);
    const stored = (await list()).find(({ host }) => host === 'single');
    expect(stored?.ended_at).toBe(new Date(clock).toISOString());
    expect(await ask(await current())).toEqual([206, false]);
  });

  it('names the host in the answer to a change that comes while it reads, and ends with the change', async () => {
    clock += 120_000; // nobody has read for a while
    const { url } = await create({ host: 'slow' });
    const plain = await current();
    // Takes the head of the answer, and no more.
    const asking = request(url).end();
    const [response] = (await once(asking, 'response')) as [NodeJS.ReadableStream];
    expect((await list()).filter((each) => each.is_reading).map(({ host }) => host)).toEqual([
      'slow',
    ]);
    const kernel_arguments = [{ operation: 'append', value: 'changed' }];
    const changed = await service.call('PATCH', infraEnv, { body: { kernel_arguments } });
    expect(changed.headers.get('warning')).toBe(
      '299 - "slow (127.0.0.1) is still reading revision 1, whose URLs have ended: give it the new one"',
    );
    response.on('error', () => undefined);
    asking.destroy();
    expect((await ask(url))[0]).toBe(410);
    expect((await ask(plain))[0]).toBe(410);
    const again = (await list()).find(({ host }) => host === 'slow');
    expect(await ask(again?.url ?? '')).toEqual([206, false]);
  });

  it('ends with all URLs of the InfraEnv when all are revoked; the image stays the same', async () => {
    const { url } = await create({ host: 'last' });
    const plain = await current();
    const before = Buffer.from(await (await fetch(plain)).arrayBuffer());
    expect((await service.call('DELETE', urls())).status).toBe(204);
    expect((await ask(url))[0]).toBe(410);
    expect((await ask(plain))[0]).toBe(410);
    expect(await list()).toEqual([]);
    const after = Buffer.from(await (await fetch(await current())).arrayBuffer());
    expect(after.equals(before)).toBe(true);
  });

  it('stays when the revocation of all is refused because the InfraEnv changes meanwhile', async () => {
    for (let round = 0; round < 10; round += 1) {
      await create({ host: 'stays' });
      const change = { body: { additional_ntp_sources: `192.0.2.${round + 1}` } };
      const [revoked] = await Promise.all([
        service.call('DELETE', urls()),
        service.call('PATCH', infraEnv, change),
      ]);
      expect([204, 409]).toContain(revoked.status);
      expect((await list()).length).toBe(revoked.status === 204 ? 0 : 1);
      await service.call('DELETE', urls());
    }
  });

  it('is in the audit log with its host, and its download with ISO, tag, bytes and end', async () => {
    const { url } = await create({ host: 'audited', once: true });
    const answer = await fetch(url);
    const size = (await answer.arrayBuffer()).byteLength;
    const etag = answer.headers.get('etag');
    await (
      await fetch(
        `${infraEnv.replace(API, `${service.url}${API}`)}/downloads/files?file_name=discovery.ign`,
      )
    ).text();
    const read = async () =>
      (await readFile(join(world.directory, 'audit.log'), 'utf8'))
        .split('\n')
        .filter((line) => line.includes('audited') || line.includes('discovery.ign'))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    await expect.poll(async () => (await read()).length, { timeout: 10_000 }).toBe(6);
    const entries = await read();
    const by = (event: string) => entries.find((each) => each['event'] === event);
    expect(by('url.issue')).toMatchObject({ what: { host: 'audited' } });
    expect(by('url.end')).toMatchObject({ what: { host: 'audited' } });
    const what = {
      file: 'image',
      version: '4.21.3',
      architecture: 'x86_64',
      base: expect.stringMatching(/^sha256:/) as string,
      etag,
      size,
      medium: expect.stringMatching(/^sha256:/) as string,
    };
    const who = { host: 'audited', address: '127.0.0.1', tenant: '' };
    expect(by('image.fetch.begin')).toMatchObject({ what, who });
    expect(by('image.fetch.end')).toMatchObject({ what, who, bytes: size, complete: true });
    expect(by('file.fetch.end')).toMatchObject({ what: { file: 'discovery.ign' }, complete: true });
    expect(await readFile(join(world.directory, 'audit.log'), 'utf8')).not.toContain(
      new URL(url).pathname.split('/')[2],
    );
  });
});
