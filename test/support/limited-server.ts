import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClientAddresses } from '../../src/base/http/client-address.ts';
import {
  createLimitedServer,
  type LimitedServer,
  type ServerLimits,
} from '../../src/base/http/server.ts';
import { SERVER_LIMITS } from '../../src/service/door.ts';

/** A server on a free port of loopback, with the limits of the service unless told. */
export async function startLimitedServer(
  limits: Partial<ServerLimits>,
  answer: RequestListener,
): Promise<LimitedServer & { readonly port: number; readonly close: () => void }> {
  const limited = createLimitedServer(answer, {
    limits: { ...SERVER_LIMITS, ...limits },
    addresses: createClientAddresses(),
    refuse: (response, { status, message }) => response.writeHead(status).end(message),
  });
  const { server } = limited;
  await once((server as Server).listen(0, '127.0.0.1'), 'listening');
  return {
    ...limited,
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
