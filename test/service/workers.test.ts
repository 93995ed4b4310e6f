import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { startSealift, type Child } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { freePort } from '../support/local-http.ts';
import { API, PULL_SECRET, SSH_KEY } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

/* `sealift serve` as the program that users run: a first process, and workers that answer. */

const MIB = 1 << 20;
const SIZE = 64 * MIB;
const WAIT = { timeout: 60_000, interval: 100 };

let world: LiveWorld;
const running: Child[] = [];
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
  expect(built).toMatchObject({ exitCode: 0 });
  // Long enough that a download goes on while things happen.
  await truncate(join(world.directory, 'store/appliance.iso'), SIZE);
  await writeFile(join(world.directory, 'serve.key'), 'k'.repeat(32), { mode: 0o600 });
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.process.kill('SIGKILL');
    await child.ended;
  }
  await rm(join(world.directory, 'data'), { recursive: true, force: true });
});
afterAll(() => world.close());

type Service = { readonly child: Child; readonly pid: number; readonly url: string; told: string };

async function start(port: number, ...more: string[]): Promise<Service> {
  const args = ['--listen', `127.0.0.1:${port}`, '--data', 'data', '--store', 'store'];
  const words = ['serve', ...args, '--key', 'file:serve.key', '--workers', '2', ...more];
  const child = startSealift(words, { cwd: world.directory });
  running.push(child);
  const service = { child, pid: child.process.pid ?? 0, url: '', told: '' };
  child.process.stderr?.on('data', (piece: Buffer) => (service.told += piece.toString()));
  service.url = await vi.waitUntil(() => /serving on ([^\s;]+)/.exec(service.told)?.[1], {
    timeout: 30_000,
  });
  return service;
}

const listWorkers = ({ pid }: Pick<Service, 'pid'>): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

