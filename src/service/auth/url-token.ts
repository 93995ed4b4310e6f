import { SignJWT, errors, jwtVerify } from 'jose';
import { ApiFailure } from '../api-failure.ts';

/** A token of a URL: it gives one InfraEnv's downloads to whoever has it, for a time. */
export type UrlTokens = {
  readonly sign: (infraEnv: string) => Promise<{ readonly token: string; readonly expires: Date }>;
  /** @returns the InfraEnv. @throws ApiFailure 401 */
  readonly verify: (token: string) => Promise<string>;
};

const AUDIENCE = 'image';
const ALGORITHM = 'HS256';

/**
 * @param key 32 bytes, of this service alone
 * @param lifetime milliseconds
 */
export function createUrlTokens(
  key: Uint8Array,
  { lifetime, now }: { readonly lifetime: number; readonly now: () => number },
): UrlTokens {
  return {
    async sign(infraEnv) {
      const seconds = Math.floor((now() + lifetime) / 1000);
      const token = await new SignJWT({})
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
        .setSubject(infraEnv)
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
          requiredClaims: ['sub', 'exp'],
          currentDate: new Date(now()),
        });
        return payload.sub ?? '';
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
