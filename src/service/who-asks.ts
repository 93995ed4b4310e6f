import { isIP } from 'node:net';
import { ApiFailure } from './api-failure.ts';
import type { Exchange, Service } from './context.ts';

/** Methods that change nothing. */
const READS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Refuses what a page of somebody else makes a browser ask: a change from another origin; and, where nobody but this
 * machine can ask, any request for a host whose name was made to lead here.
 *
 * @throws ApiFailure 400, 403, 421
 */
export function checkAsker(
  { publicUrl, isLocal }: Pick<Service, 'publicUrl' | 'isLocal'>,
  { req, env }: Exchange,
): void {
  const { headersDistinct, headers } = env.incoming;
  if ((headersDistinct['host'] ?? []).length > 1) {
    throw new ApiFailure(400, 'the request has more than one Host');
  }
  if (isLocal && !isOwnName(nameOf(headers.host ?? 'localhost'), publicUrl)) {
    throw new ApiFailure(421, 'this host is not served here: ask localhost, or set --public-url');
  }
  if (READS.includes(req.method)) return;
  const { 'sec-fetch-site': site, host = '', origin } = headers;
  const isAsked = [`//${host}`, publicUrl].some((url) => isSameHost(origin, url));
  if (isForeign({ site, origin, isAsked })) {
    throw new ApiFailure(403, 'pages of other origins can change nothing here: see --public-url');
  }
}

type Sender = {
  readonly site: string | string[] | undefined;
  readonly origin: string | undefined;
  readonly isAsked: boolean;
};

/** No page can set these headers; through a proxy, the host may be another than the browser asked. */
function isForeign({ site, origin, isAsked }: Sender): boolean {
  if (site === 'same-origin' || site === 'none') return false;
  return site === 'cross-site' || (origin !== undefined && !isAsked);
}

const nameOf = (host: string): string =>
  URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';

function isOwnName(name: string, publicUrl: string | undefined): boolean {
  if (name === 'localhost' || isIP(name.replace(/^\[|\]$/g, '')) !== 0) return true;
  return publicUrl !== undefined && new URL(publicUrl).hostname === name;
}

/** A host without a scheme has that of the origin, and so its port. */
function isSameHost(origin: string | undefined, url: string | undefined): boolean {
  if (origin === undefined || url === undefined || !URL.canParse(origin)) return false;
  return URL.canParse(url, origin) && new URL(url, origin).host === new URL(origin).host;
}
