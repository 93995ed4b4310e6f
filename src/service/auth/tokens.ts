import { SignJWT, errors, jwtVerify } from 'jose';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { ConfigError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import { ApiFailure } from '../openapi.ts';

/* Owns the issuing of tokens, for users and for URLs. */

/** A key pair; both are PEM texts. */
export type IssuerKeys = { readonly privateKey: string; readonly publicKey: string };

export type TokenClaims = {
  readonly user: string;
  /** Organisation whose records its users share; absent: the records belong to the user alone. */
  readonly org?: string;
  readonly issuer?: string;
  readonly audience?: string;
  /** Milliseconds since 1970. */
  readonly issued: number;
  readonly expires: number;
};

/** Image that a token in a URL is for. */
export type TokenSubject = {
  /** Id of the InfraEnv. */
  readonly id: string;
  /** Revision of its image, as the service formats it. */
  readonly revision: string;
};

/** Tokens in URLs: each gives its bearer the downloads of one revision of one InfraEnv, for some time. */
export type UrlTokens = {
  readonly sign: (
    subject: TokenSubject,
  ) => Promise<{ readonly token: string; readonly expires: Date }>;
  /** @throws ApiFailure 401, also for tokens of earlier versions, which name no revision */
  readonly verify: (token: string) => Promise<TokenSubject & { readonly expires: Date }>;
};

/**
 * A key pair for ES256, from the given private key or a new one.
 *
 * @throws ConfigError `token.key`
 */
export function createIssuerKeys(given?: Secret): IssuerKeys {
  const privateKey = given
    ? readPrivateKey(given)
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const publicKey = createPublicKey(privateKey);
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/**
 * Issues a token that `sealift serve --auth local` accepts.
 *
 * @throws ConfigError `token.key`
 */
export function issueToken(privateKey: Secret, claims: TokenClaims): Promise<string> {
  const key = readPrivateKey(privateKey);
  const { user, org, issuer, audience, issued, expires } = claims;
  const token = new SignJWT({ preferred_username: user, ...(org !== undefined && { org_id: org }) })
    .setProtectedHeader({ alg: chooseAlgorithm(key), typ: 'JWT' })
    .setSubject(user)
    .setIssuedAt(Math.floor(issued / 1000))
    .setExpirationTime(Math.floor(expires / 1000));
  if (issuer !== undefined) token.setIssuer(issuer);
  if (audience !== undefined) token.setAudience(audience);
  return token.sign(key);
}

const AUDIENCE = 'image';
const ALGORITHM = 'HS256';

/** `key` is 32 bytes, used by this service alone; `lifetime` is in milliseconds. */
export function createUrlTokens(
  key: Uint8Array,
  { lifetime, now }: { readonly lifetime: number; readonly now: () => number },
): UrlTokens {
  return {
    async sign({ id, revision }) {
      const seconds = Math.floor((now() + lifetime) / 1000);
      const token = await new SignJWT({ revision })
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
        .setSubject(id)
        .setAudience(AUDIENCE)
        .setExpirationTime(seconds)
        .sign(key);
      return { token, expires: new Date(seconds * 1000) };
    },
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          audience: AUDIENCE,
          requiredClaims: ['sub', 'exp', 'revision'],
          currentDate: new Date(now()),
        });
        const expires = new Date(Number(payload.exp) * 1000);
        return { id: String(payload.sub), revision: String(payload['revision']), expires };
      } catch (error) {
        if (error instanceof errors.JWTExpired) throw new ApiFailure(401, 'the URL has expired');
        if (error instanceof errors.JOSEError) {
          throw new ApiFailure(401, 'the token of the URL is not valid');
        }
        throw error;
      }
    },
  };
}

function readPrivateKey(secret: Secret): KeyObject {
  try {
    return createPrivateKey(secret.reveal());
  } catch {
    throw unusable('it is not a private key in PEM'); // the library's message may quote the key
  }
}

/** RFC 7518 3.1, RFC 8037 3.1. */
function chooseAlgorithm({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): string {
  const { namedCurve: curve } = asymmetricKeyDetails ?? {};
  if (type === 'ed25519') return 'EdDSA';
  if (type === 'rsa') return 'RS256';
  if (type === 'ec' && curve === 'prime256v1') return 'ES256';
  if (type === 'ec' && curve === 'secp384r1') return 'ES384';
  throw unusable(`it is a key of ${curve ?? type ?? 'another kind'}`);
}

const unusable = (problem: string): ConfigError =>
  new ConfigError('token.key', `--private-key cannot sign tokens: ${problem}`, {
    expected: 'a private key in PEM: P-256, P-384, Ed25519 or RSA',
    found: problem,
    hint: 'make a pair with "sealift token keys"',
  });
