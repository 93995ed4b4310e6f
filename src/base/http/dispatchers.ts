import type { LookupFunction } from 'node:net';
import { Agent, Pool, type Dispatcher } from 'undici';
import type { ConnectOptions } from './tls.ts';
import { createConnector, createProxyAgent } from './tunnels.ts';

/*
 * Owns the dispatchers of requests. Loaded by the first request: undici takes as long to start as the rest
 * of the program.
 */

export { request } from 'undici';

type DispatcherOptions = {
  readonly connections?: number;
  readonly env?: NodeJS.ProcessEnv;
};

type Connecting = {
  /** Absent for plain HTTP. */
  readonly tls?: ConnectOptions;
  readonly proxy?: string;
  readonly lookup?: LookupFunction;
};

/** Creates the dispatcher of an origin. A proxy looks names up itself. */
export function createDispatcher(
  { connections = 64, env = process.env }: DispatcherOptions,
  { tls, proxy, lookup }: Connecting,
): Dispatcher {
  const connect = { timeout: CONNECT_TIMEOUT, ...tls };
  if (proxy !== undefined) return createProxyAgent(proxy, { connect, connections, env });
  const options = { ...connect, ...(lookup && { lookup }) };
  return new Agent({
    connections,
    factory: (origin) => new Pool(origin, { connections, connect: createConnector(options) }),
  });
}

const CONNECT_TIMEOUT = 20_000;
