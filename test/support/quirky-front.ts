import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A request to the front, as a quirk sees it. */
export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly kind: 'ping' | 'manifests' | 'blobs' | 'uploads' | 'token' | 'other';
  /** Counts requests of one method and path, from 1. */
  readonly nth: number;
};

export type Reply = {
  readonly status: number;
  /** In the case in which they are sent. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Buffer;
  /** Bytes of the body after which the connection is cut. */
  readonly cutAfter?: number;
};

/** Changes the answers of a registry, or gives its own. */
export type Quirk = (asked: Asked, next: () => Promise<Reply>) => Reply | Promise<Reply>;

/** A request with its answer. */
export type Entry = Asked & { readonly status: number; readonly bytes: number };

export type QuirkyFront = {
  /** `127.0.0.1:port` */
  readonly host: string;
  readonly entries: Entry[];
  /** Forgets all requests, and answers with this quirk from now on. */
  readonly use: (quirk: Quirk) => void;
  readonly close: () => Promise<void>;
};

/** A server in front of registries, which has an odd habit. */
export async function startQuirkyFront(upstreamOf: (path: string) => string): Promise<QuirkyFront> {
  const entries: Entry[] = [];
  const counts = new Map<string, number>();
  let current: Quirk = (_, next) => next();
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const sent = await buffer(request);
      const { method = '', url: path = '', headers } = request;
      const key = `${method} ${path}`;
      const nth = (counts.get(key) ?? 0) + 1;
      counts.set(key, nth);
      const asked = { method, path, headers, kind: kindOf(path), nth };
      const reply = await current(asked, () => forward(upstreamOf(path), request, sent));
      entries.push({ ...asked, status: reply.status, bytes: send(request, response, reply) });
    };
    answer().catch((error: unknown) => response.destroy(error as Error));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    entries,
    use(quirk) {
      entries.length = 0;
      counts.clear();
      current = quirk;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The prefix of addresses to which a front redirects; they answer as those without it. */
export const ELSEWHERE = '/elsewhere';

function kindOf(path: string): Asked['kind'] {
  if (path === '/v2/') return 'ping';
  if (path.startsWith('/token')) return 'token';
  const [, kind] = /\/(manifests|blobs\/uploads|blobs)\//.exec(path) ?? [];
  if (kind === 'manifests' || kind === 'blobs') return kind;
  return kind === undefined ? 'other' : 'uploads';
}

/** Names of headers that belong to one connection, or that the front sets or asks for itself. */
const OWN = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'authorization']);

async function forward(host: string, request: IncomingMessage, body: Buffer): Promise<Reply> {
  const { method, url = '', headers } = request;
  const path = url.startsWith(ELSEWHERE) ? url.slice(ELSEWHERE.length) : url;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const kept = Object.entries(headers).filter(([name]) => !OWN.has(name));
    const sent = ask(
      `http://${host}${path}`,
      { method, headers: { ...Object.fromEntries(kept), 'content-length': body.length } },
      resolve,
    );
    sent.on('error', reject);
    sent.end(body);
  });
  const entries = Object.entries(answer.headers).filter(([name]) => !OWN.has(name));
  return {
    status: answer.statusCode ?? 0,
    headers: Object.fromEntries(entries.map(([name, value]) => [name, value ?? ''])),
    body: await buffer(answer),
  };
}

/** Bytes of the body that were sent. */
function send(request: IncomingMessage, response: ServerResponse, reply: Reply): number {
  const { status, headers, body, cutAfter } = reply;
  const names = Object.entries(headers).filter(([, value]) => value !== '');
  response.sendDate = !('date' in headers);
  response.writeHead(
    status,
    names.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one])),
  );
  if (request.method === 'HEAD' || status === 204) {
    response.end();
    return 0;
  }
  if (cutAfter !== undefined && cutAfter < body.length) {
    response.write(body.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 5));
    return cutAfter;
  }
  const stated = Number(headers['content-length'] ?? body.length);
  if (stated > body.length) response.write(body, () => response.destroy());
  else response.end(body);
  return body.length;
}
