import type { HttpBindings } from '@hono/node-server';
import type { ServedEntry } from '../base/http/serve-bytes.ts';
import { isErrno } from '../base/errors.ts';
import type { Context, Hono } from 'hono';
import { ApiFailure } from './api-failure.ts';
import type { Auth, Identity } from './auth/identity.ts';
import type { UrlTokens } from './auth/url-token.ts';
import type { BodySchema, OpenApi } from './openapi.ts';
import type { CustomisedImages } from './images/customised-images.ts';
import type { Releases } from './store/releases.ts';
import type { ServiceKey } from './service-key.ts';
import type { State } from './state/state.ts';

/** Where assisted-service has its interface. */
export const BASE_PATH = '/api/assisted-install';

/** What every route of the service works with. */
export type Service = {
  readonly state: State;
  readonly key: ServiceKey;
  readonly auth: Auth;
  readonly urlTokens: UrlTokens;
  readonly releases: Releases;
  readonly images: CustomisedImages;
  readonly openApi: OpenApi;
  /** Without a slash at its end; absent: what clients asked for. */
  readonly publicUrl?: string;
  readonly isTls: boolean;
  /** Nobody but this machine can ask, and it has no name but its own. */
  readonly isLocal: boolean;
  /** What every pull secret must have auth for. */
  readonly requiredRegistries: readonly string[];
  readonly now: () => number;
  /** Aborted when nothing is begun any more. */
  readonly ending: AbortSignal;
};

export type Environment = {
  readonly Bindings: HttpBindings;
  /** What became of bytes that were sent past hono. */
  readonly Variables: { served?: ServedEntry };
};

export type App = Hono<Environment>;
export type Exchange = Context<Environment>;

/** Who asks. @throws ApiFailure 401 */
export const identify = (service: Service, exchange: Exchange): Promise<Identity> =>
  service.auth.identify(exchange.req.header('authorization'));

/** Bytes of a body: a trust bundle of 64 KiB, and the networks of some hundred hosts. */
const BODY_LIMIT = 2 << 20;

/** @throws ApiFailure 400, 413, 415, 422 */
export async function readBody<Body>(
  { openApi }: Service,
  exchange: Exchange,
  schema: BodySchema,
): Promise<Body> {
  const [type = ''] = (exchange.req.header('content-type') ?? '').split(';');
  // A form of another site can send any other type without asking.
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new ApiFailure(415, 'the body must be application/json');
  }
  const bytes = await readBytes(exchange.env.incoming);
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiFailure(400, 'the body is not JSON'); // the parser's words quote it
  }
  openApi.check(schema, body);
  return body as Body;
}

/** What is too large is not read; the connection stays open for the answer. The server limits the time. */
async function readBytes(incoming: HttpBindings['incoming']): Promise<Buffer> {
  const tooLarge = new ApiFailure(413, `the body has more than ${BODY_LIMIT} bytes`);
  if (Number(incoming.headers['content-length'] ?? 0) > BODY_LIMIT) throw tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length;
      if (size > BODY_LIMIT) throw tooLarge;
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    if (isErrno(error, 'ECONNRESET')) throw new ApiFailure(400, 'the body has not all arrived');
    throw error;
  }
  return Buffer.concat(chunks, size);
}

export const toTime = (milliseconds: number): string => new Date(milliseconds).toISOString();