async function call(service: Service, what: string, body?: object) {
  const [method = '', path = ''] = what.split(' ');
  const answer = await fetch(`${service.url}${API}/v2/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  expect(answer.status).toBeLessThan(300);
  const text = await answer.text();
  return (text === '' ? {} : JSON.parse(text)) as Readonly<Record<string, string>>;
}

/** An InfraEnv, and the URL of its image. */
async function order(service: Service): Promise<{ readonly id: string; readonly image: string }> {
  const version = { name: 'edge', openshift_version: '4.21.3' };
  const { id: cluster_id } = await call(service, 'POST clusters/disconnected', version);
  const { id = '', download_url: image = '' } = await call(service, 'POST infra-envs', {
    name: 'edge',
    cluster_id,
    image_type: 'disconnected-iso',
    pull_secret: PULL_SECRET,
    ssh_authorized_key: SSH_KEY,
  });
  return { id, image };
}

async function open(url: string, from = 0): Promise<IncomingMessage> {
  const asked = get(url, { agent: false, headers: { range: `bytes=${from}-` } });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer;
}

/** Downloads all of it, and goes on after each cut. @returns the SHA-256, and how often it was cut */
async function download(url: string): Promise<readonly [digest: string, cuts: number]> {
  const hash = createHash('sha256');
  let at = 0;
  for (let cuts = 0; ; cuts += 1) {
    expect(cuts).toBeLessThan(1000);
    try {
      const answer = await open(url, at);
      if (answer.statusCode !== 206) throw new Error('it is ending, or starting');
      for await (const piece of answer as AsyncIterable<Buffer>) {
        hash.update(piece);
        at += piece.length;
      }
      return [hash.digest('hex'), cuts];
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20)); // nothing listens for a moment
    }
  }
}

const statusOf = async (url: string): Promise<number> => {
  const answer = await fetch(url, { headers: { range: 'bytes=40000-49999' } });
  await answer.arrayBuffer();
  return answer.status;
};

describe('workers of the service', () => {
  it('send the SHA-256 of an image as soon as it is known, also by URLs that they remember', async () => {
    const service = await start(0);
    const { image } = await order(service);
    const askRange = async (): Promise<string | null> => {
      const answer = await fetch(image, { headers: { range: 'bytes=40000-49999' } });
      await answer.arrayBuffer();
      return answer.headers.get('repr-digest');
    };
    for (let times = 0; times < 8; times += 1) expect(await askRange()).toBe(null);
    const [digest] = await download(image);
    await vi.waitUntil(async () => (await fetch(`${image}.sha256`)).status === 200, WAIT);
    expect(await (await fetch(`${image}.sha256`)).text()).toMatch(
      new RegExp(`^${digest}  .+[.]iso\n$`),
    );
    const sent = `sha-256=:${Buffer.from(digest, 'hex').toString('base64')}:`;
    for (let times = 0; times < 8; times += 1) expect(await askRange()).toBe(sent);
  });

  it('have a socket file that no other user can reach, also in a folder that was open', async () => {
    const folder = join(world.directory, 'data/workers');
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o755);
    await start(0);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it('send the bytes that one process sends, and count them in its metrics', async () => {
    const service = await start(0);
    const { image } = await order(service);
    const [many] = await download(image);
    expect((await download(image))[0]).toBe(many);
    expect(listWorkers(service)).toHaveLength(2);
    const { pathname } = new URL(image);
    const counted = /sealift_http_requests_total\{method="GET",route="\/i\/[^}]*206"\} 2\n/;
    await vi.waitUntil(
      async () => counted.test(await (await fetch(`${service.url}/metrics`)).text()),
      { timeout: 10_000 },
    );
    service.child.process.kill('SIGTERM');
    expect(await service.child.ended).toMatchObject({ code: 143 });
    const alone = await start(0, '--workers', '1');
    expect(listWorkers(alone)).toEqual([0]);
    expect((await download(alone.url + pathname))[0]).toBe(many);
  });

  it('forget an image before its change is answered, under load', async () => {
    const service = await start(0);
    for (let round = 0; round < 5; round += 1) {
      const { id, image } = await order(service);
      let isChanged = false;
      const late: number[] = [];
      let asked = 0;
      const load = Array.from({ length: 20 }, async () => {
        for (let tail = 0; tail < 3;) {
          const wasChanged = isChanged;
          const status = await statusOf(image);
          asked += 1;
          if (wasChanged) {
            late.push(status);
            tail += 1;
          }
        }
      });
      await vi.waitUntil(() => asked > 100, { timeout: 30_000 });
      await call(service, `PATCH infra-envs/${id}`, { ssh_authorized_key: `${SSH_KEY}-2` });
      isChanged = true;
      await Promise.all(load);
      expect(new Set(late)).toEqual(new Set([410]));
    }
  });

  it('are replaced when they are killed, and downloads resume without a wrong byte', async () => {
    const service = await start(0);
    const { image } = await order(service);
    const [whole] = await download(image);
    const slow = await open(image);
    slow.pause();
    const [first = 0] = listWorkers(service);
    const [, second = 0] = listWorkers(service);
    const downloads = Promise.all(Array.from({ length: 8 }, () => download(image)));
    process.kill(first, 'SIGKILL');
    process.kill(second, 'SIGKILL');
    const cut = once(slow, 'error');
    slow.resume();
    expect(await cut).toHaveLength(1);
    expect(new Set((await downloads).map(([digest]) => digest))).toEqual(new Set([whole]));
    await vi.waitUntil(() => listWorkers(service).filter(Boolean).length === 2, {
      timeout: 10_000,
    });
    expect(service.told).toContain('a worker process ended (SIGKILL)');
  });

  it('end with the first process, which starts again within two seconds on the same port', async () => {
    const port = await freePort();
    const service = await start(port);
    const { image } = await order(service);
    const [whole] = await download(image);
    const workers = listWorkers(service);
    const resumed = download(image);
    service.child.process.kill('SIGKILL');
    const began = performance.now();
    await start(port);
    expect(performance.now() - began).toBeLessThan(20_000); // two seconds, on a machine without other work
    expect((await resumed)[0]).toBe(whole);
    const isRunning = (pid: number): boolean => {
      try {
        return /^State:\s+[^Z]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      } catch {
        return false;
      }
    };
    await vi.waitUntil(() => !workers.some(isRunning), { timeout: 10_000 });
  });

  it('let downloads end after SIGTERM to all processes, and take no new ones', async () => {
    const service = await start(0);
    const { image } = await order(service);
    const [whole] = await download(image);
    const slow = await open(image);
    slow.pause();
    for (const pid of [...listWorkers(service), service.pid]) process.kill(pid, 'SIGTERM');
    await vi.waitUntil(() => service.told.includes('draining'), { timeout: 10_000 });
    await vi.waitUntil(
      () =>
        fetch(image).then(
          () => false,
          () => true,
        ),
      { timeout: 10_000 },
    );
    const hash = createHash('sha256');
    for await (const piece of slow as AsyncIterable<Buffer>) hash.update(piece);
    expect(hash.digest('hex')).toBe(whole);
    expect(await service.child.ended).toMatchObject({ code: 143 });
  });

  it('are cut off when --drain is over', async () => {
    const service = await start(0, '--drain', '1s');
    const { image } = await order(service);
    const slow = await open(image);
    slow.pause();
    slow.on('error', () => undefined);
    service.child.process.kill('SIGTERM');
    const { code, stderr } = await service.child.ended;
    expect([code, stderr]).toEqual([143, expect.stringContaining('downloads were cut off')]);
  });

  it('hold an address to its connections, together', async () => {
    const service = await start(0, '--limit-address', '20');
    const { image } = await order(service);
    const opened: IncomingMessage[] = [];
    let refused = 0;
    for (let index = 0; index < 60; index += 1) {
      const answer = await open(image);
      answer.pause();
      answer.on('error', () => undefined);
      if (answer.statusCode === 429) refused += 1;
      else opened.push(answer);
      await new Promise((resolve) => setTimeout(resolve, 30)); // reports are made every 100 ms
    }
    expect(refused).toBeGreaterThan(0);
    expect(opened.length).toBeLessThan(30);
    for (const answer of opened) answer.destroy();
  });

  it('have no variable with a key, and notice a replaced ISO within a second', async () => {
    const service = await start(0);
    const { image } = await order(service);
    expect(await statusOf(image)).toBe(206);
    for (const worker of listWorkers(service)) {
      const names = (await readFile(`/proc/${worker}/environ`, 'utf8')).split('\0');
      const shown = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_OPTIONS'];
      const others = names.map((each) => each.split('=')[0] ?? '').filter((name) => name !== '');
      const own = ['NODE_UNIQUE_ID', 'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'];
      expect(others.filter((name) => ![...shown, ...own].includes(name))).toEqual([]);
    }
    const place = join(world.directory, 'store/appliance.iso');
    await copyFile(place, `${place}.kept`);
    const other = await world.run('customize', place, '--kargs-append', 'x=1', '--output', 'o.iso');
    expect(other).toMatchObject({ exitCode: 0 });
    await rename(join(world.directory, 'o.iso'), place);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const statuses = await Promise.all(Array.from({ length: 10 }, () => statusOf(image)));
    await rename(`${place}.kept`, place);
    expect(new Set(statuses)).toEqual(new Set([410]));
  });

  it.skipIf(!requireTool('openssl'))('use a renewed certificate', async () => {
    for (const name of ['one', 'two']) {
      const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
      const files = [
        '-keyout',
        join(world.directory, `${name}.key`),
        '-out',
        join(world.directory, `${name}.crt`),
      ];
      await runProcess('openssl', ['req', ...kind, ...files, ...subject]);
    }
    const put = async (name: string): Promise<void> => {
      for (const kind of ['key', 'crt']) {
        await copyFile(join(world.directory, `${name}.${kind}`), join(world.directory, 'aside'));
        await rename(join(world.directory, 'aside'), join(world.directory, `tls.${kind}`));
      }
    };
    await put('one');
    const service = await start(0, '--tls-cert', 'tls.crt', '--tls-key', 'tls.key');
    const port = Number(new URL(service.url).port);
    const nameNow = async (): Promise<string | string[] | undefined> => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      return CN;
    };
    expect(await nameNow()).toBe('one');
    await put('two');
    await vi.waitUntil(
      async () => {
        const names = await Promise.all(Array.from({ length: 10 }, nameNow));
        return names.every((name) => name === 'two');
      },
      { timeout: 20_000 },
    );
  });
});
