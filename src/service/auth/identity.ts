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
import { isObject, withoutUndefined } from '../../base/lists.ts';
import type { SourceHost } from '../../outputs/read/open.ts';
import { ApiFailure } from '../openapi.ts';

/* Owns the identification of users by bearer tokens. */

/** User of a request, and the tenant whose records the user may see. */
export type Identity = {
  readonly user: string;
  /** Issuer, and organisation or subject: no claim of one issuer names a tenant of another. */
  readonly tenant: string;
  /** Name of the tenant in records from before the issuer was part of it. */
  readonly former?: string;
  /** Claims `iss` and `sub`; absent without authentication. */
  readonly issuer?: string;
  readonly subject?: string;
};

export type AuthType = 'none' | 'local' | 'rhsso';

export type Auth = {
  readonly type: AuthType;
  readonly identify: (authorization: string | undefined) => Promise<Identity>;
};

export type AuthSettings =
  | { readonly type: 'none' }
  /** A public key (PEM), a JSON Web Key Set, or the `https://` URL of one. */
  | ({ readonly type: 'local' | 'rhsso'; readonly keys: string } & TokenRules);

type TokenRules = {
  readonly issuer?: string;
  readonly audience?: string;
  /** Most milliseconds between the issue and the expiry of a token. */
  readonly lifetime?: number;
};

/** Milliseconds that a token may be valid, unless the settings say otherwise. */
const LIFETIME = 24 * 3_600_000;

const NOBODY: Identity = { user: '', tenant: '' };

export function createAuth(
  settings: AuthSettings,
  host: Parameters<typeof createRemoteKeys>[1],
): Auth {
  if (settings.type === 'none') {
    return { type: 'none', identify: () => Promise.resolve(NOBODY) };
  }
  const { type } = settings;
  const keys = settings.keys.startsWith('https://')
    ? createRemoteKeys(settings.keys, host)
    : readKeys(settings.keys);
  return {
    type,
    async identify(authorization) {
      const [, token] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+) *$/i.exec(authorization ?? '') ?? [];
      if (token === undefined) throw unauthorized('a bearer token is required');
      return identityOf(await verify(token, keys, settings));
    },
  };
}

/** Largest key set in bytes: a hundred keys with their certificates. */
const LIMIT = 1 << 20;

/** Milliseconds allowed for fetching the keys, and the pause after a failure. */
const TIMEOUT = 5000;

/** Milliseconds until keys are fetched again; an unknown key fetches at once, every 30 seconds at most. */
const MAX_AGE = 600_000;

/**
 * Fetches the keys at a URL when they are first needed, and again from time to time. If they cannot be
 * fetched, the earlier keys stay valid. The returned function throws
 * ApiFailure 503 if a key is unknown and the URL cannot be reached.
 */
export function createRemoteKeys(
  url: string,
  { env, redaction, signal }: Pick<SourceHost, 'env' | 'redaction' | 'signal'>,
): JWTVerifyGetKey {
  const http = createHttp({ env, redaction });
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
  { issuer, audience, lifetime = LIFETIME }: TokenRules,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: TOLERANCE,
      ...withoutUndefined({ issuer, audience }),
    });
    checkTimes(payload, lifetime);
    return payload;
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw unauthorized('the token has expired');
    if (error instanceof errors.JOSEError || error instanceof TypeError) {
      throw unauthorized('the token is not valid');
    }
    throw error;
  }
}

/** Seconds by which the clocks of issuer and service may differ. */
const TOLERANCE = 5;

/** RFC 7519 4.1.6. A token without `iat` counts as issued now. */
function checkTimes({ iat, exp = 0 }: JWTPayload, lifetime: number): void {
  const now = Date.now() / 1000;
  if (iat !== undefined && iat > now + TOLERANCE) {
    throw unauthorized('the token was issued in the future');
  }
  if (exp - (iat ?? now) <= lifetime / 1000 + TOLERANCE) return;
  throw unauthorized('the token is valid for longer than is accepted');
}

/**
 * Reads the claims of Red Hat's tokens. The tenant is the organisation at its issuer, or else the subject
 * at its issuer: user names may be given to others, a subject may not (OpenID Connect Core 5.7).
 */
function identityOf(payload: JWTPayload): Identity {
  const subject = readClaim(payload.sub, 'sub');
  if (subject === undefined) throw unauthorized('the token has no subject');
  const user =
    readClaim(payload['preferred_username'], 'preferred_username') ??
    readClaim(payload['username'], 'username') ??
    subject;
  const org = readClaim(payload['org_id'], 'org_id') ?? readOrganization(payload['organization']);
  const issuer = readClaim(payload.iss, 'iss') ?? '';
  return {
    user,
    tenant: JSON.stringify([issuer, ...(org === undefined ? ['user', subject] : ['org', org])]),
    former: org === undefined ? `user ${user}` : `org ${org}`,
    issuer,
    subject,
  };
}

/** The tenant as answers show it: the organisation, or else the user. */
export function showTenant(tenant: string): string {
  if (!tenant.startsWith('[')) return tenant.replace(/^org /, '');
  const [, kind, name = ''] = JSON.parse(tenant) as readonly string[];
  return kind === 'org' ? name : `user ${name}`;
}

/** Characters of the longest claim that is accepted. */
const LONGEST = 512;

/** Reads a text; undefined if it is absent or empty. */
function readClaim(value: unknown, name: string): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw unauthorized(`the claim ${name} is not a text`);
  if (value.length > LONGEST) {
    throw unauthorized(`the claim ${name} has more than ${LONGEST} characters`);
  }
  if (/\p{C}/u.test(value)) throw unauthorized(`the claim ${name} has control characters`);
  return value;
}

function readOrganization(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (!isObject(value)) throw unauthorized('the claim organization is not an object');
  return readClaim(value['id'], 'organization.id');
}

const unauthorized = (reason: string): ApiFailure => new ApiFailure(401, reason);
