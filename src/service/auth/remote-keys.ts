import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose';
import { createHttp } from '../../base/http/http.ts';
import { readSmallBody } from '../../base/http/body.ts';
import { ApiFailure } from '../api-failure.ts';

/** Bytes of a key set: a hundred keys with their certificates. */
const LIMIT = 1 << 20;

/** Milliseconds that one request for the keys may take, and those until the next where it failed. */
const TIMEOUT = 5000;

/** Milliseconds until the keys are asked for again; an unknown key asks at once, every thirty seconds at most. */
const MAX_AGE = 600_000;

/**
 * The keys at a URL, fetched when they are first needed, and again from time to time. While they cannot be fetched,
 * those from before are good.
 *
 * @returns keys; throws ApiFailure 503 where a key is not known and nobody can be asked
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
    throw new ApiFailure(503, 'the keys of who issues tokens cannot be fetched');
  };
}

/** The keys are there, and none of them is the one. */
const isAboutKey = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
