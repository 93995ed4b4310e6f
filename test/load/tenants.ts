import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../src/base/secret.ts';
import { createIssuerKeys, issueToken } from '../../src/service/auth/tokens.ts';

/** Whose records those of a customer are. */
export type Tenant = {
  readonly name: string;
  /** That says so; absent where everybody may ask. */
  readonly token?: string;
};

/** Who may ask, and tokens that nobody may ask with. */
export type Tenants = {
  readonly args: readonly string[];
  readonly all: readonly [Tenant, ...Tenant[]];
  readonly refused: readonly string[];
};

/** Seconds that a URL is good for: customers need another one now and then. */
const URL_LIFETIME = 15;

const DAY = 86_400_000;

/** Writes the public key of who issues their tokens into the folder. */
export async function createTenants(directory: string): Promise<Tenants> {
  const [issuer, stranger] = [createIssuerKeys(), createIssuerKeys()];
  writeFileSync(join(directory, 'issuer.pub'), issuer.publicKey);
  const now = Date.now();
  const issue = (user: string, more: object, { privateKey } = issuer): Promise<string> =>
    issueToken(new Secret(privateKey), { user, issued: now, expires: now + DAY, ...more });
  return {
    args: [
      ...['--auth', 'local', '--auth-keys', 'issuer.pub', '--url-lifetime', `${URL_LIFETIME}s`],
    ],
    all: [
      { name: 'one', token: await issue('alice', { org: 'one' }) },
      { name: 'two', token: await issue('bob', { org: 'two' }) },
      // A user may be called as an organisation is.
      { name: 'user one', token: await issue('one', {}) },
    ],
    refused: [
      await issue('alice', { org: 'one' }, stranger),
      await issue('alice', { org: 'one', issued: now - DAY, expires: now - DAY / 2 }),
      'x.y.z',
    ],
  };
}

/** End of a URL. */
export type UrlEnd = {
  /** Milliseconds since 1970; Infinity: it does not end at a time. */
  readonly until: number;
  /** Answered from then on. */
  readonly status: 401 | 410;
};

/** End of a URL in the form of assisted-service: that of its token. */
export function endOf(url: string): UrlEnd {
  const [, claims] = /\/by(?:apikey|token)\/[\w-]+\.([\w-]+)\./.exec(url) ?? [];
  if (claims === undefined) return { until: Infinity, status: 401 };
  const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as {
    readonly exp: number;
  };
  return { until: exp * 1000, status: 401 };
}

/** Statuses that may be answered to a URL that was asked then, and may have ended. */
export function orEnded(
  { until, status }: UrlEnd,
  asked: number,
  allowed: readonly number[],
): readonly number[] {
  if (asked >= until) return [status];
  return Date.now() >= until ? [...allowed, status] : allowed;
}
