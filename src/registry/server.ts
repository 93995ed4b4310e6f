import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import pLimit, { type LimitFunction } from 'p-limit';
import { SealiftError } from '../base/errors.ts';
import { createClientAddresses } from '../base/http/client-address.ts';
import type { Served } from '../base/http/plan-answer.ts';
import { serveBytes } from '../base/http/serve-bytes.ts';
import { createLimitedServer, type ServerLimits } from '../base/http/server.ts';
import { withoutUndefined } from '../base/lists.ts';
import { untilAborted } from '../base/wait.ts';
import type { ServedTree, OpenTreeFile } from './layout/tree.ts';
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

/** Pieces of all connections together have 16 MiB, and as much again in TLS. */
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
  tree: ServedTree,
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
  readonly tree: ServedTree;
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
    error = await serve(exchange, gone.signal);
  } catch (cause) {
    breakOff(response, cause);
    if (!(cause instanceof ClientGone)) error = cause;
  }
  await closed;
  const { method = '', url = '' } = request;
  const { statusCode: status, writableFinished: complete } = response;
  return { method, url, status, complete, ...withoutUndefined({ error }) };
}

/** @returns a failure on our side after a part of the answer was sent */
async function serve(exchange: Exchange, gone: AbortSignal): Promise<unknown> {
  const { response, lookUp } = exchange;
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
      return undefined;
    case 'json':
      if (answer.link !== undefined) response.setHeader('Link', answer.link);
      response.setHeader('Content-Type', 'application/json');
      send(response, 200, answer.bytes);
      return undefined;
    case 'manifest':
    case 'blob':
      return sendContent(exchange, answer);
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

/** Sends content by its digest, which is its tag: what a client has of it stays valid. */
async function sendContent(
  { tree, request, response }: Exchange,
  content: Answer & { kind: 'manifest' | 'blob' },
): Promise<unknown> {
  const { path, size, digest } = content;
  const { bytes, mediaType = 'application/octet-stream' } =
    content.kind === 'manifest' ? content : {};
  const options = { contentType: mediaType, headers: { 'Docker-Content-Digest': digest } };
  let opening: Promise<OpenTreeFile> | undefined;
  const fill: Served['fill'] = (piece, offset) => {
    if (!bytes) return (opening ??= tree.open(path)).then((file) => file.fill(piece, offset));
    piece.set(bytes.subarray(offset, offset + piece.length));
    return undefined;
  };
  const served = { size, etag: `"${digest}"`, fill };
  try {
    return (await serveBytes({ request, response }, served, options)).error;
  } finally {
    await opening?.then(
      (file) => file.close(),
      () => undefined,
    );
  }
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
