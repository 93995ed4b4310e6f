import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { type ClientAddresses, createClientAddresses } from '../base/http/client-address.ts';
import type { KeyPair } from '../base/http/key-pair.ts';
import type { ServerLimits } from '../base/http/server.ts';
import { answerFailure } from './app.ts';
import { createDoor, SERVER_LIMITS, type ServiceServer } from './door.ts';
import { ApiFailure } from './openapi.ts';
import type { OpenedService } from './service.ts';
import { parsePassed } from './workers/pass-words.ts';

/* Owns the servers of the service that have its routes behind them. */

export type ServiceServerOptions = {
  readonly tls?: KeyPair;
  readonly limits?: Partial<ServerLimits>;
  readonly addresses?: ClientAddresses;
};

/** Creates the server of a service in one process, not listening yet. */
export function createServiceServer(
  { app, answerKnown }: Pick<OpenedService, 'app' | 'answerKnown'>,
  options: ServiceServerOptions,
): ServiceServer {
  const answer = createListener((request, env) => app.fetch(request, env));
  return createDoor(
    (request, response) => {
      answerKnown(request, response, () => void answer(request, response));
    },
    {
      tls: options.tls,
      limits: { ...SERVER_LIMITS, ...options.limits },
      addresses: options.addresses ?? createClientAddresses(),
    },
  );
}

/** Milliseconds that a connection of a worker may have no request: only the worker closes it. */
const WORKER_IDLE = 86_400_000;

/** Connections of workers: each request in flight has one. */
const WORKER_CONNECTIONS = 1_000_000;

/** Creates the server of a service whose clients connect to workers: it answers what they pass on by a socket file. */
export function createInnerServer(
  { app }: Pick<OpenedService, 'app'>,
  {
    limits,
    addresses = createClientAddresses({ isInner: true }),
  }: Omit<ServiceServerOptions, 'tls'>,
): ServiceServer {
  const answer = createListener((request, env) =>
    app.fetch(request, { ...env, passed: parsePassed((env as HttpBindings).incoming) }),
  );
  const own = { connections: WORKER_CONNECTIONS, idle: WORKER_IDLE };
  return createDoor((request, response) => void answer(request, response), {
    limits: { ...SERVER_LIMITS, ...limits, ...own },
    addresses,
    isInner: true,
  });
}

type Fetch = Parameters<typeof getRequestListener>[0];

const createListener = (fetch: Fetch): ReturnType<typeof getRequestListener> =>
  getRequestListener(fetch, {
    overrideGlobalObjects: false,
    hostname: 'localhost', // HTTP/1.0 requests may have no host
    errorHandler: () => answerFailure(new ApiFailure(400, 'the request is not valid')),
  });
