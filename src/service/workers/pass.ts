import {
  Agent,
  type IncomingMessage,
  request as ask,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import { pipeline } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { isErrno } from '../../base/errors.ts';
import type { Exchange } from '../../base/http/serve-bytes.ts';
import { isReadMethod, sendFailure } from '../door.ts';
import { formatPassed, OFFERED, PASSED } from './pass-words.ts';

/*
 * Owns how a worker passes requests on to the first process, by its socket file, and answers back to the client. Both go
 * through as streams; heads stay as the client sent them, except for the connection and the client's address.
 */

/** Passes a request on. With `onOffer`, the answer may be an offer of an image in place of the image. */
export type Pass = (exchange: Exchange, onOffer?: (offer: Buffer) => void) => void;

type PassOptions = {
  /** Path of the socket file. */
  readonly inner: string;
  /** True for a connection of a trusted proxy, whose X-Forwarded-For counts. */
  readonly isProxy: (request: IncomingMessage) => boolean;
};

/** Connections to the first process that wait for the next request. */
const MOST_IDLE = 32;

export function createPass({ inner, isProxy }: PassOptions): Pass {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: MOST_IDLE });
  return ({ request, response }, onOffer) => {
    const takesOffer = onOffer !== undefined && !hasBody(request);
    const headers = passHeaders(request, { isProxied: isProxy(request), takesOffer });
    const passing = begin({ agent, socketPath: inner, headers }, request);
    if (!passing) {
      sendFailure(response, { status: 400, message: 'the request is not valid' });
      return;
    }
    passing.on('response', (answer) => {
      if (answer.headers[OFFERED] === undefined) passBack(answer, response);
      else collect(answer, { response, done: onOffer });
    });
    let isAnswered = false;
    passing.once('response', () => (isAnswered = true));
    passing.on('error', (error) => {
      if (isAnswered) return; // the answer itself shows whether it is whole
      if (isReadMethod(request.method) || isUnreached(error)) fail(response);
      else response.destroy(); // the change may have been made, and 503 means that it was not
    });
    response.once('close', () => {
      if (!response.writableFinished) passing.destroy();
    });
    // The first process may answer before it has the whole body, and does not read the rest then.
    if (hasBody(request)) {
      passing.flushHeaders();
      request.pipe(passing);
      // Unread, the rest of the body would hold up the next request on this connection.
      passing.once('close', () => request.unpipe(passing).resume());
    } else passing.end();
  };
}

/** Begins a request; undefined for a head that Node.js takes from clients and does not send itself. */
function begin(options: RequestOptions, { method, url }: IncomingMessage) {
  try {
    return ask({ ...options, method, path: url });
  } catch {
    return undefined;
  }
}

/** True if a request has a body (RFC 9112 6.3). */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** True if the first process does not have the request. */
const isUnreached = (error: Error): boolean =>
  isErrno(error, 'ECONNREFUSED') || isErrno(error, 'ENOENT');

/** Headers about one connection (RFC 9110 7.6.1), and those that only a worker may set. */
const OWN = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer', // trailers are not passed on, and Node.js throws for the name alone
  'upgrade',
  'expect', // answered here
  'x-forwarded-for',
  PASSED,
]);

function passHeaders(
  { rawHeaders, headers, socket }: IncomingMessage,
  { isProxied, takesOffer }: { readonly isProxied: boolean; readonly takesOffer: boolean },
): string[] {
  const passed: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    if (!OWN.has(name.toLowerCase())) passed.push(name, value);
  }
  const before = isProxied ? [headers['x-forwarded-for'] ?? []].flat() : [];
  const addresses = [...before, socket.remoteAddress ?? ''].join(', ');
  const isTls = socket instanceof TLSSocket;
  passed.push('X-Forwarded-For', addresses, PASSED, formatPassed({ isTls, takesOffer }));
  return passed;
}

/** Headers of an answer about the connection to the first process. */
const INNER = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function passBack(answer: IncomingMessage, response: ServerResponse): void {
  const headers: string[] = [];
  for (let at = 0; at + 1 < answer.rawHeaders.length; at += 2) {
    const [name = '', value = ''] = answer.rawHeaders.slice(at, at + 2);
    if (!INNER.has(name.toLowerCase())) headers.push(name, value);
  }
  // The rest of a body that was refused is not read, here either.
  if (answer.headers.connection === 'close') response.shouldKeepAlive = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers);
  response.flushHeaders();
  pipeline(answer, response, (error) => {
    if (error) response.destroy();
  });
}

function collect(
  answer: IncomingMessage,
  {
    response,
    done,
  }: { readonly response: ServerResponse; readonly done: ((offer: Buffer) => void) | undefined },
): void {
  const pieces: Buffer[] = [];
  answer.on('data', (piece: Buffer) => pieces.push(piece));
  answer.on('error', () => {
    fail(response);
  });
  answer.on('end', () => {
    done?.(Buffer.concat(pieces));
  });
}

/** Answers, if that is still possible, that the first process did not answer. */
function fail(response: ServerResponse): void {
  if (response.headersSent || response.destroyed) response.destroy();
  else sendFailure(response, { status: 503, message: 'the service is starting or ending' });
}
