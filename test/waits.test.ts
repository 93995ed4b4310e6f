import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer, type AddressInfo, type Server as NetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../src/base/text/redact.ts';
import { digestOf } from '../src/base/digest.ts';
import { hasFile } from '../src/base/disk/files.ts';
import { createHttp, type Http } from '../src/base/http/http.ts';
import { TransientError } from '../src/base/http/network-failure.ts';
import { runProcess } from '../src/base/process.ts';
import { createRetries } from '../src/base/retry.ts';
import { writeResult } from '../src/cli/terminal/output.ts';
import { downloadFile } from '../src/base/download/fetch.ts';
import { fetchText } from '../src/base/download/fetch.ts';
import { takeLease } from '../src/base/disk/lease.ts';
import { resolveInGraph } from '../src/openshift/release/update-graph.ts';
import { createKeySource } from '../src/sites/identity/keys.ts';
import { findNetworkTool } from '../src/nmstate/tool.ts';
import { createRegistryClient, type RegistryClient } from '../src/registry/client.ts';
import { credentialsFromFiles } from '../src/registry/client/credentials.ts';
import { createHostLimit } from '../src/registry/client/requester.ts';
import { readBlob } from '../src/base/store/blob-source.ts';
import { startSealift } from './support/child.ts';

/** What a test leaves is ended after it. */
let cleanUps: (() => unknown)[] = [];
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'waits-'));
  cleanUps.push(() => rm(directory, { recursive: true, force: true }));
});
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
  cleanUps = [];
});

/** Something that waits; `waiting` resolves when it does. */
type Case = (signal: AbortSignal) => Promise<{
  readonly work: Promise<unknown>;
  readonly waiting: Promise<unknown>;
}>;

type Trigger = { readonly reached: Promise<void>; readonly reach: () => void };

function createTrigger(): Trigger {
  let reach = (): void => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  return { reached, reach };
}

async function listen(server: NetServer | Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Takes connections and what they send, and does with them what it is told. */
async function serveRaw(onData: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  return listen(
    createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => {
        onData(socket);
      });
    }),
  );
}

function openHttp(env: NodeJS.ProcessEnv = {}): Http {
  const http = createHttp({ redaction: createRedaction(), env });
  cleanUps.push(() => http.close());
  return http;
}

const HALF = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf';

/** A server that holds its answer, or stops in the middle of it. */
async function serveSilence(answer = ''): Promise<Trigger & { readonly host: string }> {
  const trigger = createTrigger();
  const host = await serveRaw((socket) => {
    if (answer !== '') socket.write(answer);
    setTimeout(trigger.reach, 50);
  });
  return { ...trigger, host };
}

