import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { serveBytes } from '../../base/http/serve-bytes.ts';
import type { Served, ServeOptions } from '../../base/http/serve-bytes.ts';
import type { Exchange } from '../context.ts';

/** By range, resumable. */
export async function sendBytes(
  exchange: Exchange,
  served: Served,
  options: ServeOptions,
): Promise<Response> {
  const { incoming: request, outgoing: response } = exchange.env;
  const entry = await serveBytes(
    // There is no HTTP/2 here.
    { request, response },
    served,
    options,
  );
  exchange.set('served', entry);
  return RESPONSE_ALREADY_SENT;
}
