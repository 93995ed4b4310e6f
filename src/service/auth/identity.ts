import { createPublicKey } from 'node:crypto';
import {
  createLocalJWKSet,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose';
import { ConfigError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { ApiFailure } from '../api-failure.ts';
import { createRemoteKeys } from './remote-keys.ts';

/** Who asks, and whose records they may see. */
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

/** None with a shared secret: whoever can verify with one can sign. */
const ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'];

const NOBODY: Identity = { user: '', tenant: '' };

/** @throws ConfigError `service.auth-keys` */
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

/** The claims of Red Hat's tokens; a token without an organisation is one of its user alone. */
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
