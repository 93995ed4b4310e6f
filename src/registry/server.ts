import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import pLimit, { type LimitFunction } from 'p-limit';
import { IntegrityError, SealiftError } from '../base/errors.ts';
import { parseRange, type ByteRange } from '../base/http/range.ts';
import { createClientAddresses } from '../base/http/client-address.ts';
import { createLimitedServer, type ServerLimits } from '../base/http/server.ts';
import { withoutUndefined } from '../base/lists.ts';
import { untilAborted, waitFor } from '../base/wait.ts';
import type { RegistryTree } from './layout/tree.ts';
import {
  answerRoute,
  type Answer,
  encodeFailure,
  failure,
  type Failure,
  parseRoute,
} from './server-answers.ts';

/** A request that was answered, or whose client went away. */
export type RequestEntry = {
  readonly method: string;
  /** Path and query as sent. */
  readonly url: string;
  readonly status: number;
  /** True if the whole answer was handed over. */
  readonly complete: boolean;
  /** A failure on our side. */
  readonly error?: unknown;
};

export type RegistryServerOptions = {
  /** PEM texts; without them the server speaks plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly onRequest?: (entry: RequestEntry) => void;
  readonly limits?: Partial<ServerLimits>;
};

/** Answers prepared at once: manifests are read whole to be checked, and lists to be sorted. */
const LOOKED_UP = 4;

/** With a piece of 128 KiB for each connection, and as much again in TLS, some 32 MiB. */
const LIMITS: ServerLimits = {
  connections: 128,
  each: 128,
  head: 10_000,
  request: 10_000,
  idle: 30_000,
  stalled: 30_000,
  slow: 1000,
};

/**
 * A read-only registry (OCI distribution-spec 1.1, "Pull" and "Content Discovery") out of a tree of
 * distribution's layout. Nothing is cached: every answer is read from the tree.
 * Manifests are checked against their digest before they are sent; blobs are checked by clients.
 *
 * Its memory is bounded regardless of its clients: by the number of connections, by one request at a
 * time on each of them, and by sending the next piece only when the client has taken the one before.
 */
export function createRegistryServer(
  tree: RegistryTree,
  options: RegistryServerOptions = {},
): Server | TlsServer {
  const limits = { ...LIMITS, ...options.limits };
  const lookUp = pLimit(LOOKED_UP);
  const { server } = createLimitedServer(
    (request, response) => {
      void handle({ tree, request, response, lookUp }).then(options.onRequest);
    },
    {
      tls: options.tls,
      limits,
      addresses: createClientAddresses(),
      refuse(response, { status, message }) {
        response.setHeader('Retry-After', '5');
        sendFailure(response, failure(REFUSALS[status], message));
      },
    },
  );
  return server;
}

const REFUSALS = { 429: 'TOOMANYREQUESTS', 503: 'UNAVAILABLE' } as const;

type Exchange = {
  readonly tree: RegistryTree;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly lookUp: LimitFunction;
};

/** The client went away before it had the whole answer. */
class ClientGone extends Error {}

async function handle(exchange: Exchange): Promise<RequestEntry> {
  const { request, response } = exchange;
  const gone = new AbortController();
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      gone.abort(new ClientGone());
      resolve();
    };
    if (response.closed || request.socket.destroyed) end();
    else response.once('close', end);
  });
  let error: unknown;
  try {
    await serve(exchange, gone.signal);
  } catch (cause) {
    breakOff(response, cause);
    if (!(cause instanceof ClientGone)) error = cause;
  }
  await closed;
  const { method = '', url = '' } = request;
  const { statusCode: status, writableFinished: complete } = response;
  return { method, url, status, complete, ...withoutUndefined({ error }) };
}

async function serve(exchange: Exchange, gone: AbortSignal): Promise<void> {
  const { request, response, lookUp } = exchange;
  response.setHeader('Docker-Distribution-Api-Version', 'registry/2.0');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  const looking = lookUp(async () => {
    gone.throwIfAborted();
    return answerRequest(exchange);
  });
  const answer = await untilAborted(looking, gone);
  switch (answer.kind) {
    case 'failure':
      sendFailure(response, answer);
      return;
    case 'json':
      if (answer.link !== undefined) response.setHeader('Link', answer.link);
      response.setHeader('Content-Type', 'application/json');
      send(response, 200, answer.bytes);
      return;
    case 'manifest':
      describe(response, answer.digest, answer.mediaType);
      if (isUnchanged(request, answer.digest)) response.writeHead(304).end();
      else if (answer.bytes) send(response, 200, answer.bytes);
      else await sendFile(exchange, answer, gone);
      return;
    case 'blob':
      describe(response, answer.digest, 'application/octet-stream');
      await sendBlob(exchange, answer, gone);
  }
}

