import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { startSealift, type Child } from '../support/child.ts';
import { readMemory } from '../support/process-tree.ts';
import { API, PULL_SECRET } from '../support/service.ts';

/* Tenants that misbehave, and what others have of the service meanwhile. */

const PROBE = fileURLToPath(new URL('./probe-live.ts', import.meta.url));

/** Addresses of loopback stand for those of clients. */
const ATTACKER = '127.0.0.66';
const OTHERS = '127.0.0.2';

export type Victim = {
  readonly port: number;
  /** Milliseconds from the start of the process to its first answer. */
  readonly startedIn: number;
  /** Most memory that its processes have had together, in MiB. */
  readonly peakMiB: () => number;
  readonly end: (signal: 'SIGTERM' | 'SIGKILL') => Promise<unknown>;
};

/** Number of answers by status; 0: connections that were closed without one. */
export type Statuses = Record<number, number>;

/** What others have had of the service during an attack. */
export type Probed = {
  /** Milliseconds. */
  readonly p99: number;
  readonly statuses: Statuses;
};

/** `sealift serve` on a store, as a process of its own, with its defaults. */
export async function startVictim(directory: string, store: string): Promise<Victim> {
  await writeFile(join(directory, 'key'), 'k'.repeat(40));
  const began = performance.now();
  const args = ['--data', 'data', '--key', 'file:key', '--listen', '127.0.0.1:0'];
  const child = startSealift(['serve', ...args, '--store', store], { cwd: directory });
  const port = await findPort(child);
  await fetch(`http://127.0.0.1:${port}/live`);
  let peak = 0;
  const sample = (): number => (peak = Math.max(peak, readMemory(child.process.pid ?? 0)));
  const sampler = setInterval(sample, 200);
  return {
    port,
    startedIn: performance.now() - began,
    peakMiB: sample,
    end(signal) {
      clearInterval(sampler);
      child.process.kill(signal);
      return child.ended;
    },
  };
}

async function findPort(child: Child): Promise<number> {
  let told = '';
  for (;;) {
    const [piece] = (await once(child.process.stderr ?? child.process, 'data')) as [Buffer];
    told += piece.toString();
    const port = /serving on http:\/\/127\.0\.0\.1:(\d+);/.exec(told)?.[1];
    if (port !== undefined) return Number(port);
  }
}

/** Asks for /live from another address while an attack goes on. */
export async function probeDuring<Result>(
  { port }: Victim,
  attack: () => Promise<Result>,
): Promise<Probed & { readonly attacked: Result }> {
  const probe = spawn(process.execPath, ['--import', 'tsx', PROBE, String(port), OTHERS], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const printed = text(probe.stdout);
  const attacked = await attack();
  probe.stdin.end();
  const { times, statuses } = JSON.parse(await printed) as { times: number[]; statuses: number[] };
  const sorted = times.toSorted((a, b) => a - b);
  return {
    attacked,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? NaN,
    statuses: count(statuses),
  };
}

const count = (statuses: readonly number[]): Statuses => {
  const counted: Statuses = {};
  for (const status of statuses) counted[status] = (counted[status] ?? 0) + 1;
  return counted;
};

type Made = { readonly status: number; readonly body: Readonly<Record<string, string>> };

type Sent = { readonly path: string; readonly body: object; readonly from: string };

async function post({ port }: Victim, { path, body, from: localAddress }: Sent): Promise<Made> {
  const headers = { 'content-type': 'application/json' };
  const asked = request({
    port,
    host: '127.0.0.1',
    path: API + path,
    method: 'POST',
    headers,
    localAddress,
  });
  asked.end(JSON.stringify(body));
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const given = JSON.parse(await text(answer)) as Made['body'];
  return { status: answer.statusCode ?? 0, body: given };
}

/** Path of an image of another tenant. */
export async function orderImage(victim: Victim, version: string): Promise<string> {
  const cluster = { name: 'edge', openshift_version: version };
  const { body } = await post(victim, {
    path: '/v2/clusters/disconnected',
    body: cluster,
    from: OTHERS,
  });
  const infraEnv = {
    name: 'edge',
    cluster_id: body['id'],
    image_type: 'disconnected-iso',
    pull_secret: PULL_SECRET,
  };
  const { body: made } = await post(victim, {
    path: '/v2/infra-envs',
    body: infraEnv,
    from: OTHERS,
  });
  const { pathname, search } = new URL(made['download_url'] ?? '');
  return pathname + search;
}

/** Creates InfraEnvs of a quarter of a MiB, many at a time. */
export async function createLargeInfraEnvs(victim: Victim, most: number): Promise<Statuses> {
  const source = `data:,${'x'.repeat(4096)}`;
  const files = Array.from({ length: 60 }, (_, index) => ({
    path: `/etc/large/${index}`,
    contents: { source },
    mode: 0o600,
  }));
  const override = JSON.stringify({ ignition: { version: '3.2.0' }, storage: { files } });
  const body = { name: 'large', pull_secret: PULL_SECRET, ignition_config_override: override };
  const statuses: number[] = [];
  const create = async (first: number): Promise<void> => {
    for (let index = first; index < most; index += LANES) {
      const sent = { ...body, name: `large-${index}` };
      const made = post(victim, { path: '/v2/infra-envs', body: sent, from: ATTACKER });
      statuses.push((await made.catch(() => ({ status: 0 }))).status);
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, lane) => create(lane)));
  return count(statuses);
}

const LANES = 60;

/** Seconds that a first refusal is waited for. */
const PATIENCE = 60;

/** Opens connections that send this, and keeps them until the hold is over. */
async function hold(
  { port }: Victim,
  bytes: Buffer | string,
  { most, seconds }: { readonly most: number; readonly seconds: number },
): Promise<Statuses> {
  const answers = new Map<Socket, number>();
  const sockets = Array.from({ length: most }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: ATTACKER });
    socket.on('error', () => undefined);
    socket.on('close', () => answers.set(socket, answers.get(socket) ?? 0));
    socket.once('readable', () => {
      const head = (socket.read(12) as Buffer | null)?.toString() ?? '';
      if (head !== '') answers.set(socket, Number(head.split(' ')[1]));
    });
    socket.write(bytes);
    return socket;
  });
  const began = performance.now();
  const isOver = (): boolean => {
    const seen = (performance.now() - began) / 1000;
    // A busy machine may not have refused any yet.
    return seen > seconds && (seen > PATIENCE || [...answers.values()].includes(429));
  };
  while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 100));
  const counted = count([...answers.values()]);
  for (const socket of sockets) socket.destroy();
  return counted;
}

type Held = { readonly most: number; readonly seconds: number };

/** Bodies that never end: half of a MiB of each arrives. */
export function sendEndlessBodies(victim: Victim, held: Held): Promise<Statuses> {
  const head =
    `POST ${API}/v2/infra-envs HTTP/1.1\r\nHost: localhost\r\n` +
    'Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n';
  return hold(victim, Buffer.concat([Buffer.from(head), Buffer.alloc(512 << 10, ' ')]), held);
}

/** Downloads of one image whose clients read only the head; eight in a row, because the kernel takes much for them. */
export const stallDownloads = (victim: Victim, path: string, held: Held): Promise<Statuses> =>
  hold(victim, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(8), held);