const ask = (url: string, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<unknown> =>
  openHttp(env).request({ url: new URL(url), signal });

const BLOB = { mediaType: 'application/octet-stream', digest: digestOf('x'), size: 10 } as const;

function openClient(
  host: string,
  credentials = [] as Parameters<typeof createRegistryClient>[0]['credentials'],
): RegistryClient {
  const http = openHttp();
  return createRegistryClient({ http, credentials, certsDirs: [], insecureRegistries: [host] });
}

/** A registry by plain HTTP; the test says what it answers to what is not `/v2/`. */
async function serveRegistry(answer: (path: string) => string | undefined) {
  const trigger = createTrigger();
  const server = createHttpServer((request, response) => {
    const path = request.url ?? '';
    const text = path === '/v2/' ? '{}' : answer(path);
    if (text === undefined) setTimeout(trigger.reach, 50);
    else if (text.startsWith('401 ')) {
      response.writeHead(401, { 'www-authenticate': text.slice(4) }).end();
    } else response.end(text);
  });
  cleanUps.push(() => {
    server.closeAllConnections();
  });
  return { ...trigger, host: await listen(server) };
}

async function writeScript(name: string, ...lines: string[]): Promise<string> {
  const path = join(directory, name);
  await mkdir(directory, { recursive: true });
  await writeFile(path, ['#!/bin/sh', ': > "$0.started"', ...lines, ''].join('\n'));
  await chmod(path, 0o755);
  return path;
}

const STUBBORN = ["trap '' TERM INT", 'while :; do sleep 0.1; done'];

/** Resolves when a script of `writeScript` runs. */
async function whenStarted(name: string): Promise<void> {
  while (!(await hasFile(join(directory, `${name}.started`)))) await sleep(10);
}

const CASES: Readonly<Record<string, Case>> = {
  'a server that holds its answer': async (signal) => {
    const { host, reached } = await serveSilence();
    return { work: ask(`http://${host}/`, {}, signal), waiting: reached };
  },
  'a server that never shakes hands for TLS': async (signal) => {
    const { host, reached } = await serveSilence();
    return { work: ask(`https://${host}/`, {}, signal), waiting: reached };
  },
  'a proxy that holds its answer to CONNECT': async (signal) => {
    const { host, reached } = await serveSilence();
    const env = { https_proxy: `http://${host}` };
    return { work: ask('https://registry.invalid/', env, signal), waiting: reached };
  },
  'a proxy that never shakes hands for TLS': async (signal) => {
    const { host, reached } = await serveSilence();
    const env = { https_proxy: `https://${host}` };
    return { work: ask('https://registry.invalid/', env, signal), waiting: reached };
  },
  'a proxy that closes every CONNECT, tried again and again': async (signal) => {
    const trigger = createTrigger();
    const host = await serveRaw((socket) => {
      socket.end();
      trigger.reach();
    });
    const http = openHttp({ https_proxy: `http://${host}` });
    const url = new URL('https://registry.invalid/');
    return { work: fetchText(http, { url, signal, limit: 100 }), waiting: trigger.reached };
  },
  'a body that stops in the middle': async (signal) => {
    const { host, reached } = await serveSilence(HALF);
    const url = new URL(`http://${host}/`);
    return { work: fetchText(openHttp(), { url, signal, limit: 100 }), waiting: reached };
  },
  'a download that stops in the middle': async (signal) => {
    const { host, reached } = await serveSilence(HALF);
    const url = new URL(`http://${host}/`);
    const path = join(directory, 'file');
    return {
      work: downloadFile({ url, signal, path, limit: 100, http: openHttp() }),
      waiting: reached,
    };
  },
  'a lease of a process that cannot be seen': async (signal) => {
    const path = join(directory, 'out.iso.lock');
    await mkdir(directory, { recursive: true });
    await writeFile(path, '1 1 feedfeedfeedfeed 0\n');
    const trigger = createTrigger();
    return { work: takeLease(path, { signal, warn: trigger.reach }), waiting: trigger.reached };
  },
  'an update graph that does not answer': async (signal) => {
    const { host, reached } = await serveSilence();
    return {
      work: resolveInGraph({
        http: openHttp(),
        url: `http://${host}/`,
        channel: 'stable',
        signal,
        arch: 'x86_64',
        version: '4.20',
      }),
      waiting: reached,
    };
  },
  'a registry that does not answer its ping': async (signal) => {
    const { host, reached } = await serveSilence();
    const reference = { registry: host, repository: 'a/b', tag: 'v1' };
    return { work: openClient(host).fetchManifest(reference, { signal }), waiting: reached };
  },
  'a token server that does not answer': async (signal) => {
    const silent = await serveSilence();
    const { host } = await serveRegistry(
      () => `401 Bearer realm="http://${silent.host}/token",service="s"`,
    );
    const reference = { registry: host, repository: 'a/b', tag: 'v1' };
    return {
      work: openClient(host).fetchManifest(reference, { signal }),
      waiting: silent.reached,
    };
  },
  'a blob that does not come': async (signal) => {
    const { host, reached } = await serveRegistry(() => undefined);
    const sources = openClient(host).sourcesOf({ registry: host, repository: 'a/b' });
    const chunks = readBlob(sources, BLOB, { offset: 0, signal });
    return { work: chunks.next(), waiting: reached };
  },
  'a place among the requests of a host': async (signal) => {
    const limit = createHostLimit(1);
    await limit.acquire(new AbortController().signal);
    return { work: limit.acquire(signal), waiting: Promise.resolve() };
  },
  'the pause before another attempt': (signal) => {
    const trigger = createTrigger();
    const retries = createRetries({ onEvent: trigger.reach });
    const error = new TransientError('c', 'm', { answered: true, retryAfter: 60_000 });
    const work = retries.run({ host: 'h', signal }, () => Promise.reject(error));
    return Promise.resolve({ work, waiting: trigger.reached });
  },
  'a program that ignores SIGTERM': async (signal) => {
    const path = await writeScript('stubborn', ...STUBBORN);
    return { work: runProcess(path, [], { signal }), waiting: whenStarted('stubborn') };
  },
  'a program whose child holds its pipes': async (signal) => {
    const path = await writeScript('parent', 'setsid sleep 60 &', 'exec sleep 60');
    return { work: runProcess(path, [], { signal }), waiting: whenStarted('parent') };
  },
  'a credential helper that asks somebody': async (signal) => {
    await writeScript('docker-credential-slow', ...STUBBORN);
    const config = join(directory, 'auth.json');
    await writeFile(config, JSON.stringify({ credsStore: 'slow' }));
    const PATH = `${directory}:${process.env['PATH'] ?? ''}`;
    const { host } = await serveRegistry(() => '401 Basic realm="x"');
    const store = credentialsFromFiles({ PATH, REGISTRY_AUTH_FILE: config }, createRedaction());
    const reference = { registry: host, repository: 'a/b', tag: 'v1' };
    const work = openClient(host, [store]).fetchManifest(reference, { signal });
    return { work, waiting: whenStarted('docker-credential-slow') };
  },
  'nmstatectl that never says its version': async (signal) => {
    await writeScript('nmstatectl', ...STUBBORN);
    const env = { PATH: `${directory}:${process.env['PATH'] ?? ''}` };
    return { work: findNetworkTool({ env, signal }), waiting: whenStarted('nmstatectl') };
  },
  'a reader of the output that does not read': (signal) => {
    const stdout = new Writable({ write: () => undefined });
    const host = { stdout, signal, redaction: createRedaction() };
    const work = writeResult(host as unknown as Parameters<typeof writeResult>[0], 'text');
    return Promise.resolve({ work, waiting: Promise.resolve() });
  },
  'a key in the making': (signal) => {
    const keys = createKeySource({ jobs: 1 });
    cleanUps.push(() => keys.close());
    const work = Promise.all(Array.from({ length: 200 }, () => keys.next(signal)));
    return Promise.resolve({ work, waiting: Promise.resolve() });
  },
};

describe('waiting ends within 2 s of the signal, with its reason,', () => {
  it.each(Object.entries(CASES))('for %s', async (_name, start) => {
    const controller = new AbortController();
    const reason = new Error('called off');
    const { work, waiting } = await start(controller.signal);
    const outcome = work.then(
      () => 'done',
      (error: unknown) => error,
    );
    await waiting;
    const aborted = performance.now();
    controller.abort(reason);
    expect(await outcome).toBe(reason);
    expect(performance.now() - aborted).toBeLessThan(2000);
  });
});

describe('the program ends within 2 s of SIGTERM', () => {
  const end = async (args: readonly string[], env: NodeJS.ProcessEnv, until: Promise<unknown>) => {
    const child = startSealift(args, { cwd: directory, env });
    await until;
    const start = performance.now();
    child.process.kill('SIGTERM');
    const { code, stderr } = await child.ended;
    const how = code ?? child.process.signalCode;
    return { how, stderr, milliseconds: performance.now() - start };
  };

  it('while a proxy closes every CONNECT', async () => {
    const trigger = createTrigger();
    let connects = 0;
    const host = await serveRaw((socket) => {
      socket.end();
      connects += 1;
      trigger.reach();
    });
    await writeFile(join(directory, 'appliance-config.yaml'), CONFIG);
    const ended = await end(['plan'], { https_proxy: `http://u:pw@${host}` }, trigger.reached);
    expect(ended.how).toBe(143);
    expect(ended.stderr).toContain('interrupted by SIGTERM');
    expect(ended.stderr).not.toContain('pw');
    expect(ended.milliseconds).toBeLessThan(2500);
    expect(connects).toBeLessThan(10);
  });
});

it('the program refuses a pipe without a writer instead of waiting for it', async () => {
  execFileSync('mkfifo', [join(directory, 'appliance-config.yaml')]);
  const { code, stderr } = await startSealift(['validate'], { cwd: directory }).ended;
  expect([code, stderr]).toEqual([3, expect.stringContaining('is not a regular file')]);
});

const CONFIG = [
  'apiVersion: v1beta1',
  'kind: ApplianceConfig',
  'ocpRelease: {version: "4.21.1", url: "quay.io/ocp/release:4.21.1"}',
  `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
  'enableInteractiveFlow: true',
  '',
].join('\n');
