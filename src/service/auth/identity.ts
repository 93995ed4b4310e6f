import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
} from 'jose';
import { createPublicKey } from 'node:crypto';
import { ConfigError } from '../../base/errors.ts';
import { readSmallBody } from '../../base/http/body.ts';
import { createHttp } from '../../base/http/http.ts';
import { isObject } from '../../base/lists.ts';
import { ApiFailure } from '../openapi.ts';

/* Owns the identification of users by bearer tokens. */

/** User of a request, and the tenant whose records the user may see. */
export type Identity = { readonly user: string; readonly tenant: string };

export type AuthType = 'none' | 'local' | 'rhsso';

export type Auth = {
  readonly type: AuthType;
  /** @throws ApiFailure 401 */
  readonly identify: (authorization: string | undefined) => Promise<Identity>;
};

export type AuthSettings =
  | { readonly type: 'none' }
  /** A public key (PEM), a JSON Web Key Set, or the `https://` URL of one. */
  | { readonly type: 'local' | 'rhsso'; readonly keys: string; readonly issuer?: string };

const NOBODY: Identity = { user: '', tenant: '' };

/** Creates the authentication of requests by bearer tokens. @throws ConfigError `service.auth-keys` */
export function createAuth(
  settings: AuthSettings,
  host: Parameters<typeof createRemoteKeys>[1],
): Auth {
  if (settings.type === 'none') {
    return { type: 'none', identify: () => Promise.resolve(NOBODY) };
  }
  const { type, issuer } = settings;
  const keys = settings.keys.startsWith('https://')
    ? createRemoteKeys(settings.keys, host)
    : readKeys(settings.keys);
  return {
    type,
    async identify(authorization) {
      const [, token] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+) *$/i.exec(authorization ?? '') ?? [];
      if (token === undefined) throw unauthorized('a bearer token is required');
      return identityOf(await verify(token, keys, issuer));
    },
  };
}

/** Largest key set in bytes: a hundred keys with their certificates. */
const LIMIT = 1 << 20;

/** Milliseconds allowed for fetching the keys, and the pause after a failure. */
const TIMEOUT = 5000;

/**
 * Milliseconds until the keys are fetched again; an unknown key fetches at once, every thirty seconds at
 * most.
 */
const MAX_AGE = 600_000;

/**
 * Fetches the keys at a URL when they are first needed, and again from time to time. If they cannot be
 * fetched, the earlier keys stay valid. The returned function throws
 * ApiFailure 503 if a key is unknown and the URL cannot be reached.
 */
export function createRemoteKeys(
  url: string,
  { env, signal }: { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal },
): JWTVerifyGetKey {
  const http = createHttp({ env });
  const fetchKeys: FetchImplementation = async (url, { headers }) => {
    const asked = { url: new URL(url), headers: Object.fromEntries(headers), signal };
    const { status, body } = await http.request({ ...asked, headersTimeout: TIMEOUT });
    const bytes = await readSmallBody(body, LIMIT, TIMEOUT);
    return new Response(bytes ?? '', { status: status === 204 ? 502 : status });
  };
  const remote = createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT * 2,
    cacheMaxAge: MAX_AGE,
    [customFetch]: fetchKeys,
  });
  let failedAt = -Infinity;
  return async (header, token) => {
    const isResting = performance.now() - failedAt < TIMEOUT;
    try {
      if (!isResting) return await remote(header, token);
    } catch (error) {
      if (isAboutKey(error)) throw error;
      failedAt = performance.now();
    }
    const known = remote.jwks();
    try {
      if (known) return await createLocalJWKSet(known)(header, token);
    } catch (error) {
      if (!isAboutKey(error)) throw error;
    }
    throw new ApiFailure(503, 'the keys of the token issuer cannot be fetched');
  };
}

/** True if the key set was read and does not contain the key. */
const isAboutKey = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;

function readKeys(text: string): JWTVerifyGetKey {
  try {
    if (text.trimStart().startsWith('{')) {
      return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
    }
    const key = createPublicKey(text);
    return () => key;
  } catch (cause) {
    throw new ConfigError('service.auth-keys', '--auth-keys has no public key', {
      expected: 'a public key in PEM, or a JSON Web Key Set',
      found: cause instanceof Error ? cause.name : 'something else',
    });
  }
}

/** Accepted algorithms. No shared secrets: every verifier could also sign. */
const ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'];

async function verify(
  token: string,
  keys: JWTVerifyGetKey,
  issuer: string | undefined,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: 5,
      ...(issuer !== undefined && { issuer }),
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw unauthorized('the token has expired');
    if (error instanceof errors.JOSEError || error instanceof TypeError) {
      throw unauthorized('the token is not valid');
    }
    throw error;
  }
}

/** Reads the claims of Red Hat's tokens; a token without an organisation has its user as tenant. */
function identityOf(payload: JWTPayload): Identity {
  const organization = isObject(payload['organization'])
    ? payload['organization']['id']
    : undefined;
  const user = firstText(payload['preferred_username'], payload['username'], payload.sub);
  if (user === undefined) throw unauthorized('the token names no user');
  const org = firstText(payload['org_id'], organization);
  return { user, tenant: org === undefined ? `user ${user}` : `org ${org}` };
}

const firstText = (...values: readonly unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string' && value !== '');

const unauthorized = (reason: string): ApiFailure => new ApiFailure(401, reason);