async function answerRequest({ tree, request }: Exchange): Promise<Answer> {
  tree.begin?.();
  const { method, url = '' } = request;
  if (method !== 'GET' && method !== 'HEAD') {
    return { ...failure('UNSUPPORTED', 'this registry is read-only'), status: 405 };
  }
  const question = url.indexOf('?');
  const path = question === -1 ? url : url.slice(0, question);
  const route = parseRoute(path);
  if (route.kind === 'failure') return route;
  return answerRoute(tree, route, new URLSearchParams(url.slice(path.length)));
}

async function sendBlob(
  exchange: Exchange,
  blob: Answer & { kind: 'blob' },
  gone: AbortSignal,
): Promise<void> {
  const { request, response } = exchange;
  response.setHeader('Accept-Ranges', 'bytes');
  if (isUnchanged(request, blob.digest)) {
    response.writeHead(304).end();
    return;
  }
  const range = readRange(request, blob);
  if (range === 'unsatisfiable') {
    response.writeHead(416, { 'Content-Range': `bytes */${blob.size}`, 'Content-Length': 0 }).end();
    return;
  }
  await sendFile(exchange, { ...blob, ...(range && { range }) }, gone);
}

type SentFile = { readonly path: string; readonly size: number; readonly range?: ByteRange };

/** The next piece is read when the client has taken the one before. */
async function sendFile(
  { tree, request, response }: Exchange,
  { path, size, range }: SentFile,
  gone: AbortSignal,
): Promise<void> {
  if (range === undefined) response.writeHead(200, { 'Content-Length': size });
  else {
    response.writeHead(206, {
      'Content-Length': range.end - range.start + 1,
      'Content-Range': `bytes ${range.start}-${range.end}/${size}`,
    });
  }
  if (request.method !== 'HEAD' && size > 0) {
    const { start, end } = range ?? { start: 0, end: size - 1 };
    const source: AsyncIterable<Buffer> = (tree.pieces ?? tree.stream)(path, range);
    for await (const piece of passExactly(source, end - start + 1, path)) {
      await waitFor<undefined>(gone, (resolve, reject) => {
        response.write(piece, (error) => {
          if (error) reject(new ClientGone());
          else resolve(undefined);
        });
      });
    }
  }
  response.end();
}

/** A file shorter than announced must not look whole, nor leave the client waiting for the rest. */
async function* passExactly(
  source: AsyncIterable<Buffer>,
  size: number,
  path: string,
): AsyncGenerator<Buffer> {
  let passed = 0;
  for await (const chunk of source) {
    passed += chunk.length;
    if (passed <= size) yield chunk;
  }
  if (passed === size) return;
  throw new IntegrityError(
    'registry.file-size',
    `file ${path} should give ${size} bytes, but gave ${passed} bytes`,
    { expected: `${size} bytes`, found: `${passed} bytes` },
  );
}

/** RFC 9110 14.2: Range is for GET alone; 13.1.5: and is ignored if If-Range names something else. */
function readRange(
  { method, headers }: IncomingMessage,
  { digest, size }: Answer & { kind: 'blob' },
): ByteRange | 'unsatisfiable' | undefined {
  const condition = headers['if-range'];
  if (method !== 'GET' || (condition !== undefined && condition !== `"${digest}"`)) {
    return undefined;
  }
  return parseRange(headers.range, size);
}

function describe(response: ServerResponse, digest: string, mediaType: string): void {
  response.setHeader('Content-Type', mediaType);
  response.setHeader('Docker-Content-Digest', digest);
  response.setHeader('ETag', `"${digest}"`);
}

/** RFC 9110 13.1.2; our tags are strong and have no commas in them. */
function isUnchanged({ headers }: IncomingMessage, digest: string): boolean {
  const known = headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known?.some((tag) => tag === '*' || tag === `"${digest}"`) ?? false;
}

function sendFailure(response: ServerResponse, answer: Failure): void {
  if (answer.status === 405) response.setHeader('Allow', 'GET, HEAD');
  response.setHeader('Content-Type', 'application/json');
  send(response, answer.status, encodeFailure(answer));
}

/** Sends an answer; for HEAD, Node omits the body itself. */
function send(response: ServerResponse, status: number, bytes: Uint8Array): void {
  response.writeHead(status, { 'Content-Length': bytes.length }).end(bytes);
}

/** Reports a tree that cannot be read: by an answer if none was begun, else by ending the connection. */
function breakOff(response: ServerResponse, cause: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const message = cause instanceof SealiftError ? cause.message : 'registry tree cannot be read';
  sendFailure(response, failure('UNKNOWN', message));
}
