import { UsageError } from '../../base/errors.ts';
import type { KeyPair } from '../../base/http/key-pair.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { withTimeLimit } from '../../base/wait.ts';
import type { OpenedService } from '../../service/service.ts';
import type { CliHost } from '../host.ts';
import { readAddresses } from './limits.ts';
import { listenOn, type ListenRefusals, waitForEnd, type WatchedTls } from './listen.ts';
import type { ServeSettings } from './serve-options.ts';
import type { ServeLog } from './service-log.ts';

/* Owns a service in one process, from listening to its end. */

export type Running = WatchedTls & {
  readonly options: ServeSettings;
  readonly host: CliHost;
  readonly log: ServeLog;
  readonly ports: { http?: number };
};

/** Listens, and answers until the signal; then lets downloads end. */
export async function runAlone(
  service: OpenedService,
  { options, host, log, ports, pair: tls, watch }: Running,
): Promise<void> {
  const { createServiceServer } = await import('../../service/server.ts');
  const create = (pair: KeyPair | undefined) =>
    createServiceServer(service, {
      addresses: readAddresses(options, false),
      limits: { connections: options.limitConnections, each: options.limitAddress },
      ...withoutUndefined({ tls: pair }),
    });
  const { signal } = host;
  const main = create(tls);
  const plain = options.listenHttp && create(undefined);
  const all = plain ? [main, plain] : [main];
  const shown = [await listenOn(main.server, { ...options.listen, signal }, REFUSE)];
  if (options.listenHttp && plain) {
    shown.push(await listenOn(plain.server, { ...options.listenHttp, signal }, REFUSE));
    ports.http = shown[1]?.port ?? 0;
  }
  const unwatch = watch({ use: main.renew, warn: log.warn });
  for (const { url, address } of shown) log.serving(url, address);
  host.allowGrace?.(options.drain + CLOSING);
  try {
    await waitForEnd(
      all.map(({ server }) => server),
      host,
    );
  } finally {
    unwatch();
    await drainAll(all, { options, log });
  }
}

/** Lets downloads end, of one after the other. */
export async function drainAll(
  servers: readonly { readonly drain: (limit: AbortSignal) => Promise<void> }[],
  { options, log }: Pick<Running, 'options' | 'log'>,
): Promise<void> {
  log.message('draining: no new connections; running downloads may finish');
  const drain = (limit: AbortSignal) => Promise.all(servers.map((server) => server.drain(limit)));
  await withTimeLimit(options.drain, new AbortController().signal, drain).catch(() => {
    log.warn('downloads were cut off: they did not end within --drain');
  });
}

export const REFUSE: ListenRefusals = {
  inUse: (...about) => new UsageError('service.port-in-use', ...about),
  denied: (...about) => new UsageError('service.port-denied', ...about),
  address: (...about) => new UsageError('service.address', ...about),
};

/** Milliseconds in which the records are closed. */
export const CLOSING = 5000;
