import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { makeDirectory } from '../../base/disk/files.ts';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { ToolError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { sleep, untilAborted, waitFor } from '../../base/wait.ts';
import type { ServiceServer } from '../../service/door.ts';
import type { OpenedService } from '../../service/service.ts';
import type { Pool } from '../../service/workers/pool.ts';
import type { CliHost } from '../host.ts';
import { readAddresses } from './limits.ts';
import { type Address, type Listening, listenOn, waitForEnd } from './listen.ts';
import { CLOSING, drainAll, REFUSE, type Running } from './run-alone.ts';
import type { ServeSettings } from './serve-options.ts';

/* Owns a service whose clients connect to workers, from listening to its end. */

/** Fewest and most workers, unless the command line says how many. */
const FEWEST = 2;
const MOST = 4;

/** @returns undefined for a service in one process */
export async function openPool(
  { workers }: Pick<ServeSettings, 'workers'>,
  { host, warn }: { readonly host: CliHost; readonly warn: (message: string) => void },
): Promise<Pool | undefined> {
  const count = workers ?? Math.max(FEWEST, Math.min(availableParallelism(), MOST));
  if (host.workerProgram === undefined || count === 1) return undefined;
  const { createPool } = await import('../../service/workers/pool.ts');
  return createPool({ program: host.workerProgram, count, warn });
}

/** Listens with workers, and answers what they pass on until the signal; then lets downloads end. */
export const runWorkers = (service: OpenedService, running: Running, pool: Pool): Promise<void> =>
  useSocketFile(resolve(running.host.cwd, running.options.data), (inner) =>
    run(service, running, { pool, inner }),
  );

async function run(
  service: OpenedService,
  running: Running,
  { pool, inner }: { readonly pool: Pool; readonly inner: string },
): Promise<void> {
  const { options, host, log, ports, pair: tls, watch } = running;
  const { createInnerServer } = await import('../../service/server.ts');
  const { signal } = host;
  const isTls = tls !== undefined;
  const wanted = [{ ...options.listen, isTls }];
  if (options.listenHttp) wanted.push({ ...options.listenHttp, isTls: false });
  const shown: Listening[] = [];
  for (const each of wanted) shown.push(await findPort(each, signal));
  if (options.listenHttp) ports.http = shown[1]?.port ?? 0;
  const server = createInnerServer(service, {
    addresses: readAddresses(options, true),
    limits: { each: options.limitAddress },
  });
  await waitFor<undefined>(signal, (done, fail) => {
    server.server.once('error', fail);
    server.server.listen({ path: inner, backlog: BACKLOG }, () => {
      done(undefined);
    });
  });
  const listeners = wanted.map(({ host, isTls }, index) => ({
    host,
    isTls,
    port: shown[index]?.port ?? 0,
  }));
  const starting = pool.start({
    settings: {
      inner,
      listeners,
      each: options.limitAddress,
      connections: options.limitConnections,
      tenant: options.limitTenant,
      proxies: options.trustedProxy,
      ...withoutUndefined({ tls }),
    },
    reports: service.workerReports,
    listTenants: service.budgets.listTenants,
  });
  let unwatch = (): void => undefined;
  try {
    await untilAborted(starting, signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new ToolError('service.workers', 'the workers of the service do not start', { cause });
    });
    unwatch = watch({ use: pool.renew, warn: log.warn });
    for (const { url, address } of shown) log.serving(url, address);
    host.allowGrace?.(options.drain + CLOSING);
    await waitForEnd([server.server], host);
  } finally {
    unwatch();
    await drainWorkers(pool, server, running);
  }
}

/** Lets downloads end, and then what workers pass on; those that are cut off have a second to end. */
async function drainWorkers(
  pool: Pool,
  inner: Pick<ServiceServer, 'drain'>,
  running: Running,
): Promise<void> {
  let ending: Promise<void> = Promise.resolve();
  const drain = (limit: AbortSignal): Promise<void> => {
    ending = pool.drain(limit).finally(() => inner.drain(limit));
    return ending;
  };
  await drainAll([{ drain }], running);
  await ending.catch(() => undefined);
}

/** Requests that workers pass on at once: with a shorter queue, Linux refuses some. It has its own limit, `somaxconn`. */
const BACKLOG = 8192;

/** Milliseconds in which a port may still be that of a service that was killed, and between two attempts. */
const BUSY = 2000;
const TRY_EVERY = 50;

/** Finds out where workers can listen, with the refusals of one that cannot. */
async function findPort(
  { isTls, ...wanted }: Address & { readonly isTls: boolean },
  signal: AbortSignal,
  until = performance.now() + BUSY,
): Promise<Listening> {
  const server = createServer();
  try {
    const found = await listenOn(server, { ...wanted, signal }, REFUSE);
    return isTls ? { ...found, url: found.url.replace(/^http:/, 'https:') } : found;
  } catch (error) {
    if (!isBusy(error) || performance.now() > until) throw error;
  } finally {
    server.close();
  }
  await sleep(TRY_EVERY, signal);
  return findPort({ isTls, ...wanted }, signal, until);
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'service.port-in-use';

/** Longest path of a socket file in bytes: Linux has room for 107. */
const LONGEST = 100;

/** Calls a function with the path of a socket file that this user alone can connect to. */
async function useSocketFile(data: string, work: (path: string) => Promise<void>): Promise<void> {
  const path = join(data, 'workers', 'socket');
  if (Buffer.byteLength(path) > LONGEST) {
    await useTemporaryFolder((folder) => work(join(folder, 'socket')));
    return;
  }
  // It may have the socket of a process that was killed, or be a copy that is open to others.
  await rm(dirname(path), { recursive: true, force: true });
  await makeDirectory(dirname(path), 0o700);
  await work(path);
}
