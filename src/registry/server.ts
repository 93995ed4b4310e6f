import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { IntegrityError, SealiftError } from '../base/errors.ts';
import { isErrno } from '../base/errno.ts';
import { answerRoute, type Answer } from './server/answer.ts';
import { encodeFailure, failure, type Failure } from './server/failure.ts';
import { parseRange } from './server/range.ts';
import { parseRoute } from './server/route.ts';
import type { ByteRange, RegistryTree } from './store.ts';

/** A request that was answered, or whose client went away. */
export type RequestEntry = {
  readonly method: string;
  /** As sent: path and query. */
  readonly url: string;
  readonly status: number;
  /** Whether the whole answer was handed over. */
  readonly complete: boolean;
  /** What went wrong on our side. */
  readonly error?: unknown;
};

export type RegistryServerOptions = {
  /** PEM texts; without them the server speaks plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly onRequest?: (entry: RequestEntry) => void;
};

/**
 * A read-only registry (OCI distribution-spec 1.1, "Pull" and "Content Discovery") out of a tree of
 * distribution's layout. Nothing is cached: what the tree holds when asked is what is served.
 * Manifests are checked against their digest before they are sent; blobs are checked by clients.
 */
export function createRegistryServer(
  tree: RegistryTree,
  options: RegistryServerOptions = {},
): Server | TlsServer {
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void handle(tree, request, response).then(options.onRequest);
  };
  return options.tls === undefined
    ? createServer(listener)
    : createTlsServer({ ...options.tls, minVersion: 'TLSv1.2' }, listener);
}

async function handle(
  tree: RegistryTree,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<RequestEntry> {
  const closed = new Promise((resolve) => response.once('close', resolve));
  let error: unknown;
  try {
    await serve(tree, request, response);
  } catch (cause) {
    breakOff(response, cause);
    if (!isErrno(cause, 'ERR_STREAM_PREMATURE_CLOSE')) error = cause; // else the client went away
  }
  await closed;
  const { method = '', url = '' } = request;
  const { statusCode: status, writableFinished: complete } = response;
  return { method, url, status, complete, ...(error !== undefined && { error }) };
}

async function serve(
  tree: RegistryTree,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader('Docker-Distribution-Api-Version', 'registry/2.0');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  const answer = await answerRequest(tree, request);
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
      else send(response, 200, answer.bytes);
      return;
    case 'blob':
      describe(response, answer.digest, 'application/octet-stream');
      await sendBlob({ tree, request, response }, answer);
  }
}

async function answerRequest(tree: RegistryTree, request: IncomingMessage): Promise<Answer> {
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

type Exchange = {
  readonly tree: RegistryTree;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};

async function sendBlob(
  { tree, request, response }: Exchange,
  blob: Answer & { kind: 'blob' },
): Promise<void> {
  response.setHeader('Accept-Ranges', 'bytes');
  if (isUnchanged(request, blob.digest)) {
    response.writeHead(304).end();
    return;
  }
  const range = rangeOf(request, blob);
  if (range === 'unsatisfiable') {
    response.writeHead(416, { 'Content-Range': `bytes */${blob.size}`, 'Content-Length': 0 }).end();
    return;
  }
  if (range === undefined) response.writeHead(200, { 'Content-Length': blob.size });
  else {
    response.writeHead(206, {
      'Content-Length': range.end - range.start + 1,
      'Content-Range': `bytes ${range.start}-${range.end}/${blob.size}`,
    });
  }
  if (request.method === 'HEAD' || blob.size === 0) response.end();
  else {
    const { start, end } = range ?? { start: 0, end: blob.size - 1 };
    const whole = passExactly(end - start + 1, blob.path);
    await pipeline(tree.stream(blob.path, range), whole, response);
  }
}

/** A file shorter than it said must not look whole, nor leave the client waiting for the rest. */
function passExactly(size: number, path: string) {
  return async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
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
  };
}

/** RFC 9110 14.2: Range is for GET alone; 13.1.5: and not where If-Range names something else. */
function rangeOf(
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

/** For HEAD, Node leaves the body away itself. */
function send(response: ServerResponse, status: number, bytes: Uint8Array): void {
  response.writeHead(status, { 'Content-Length': bytes.length }).end(bytes);
}

/** What the tree cannot give: an answer where none was begun, else a connection that ends early. */
function breakOff(response: ServerResponse, cause: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const message = cause instanceof SealiftError ? cause.message : 'registry tree cannot be read';
  sendFailure(response, failure('UNKNOWN', message));
}
