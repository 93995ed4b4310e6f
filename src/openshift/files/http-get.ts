import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Http, HttpResponse } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import {
  explainNetworkFailure,
  isPassingStatus,
  TransientError,
} from '../../base/http/network-failure.ts';
import { readSmallBody } from '../../base/http/read-body.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { parseRetryAfter } from '../../base/retry.ts';
import { readUserInfo } from '../../base/http/address.ts';
import { formatBasic } from '../../registry/client/auth/credential.ts';

export type GetOptions = {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: TlsOptions;
  readonly signal: AbortSignal;
};

const MAX_REDIRECTS = 10;

/**
 * GET of a public document: redirects are followed, never from HTTPS to HTTP. User name and password of
 * the URL are sent to its own origin, as Go's client does. The status is the caller's to judge, but those
 * that a later attempt may cure are thrown.
 *
 * @throws RegistryError `http.redirect`, `http.unavailable`, and what `Http` throws
 */
export async function fetchPublic(http: Http, options: GetOptions): Promise<HttpResponse> {
  let url = options.url;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const headers = { ...options.headers, ...authorize(options.url, url) };
    const response = await http.request({ ...options, url, headers });
    const { location } = response.headers;
    if (![301, 302, 303, 307, 308].includes(response.status) || typeof location !== 'string') {
      return checkTransient(response, url);
    }
    response.body.destroy();
    url = nextUrl(url, location);
  }
  throw new RegistryError(
    'http.redirect',
    `${redactUrl(options.url)} redirects more than ${MAX_REDIRECTS} times`,
  );
}

function authorize(named: URL, url: URL): { readonly authorization?: string } {
  const userInfo = url.origin === named.origin ? readUserInfo(named) : undefined;
  return userInfo ? { authorization: formatBasic(userInfo) } : {};
}

/** The body, or undefined when it has more bytes than the limit. */
export async function readLimited(
  { body }: HttpResponse,
  url: URL,
  limit: number,
): Promise<Buffer | undefined> {
  try {
    return await readSmallBody(body, limit);
  } catch (cause) {
    throw explainNetworkFailure(url.host, cause);
  }
}

/** @throws TransientError `http.unavailable` where a later attempt may get another answer */
export function checkTransient(response: HttpResponse, url: URL): HttpResponse {
  if (!isPassingStatus(response.status)) return response;
  response.body.destroy();
  const wait = response.headers['retry-after'];
  throw new TransientError('http.unavailable', `${redactUrl(url)} answers ${response.status}`, {
    expected: '200',
    found: String(response.status),
    retryAfter: parseRetryAfter(typeof wait === 'string' ? wait : undefined, Date.now()),
    host: url.host,
    answered: true,
    limited: response.status === 429,
  });
}

function nextUrl(from: URL, location: string): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const isSafe =
    to?.protocol === 'https:' || (to?.protocol === 'http:' && from.protocol === 'http:');
  if (to && isSafe) return to;
  throw new RegistryError(
    'http.redirect',
    `${redactUrl(from)} redirects to an address that is not ${from.protocol.slice(0, -1)}`,
  );
}

/** What was asked for is not given: all of it, or what follows `offset`. */
export const refused = (url: URL, status: number, offset = 0): RegistryError =>
  new RegistryError('download.refused', `${redactUrl(url)} answers ${status}`, {
    expected: offset > 0 ? `206 from byte ${offset}, or 200` : '200',
    found: String(status),
    hint: 'check the address; it must be public',
  });

export const tooLarge = (url: URL, limit: number, found: string): IntegrityError =>
  new IntegrityError(
    'download.too-large',
    `${redactUrl(url)} has ${found} bytes, but at most ${limit} are expected`,
    { expected: `at most ${limit}`, found, hint: 'check the address' },
  );
