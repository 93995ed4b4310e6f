import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { prepare, type Site } from './build.ts';
import { addFigures, type Figures } from './figures.ts';
import { readMemory } from '../test/support/process-tree.ts';
import { runSealift, SEALIFT, shell, startSource } from './run.ts';
import { benchBulk, benchLatency, benchRanges, benchStalled, type Pair } from './serve-load.ts';
import { ONE_ADDRESS_LIMITS } from '../test/support/serve-limits.ts';

const MIB = 1024 ** 2;
const RELEASES = 10;
const CUSTOMISATIONS = 500;

type Sized = { readonly site: Site; readonly runs: number };
type Server = {
  readonly url: string;
  readonly pid: number;
  readonly stop: () => Promise<void>;
};

/**
 * `sealift serve` with ISOs of ten releases, beside nginx that serves one of them as a file. Their turns alternate.
 */
export async function benchServe(figures: Figures, { site, runs }: Sized): Promise<void> {
  const folder = join(site.directory, 'serve');
  const isos = join(folder, 'isos');
  mkdirSync(isos, { recursive: true });
  for (let index = 0; index < RELEASES; index += 1) await makeRelease(isos, site, index);
  const { size } = statSync(join(isos, '0.iso'));
  const before = readFolder(isos);
  const nginx = await startJudge(folder, { port: 18_980, directives: 'sendfile on' });
  const copying = await startJudge(folder, { port: 18_981, directives: 'sendfile off' });
  const server = await startServer(folder);
  try {
    const pair: Pair = {
      nginx: { ...nginx, url: `${nginx.url}/0.iso` },
      copying: { ...copying, url: `${copying.url}/0.iso` },
      ours: { ...server, url: await order(server.url, 0) },
      size,
    };
    await benchRanges(figures, pair);
    await benchLatency(figures, pair);
    await benchBulk(figures, pair, { runs, folder });
    await benchStalled(figures, pair);
    await benchCustomisations(figures, server, folder);
    const grown = readFolder(isos).bytes - before.bytes;
    addFigures(figures, {
      serveIsoBytesWritten: { value: grown, atMost: 0 },
      serveMemoryMiB: { value: peak, atMost: 250 },
    });
  } finally {
    await server.stop();
    await nginx.stop();
    await copying.stop();
  }
}

/** The first is large enough to be downloaded. */
async function makeRelease(isos: string, site: Site, index: number): Promise<void> {
  const size = index === 0 ? 256 * MIB : 4 * MIB;
  const version = `4.21.${index}`;
  const source = await startSource({ size, images: 8, own: 2, version, base: site.base });
  try {
    const work = prepare('release', source, site);
    await runSealift(['build', 'live-iso', '--output', 'out.iso'], work);
    renameSync(join(work, 'out.iso'), join(isos, `${index}.iso`));
    rmSync(work, { recursive: true });
  } finally {
    await source.stop();
  }
}

/**
 * Debian's nginx with a process for each processor of a small machine. With `tcp_nopush on`, the end of each range waits
 * for 40 ms on a connection over loopback that stays open, which makes every goal in requests a second easy.
 */
async function startJudge(
  folder: string,
  { port, directives }: { readonly port: number; readonly directives: string },
): Promise<Server> {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const lines = [
    `daemon off; worker_processes 2; error_log stderr error; pid ${folder}/nginx-${port}.pid;`,
    'events { worker_connections 4096; }',
    `http { access_log off; keepalive_requests 1000000000; tcp_nopush off; ${directives}; ${temporary.join(' ')}`,
    `server { listen 127.0.0.1:${port} reuseport; root ${folder}/isos; } }`,
  ];
  writeFileSync(join(folder, `nginx-${port}.conf`), lines.join('\n'));
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, `nginx-${port}.conf`)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
  });
  const url = `http://127.0.0.1:${port}`;
  await shell(`curl -sS --retry 50 --retry-connrefused -I ${url}/0.iso`, folder);
  return { url, pid: child.pid ?? 0, stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
}

let peak = 0;

async function startServer(folder: string): Promise<Server> {
  const args = ['serve', '--listen', '127.0.0.1:0', '--data', 'data', '--store', 'isos'];
  const child = spawn(
    process.execPath,
    [SEALIFT, ...args, ...ONE_ADDRESS_LIMITS, '--key', 'env:SERVE_KEY', '--log-format', 'json'],
    {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, SERVE_KEY: 'bench'.repeat(8) },
    },
  );
  const lines = createInterface({ input: child.stderr });
  const [line] = (await once(lines, 'line')) as [string];
  const { url } = JSON.parse(line) as { url: string };
  const timer = setInterval(() => {
    peak = Math.max(peak, readMemory(child.pid ?? 0));
  }, 250);
  return {
    url,
    pid: child.pid ?? 0,
    async stop() {
      clearInterval(timer);
      await end(child);
    },
  };
}

const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPXmhdrEYpNBELFzRHT6SRI4Aa2wFLqX1Vf8OBBaVcGa bench';
const SECRET = '{"auths":{"quay.io":{"auth":"YmVuY2g6YmVuY2g="}}}';

/** A customer's cluster and InfraEnv: the URL of their image. */
async function order(server: string, release: number, name = 'bench'): Promise<string> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const answer = await fetch(`${server}/api/assisted-install/v2/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (answer.status !== 201) throw new Error(await answer.text());
    return (await answer.json()) as Record<string, string>;
  };
  const cluster = await post('clusters/disconnected', {
    name,
    openshift_version: `4.21.${release}`,
  });
  const infraEnv = await post('infra-envs', {
    name,
    cluster_id: cluster['id'],
    image_type: 'disconnected-iso',
    pull_secret: SECRET,
    ssh_authorized_key: `${KEY}-${name}`,
  });
  return infraEnv['download_url'] ?? '';
}

/** Every customer asks for a part of their ISO. */
async function benchCustomisations(
  figures: Figures,
  { url }: Server,
  folder: string,
): Promise<void> {
  const count = RELEASES * CUSTOMISATIONS;
  const began = performance.now();
  const work = async (first: number): Promise<void> => {
    for (let index = first; index < count; index += LANES) {
      const image = await order(url, index % RELEASES, `customer-${index}`);
      const answer = await fetch(image, { headers: { range: 'bytes=4194304-4259839' } });
      if (answer.status !== 206) throw new Error(await answer.text());
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
  const overlays = readFolder(join(folder, 'data/overlays'));
  const all = readFolder(join(folder, 'data'));
  console.log(
    `  serve: ${count} customisations in ${((performance.now() - began) / 1000).toFixed(0)} s: ${overlays.count} overlays, ` +
      `${(overlays.bytes / overlays.count / 1024).toFixed(1)} KiB each; ${(all.bytes / MIB).toFixed(0)} MiB written in all`,
  );
  figures.values['overlayBytes'] = overlays.bytes;
}

/** Customers at a time. */
const LANES = 8;

function readFolder(folder: string): { readonly count: number; readonly bytes: number } {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = files.map(({ parentPath, name }) => statSync(join(parentPath, name)).blocks * 512);
  return { count: files.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
