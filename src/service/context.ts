import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isErrno } from '../base/errors.ts';
import { readCoding } from '../base/http/content-coding.ts';
import { toPrintable } from '../base/text/words.ts';
import { waitFor } from '../base/wait.ts';
import type { ServedEntry } from '../base/http/serve-bytes.ts';
import type { Asker, Audit, AuditedChange } from './audit/audit.ts';
import type { Auth, Identity } from './auth/identity.ts';
import type { UrlTokens } from './auth/tokens.ts';
import type { NetworkTool } from '../nmstate/index.ts';
import type { Budgets } from './budgets.ts';
import type { ImageDigests } from './images/digests.ts';
import type { CustomisedImages } from './images/images.ts';
import { isReadMethod } from './door.ts';
import type { DeliveryMemory } from './images/deliveries.ts';
import type { Readers } from './images/readers.ts';
import type { KnownUrls } from './images/known-urls.ts';
import type { ShortUrls } from './images/short-url.ts';
import { ApiFailure, type BodySchema, type OpenApi } from './openapi.ts';
import type { ClientAddresses } from '../base/http/client-address.ts';
import type { Passed } from './workers/pass-words.ts';
import type { State } from './state/state.ts';
import type { Releases } from './store/releases.ts';

/**
 * Dependencies of every route: records, keys, releases and images. Requests of assisted-service's API come
 * in, records and customised ISOs leave; no route knows how media are built.
 */
export type Service = {
  readonly state: State;
  readonly auth: Auth;
  readonly urlTokens: UrlTokens;
  readonly shortUrls: ShortUrls;
  readonly readers: Readers;
  readonly coverage: DeliveryMemory;
  /** Milliseconds that the URL of an image is valid, with authentication. */
  readonly urlLifetime: number;
  readonly releases: Releases;
  readonly images: CustomisedImages;
  readonly digests: ImageDigests;
  readonly budgets: Budgets;
  readonly addresses: ClientAddresses;
  readonly audit: Audit;
  readonly knownUrls: KnownUrls;
  /** The installed nmstate; absent: only networks that are translated here are accepted. */
  readonly networkTool: NetworkTool | undefined;
  readonly openApi: OpenApi;
  /** Address without a slash at its end; absent: the address that a client used. */
  readonly publicUrl?: string;
  readonly isTls: boolean;
  readonly ports: Readonly<Ports>;
  /** True if only this machine can connect, and only by its own names. */
  readonly isLocal: boolean;
  /** Origins whose pages may use the API. */
  readonly corsOrigins: readonly string[];
  /** Registries that every pull secret must have credentials for. */
  readonly requiredRegistries: readonly string[];
  readonly now: () => number;
  readonly warn: (message: string) => void;
  /** Aborted when no new work may begin. */
  readonly ending: AbortSignal;
};

/** Ports that the service listens on; they are known once it does. */
export type Ports = {
  /** Port of the address without TLS, beside the one with TLS. */
  http?: number;
};

export type Environment = {
  /** With `passed`, a worker has passed the request on. */
  readonly Bindings: HttpBindings & { readonly passed?: Passed };
  readonly Variables: {
    /** The result of sending bytes without hono. */
    served?: ServedEntry;
    /** True if a worker answers, and reports it. */
    isOffered?: true;
    /** User whose token the request has. */
    identity?: Identity;
  };
};

export type App = Hono<Environment>;
export type Exchange = Context<Environment>;

/** Base path of assisted-service's API. */
export const BASE_PATH = '/api/assisted-install';

export async function identify(service: Service, exchange: Exchange): Promise<Identity> {
  const identity = await service.auth.identify(exchange.req.header('authorization'));
  exchange.set('identity', identity);
  service.budgets.admit(exchange.env, identity.tenant);
  if (identity.former !== undefined) await service.state.adopt(identity.former, identity.tenant);
  return identity;
}

/** Notes a change in the audit log, before it is answered. */
export const noteChange = (
  { audit }: Pick<Service, 'audit'>,
  exchange: Exchange,
  change: AuditedChange,
): Promise<void> => audit.note(askerOf(exchange), change);

/** The client of a request, as the audit log names it. */
export const askerOf = (exchange: Exchange): Asker => ({
  incoming: exchange.env.incoming,
  identity: exchange.get('identity'),
});

export async function readBody<Body>(
  service: Service,
  exchange: Exchange,
  schema: BodySchema,
): Promise<Body> {
  if (!hasBody(exchange)) return service.openApi.read(schema, Buffer.of()) as Body;
  const [given = ''] = (exchange.req.header('content-type') ?? '').split(';');
  const type = given.trim() === '' ? 'application/octet-stream' : given.trim();
  // A form on another site can send other content types without a preflight request.
  if (type.toLowerCase() !== 'application/json') {
    throw new ApiFailure(
      400,
      `unsupported media type ${JSON.stringify(toPrintable(type).slice(0, LONGEST_TYPE))}, only [application/json] are allowed`,
    );
  }
  const coding = readCoding(exchange.req.header('content-encoding'));
  if (coding !== '') {
    throw new ApiFailure(400, `the body must not have the content coding ${coding}`);
  }
  return service.openApi.read(schema, await readBytes(service, exchange)) as Body;
}

const LONGEST_TYPE = 100;

/** True if a request has a body (RFC 9112 6.3). */
const hasBody = ({ req }: Exchange): boolean =>
  req.header('transfer-encoding') !== undefined || Number(req.header('content-length') ?? 0) > 0;

/** Most warnings of one answer: clients limit the size of its head. */
const MOST_WARNINGS = 10;
const LONGEST_WARNING = 400;

/**
 * Adds warnings to the head of an answer, where the API of Kubernetes has them too (RFC 9111 5.5, 299); no
 * client of assisted-service has a member for them. Those about a change are logged as well.
 */
export function addWarnings(
  { warn }: Pick<Service, 'warn'>,
  exchange: Exchange,
  warnings: readonly string[],
): void {
  const { method, path } = exchange.req;
  for (const warning of warnings.slice(0, MOST_WARNINGS)) {
    const text = toPrintable(warning).slice(0, LONGEST_WARNING);
    const quoted = text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll(/[^ -~]/g, '?');
    exchange.header('Warning', `299 - "${quoted}"`, { append: true });
    if (method !== 'GET') warn(`${method} ${path}: ${text}`);
  }
}

/** Go's zero time, which assisted-service returns for what does not expire. */
export const NO_EXPIRY = '0001-01-01T00:00:00.000Z';

export const toTime = (milliseconds: number): string => new Date(milliseconds).toISOString();

/**
 * Refuses requests that a foreign page makes a browser send: a change from another origin; and, if only
 * this machine can connect, any request for a host name that was made to resolve to it.
 */
export function checkAsker(
  { publicUrl, isLocal, corsOrigins }: Pick<Service, 'publicUrl' | 'isLocal' | 'corsOrigins'>,
  { method, headersDistinct, headers }: IncomingMessage,
): void {
  if ((headersDistinct['host'] ?? []).length > 1) {
    throw new ApiFailure(400, 'the request has more than one Host');
  }
  if (isLocal && !isOwnName(nameOf(headers.host ?? 'localhost'), publicUrl)) {
    throw new ApiFailure(
      421,
      'this host name is not served here: use localhost, or set --public-url',
    );
  }
  if (isReadMethod(method) || corsOrigins.includes(headers.origin ?? '')) return;
  if (!isForeign(headers, publicUrl)) return;
  throw new ApiFailure(
    403,
    'pages of other origins cannot make changes here: see --public-url and --cors-origin',
  );
}

/** Largest body in bytes: a trust bundle of 64 KiB, and the networks of some hundred hosts. */
const BODY_LIMIT = 2 << 20;

/** A refused body is not read on; the connection stays open for the answer. The server limits the time. */
async function readBytes(
  { budgets }: Pick<Service, 'budgets'>,
  exchange: Exchange,
): Promise<Buffer> {
  const { incoming, outgoing } = exchange.env;
  const tooLarge = new ApiFailure(413, `the body has more than ${BODY_LIMIT} bytes`);
  if (Number(incoming.headers['content-length'] ?? 0) > BODY_LIMIT) throw tooLarge;
  const refusing = new AbortController();
  const refuse = (failure: ApiFailure): void => {
    refusing.abort(failure);
  };
  const lease = budgets.openBody(exchange.env, refuse);
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    size += chunk.length;
    if (size > BODY_LIMIT) throw tooLarge;
    lease.add(chunk.length);
  };
  try {
    await waitFor<undefined>(refusing.signal, (resolve, reject) => {
      incoming
        .on('data', (chunk: Buffer) => {
          try {
            take(chunk);
          } catch (error) {
            reject(error);
          }
        })
        .once('error', reject)
        .once('end', () => {
          resolve(undefined);
        });
    });
  } catch (error) {
    incoming.removeAllListeners('data').pause();
    outgoing.shouldKeepAlive = false; // the rest of the body is not read
    chunks.length = 0;
    if (isErrno(error, 'ECONNRESET'))
      throw new ApiFailure(400, 'the body ended before it was complete');
    throw error;
  }
  return Buffer.concat(chunks, size);
}

/**
 * True if a request comes from a foreign page. No page can set these headers; behind a proxy, the host may
 * differ from the one that the browser requested.
 */
function isForeign(
  { 'sec-fetch-site': site, host = '', origin }: IncomingHttpHeaders,
  publicUrl: string | undefined,
): boolean {
  if (site === 'same-origin' || site === 'none') return false;
  const isAsked = [`//${host}`, publicUrl].some((url) => isSameHost(origin, url));
  return site === 'cross-site' || (origin !== undefined && !isAsked);
}

const nameOf = (host: string): string =>
  URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';

function isOwnName(name: string, publicUrl: string | undefined): boolean {
  if (name === 'localhost' || isIP(name.replace(/^\[|\]$/g, '')) !== 0) return true;
  return publicUrl !== undefined && new URL(publicUrl).hostname === name;
}

/** True if both have the same host. A host without a scheme has the scheme of the origin, and so its port. */
function isSameHost(origin: string | undefined, url: string | undefined): boolean {
  if (origin === undefined || url === undefined || !URL.canParse(origin)) return false;
  return URL.canParse(url, origin) && new URL(url, origin).host === new URL(origin).host;
}
