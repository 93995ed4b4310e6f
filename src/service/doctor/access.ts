import { formatDuration } from '../../base/text/words.ts';
import { advised, findingsOf, refused, type DoctorFinding } from './finding.ts';

/* Owns the rules for who may use the service, and from where. */

export type DoctorAccess = {
  readonly auth: 'none' | 'local' | 'rhsso';
  readonly hasIssuer: boolean;
  readonly hasAudience: boolean;
  /** Milliseconds. */
  readonly authLifetime: number;
  readonly urlLifetime: number;
  /** True if only this machine can connect. */
  readonly isLoopback: boolean;
  readonly hasTls: boolean;
  /** True if other machines can connect without TLS, beside an address with it. */
  readonly hasPlain: boolean;
  readonly publicUrl?: string | undefined;
  readonly corsOrigins: readonly string[];
  /** Addresses and networks. */
  readonly proxies: readonly string[];
};

const DAY = 24 * 3_600_000;

export const checkAccess = (access: DoctorAccess): readonly DoctorFinding[] => [
  ...checkTokens(access),
  ...checkTransport(access),
  ...checkOrigins(access),
];

function checkTokens(access: DoctorAccess): readonly DoctorFinding[] {
  const { auth, isLoopback, hasIssuer, hasAudience, authLifetime, urlLifetime } = access;
  if (auth === 'none') {
    return findingsOf(
      !isLoopback &&
        refused({
          code: 'doctor.no-auth',
          file: '--auth',
          problem: 'everyone who reaches the service can read and change every record',
          hint: 'use --auth local with tokens of your own, or --auth rhsso',
        }),
    );
  }
  return findingsOf(
    !hasAudience &&
      refused({
        code: 'doctor.no-audience',
        file: '--auth-audience',
        problem: 'tokens that were issued for other services are accepted',
        hint: 'name the audience of the tokens, their claim "aud"',
      }),
    !hasIssuer &&
      refused({
        code: 'doctor.no-issuer',
        file: '--auth-issuer',
        problem: 'tokens of any issuer with the same keys are accepted',
        hint: 'name the issuer of the tokens, their claim "iss"',
      }),
    authLifetime > DAY &&
      advised({
        code: 'doctor.long-lifetime',
        file: '--auth-lifetime',
        problem: `a stolen token is good for ${formatDuration(authLifetime)}`,
        hint: 'accept tokens of a day at most',
      }),
    urlLifetime > DAY &&
      advised({
        code: 'doctor.long-lifetime',
        file: '--url-lifetime',
        problem: `a URL that was passed on is good for ${formatDuration(urlLifetime)}`,
        hint: 'give URLs a day at most, and single hosts a URL of their own with expires_in',
      }),
  );
}

const checkTransport = (access: DoctorAccess): readonly DoctorFinding[] => [
  ...checkEncryption(access),
  ...checkPlain(access),
];

function checkEncryption(access: DoctorAccess): readonly DoctorFinding[] {
  const { isLoopback, hasTls, publicUrl } = access;
  const isBehindProxy = publicUrl?.startsWith('https://') === true;
  const about = { code: 'doctor.no-tls', file: '--tls-cert' };
  const isPlain = !hasTls && !isLoopback;
  return findingsOf(
    isPlain &&
      !isBehindProxy &&
      refused({
        ...about,
        problem: 'tokens, pull secrets and images are not encrypted on their way',
        hint: 'give --tls-cert and --tls-key',
      }),
    isPlain &&
      isBehindProxy &&
      advised({
        ...about,
        problem: 'between the proxy of --public-url and the service nothing is encrypted',
        hint: 'give --tls-cert and --tls-key, or let the service listen on loopback',
      }),
  );
}

const checkPlain = ({ hasTls, hasPlain, publicUrl }: DoctorAccess): readonly DoctorFinding[] =>
  findingsOf(
    hasPlain &&
      advised({
        code: 'doctor.plain-listener',
        file: '--listen-http',
        problem: 'images, with their pull secrets, are served without TLS',
        hint: 'leave it out, unless management controllers take no https:// address',
      }),
    publicUrl?.startsWith('http://') === true &&
      hasTls &&
      refused({
        code: 'doctor.plain-url',
        file: '--public-url',
        problem: 'the URLs that are given out are for http://, although the service has TLS',
        hint: 'give the https:// address; --listen-http adds its own',
      }),
  );

const checkOrigins = ({ corsOrigins, proxies }: DoctorAccess): readonly DoctorFinding[] => [
  ...corsOrigins
    .filter((origin) => origin.startsWith('http://'))
    .map((origin) =>
      advised({
        code: 'doctor.plain-origin',
        file: '--cors-origin',
        problem: `pages of ${origin} can be changed on their way, and use the API`,
        hint: 'name the https:// origin',
      }),
    ),
  ...proxies.filter(isWide).map((network) =>
    refused({
      code: 'doctor.wide-proxy',
      file: '--trusted-proxy',
      problem: `every client in ${network} can write any address into X-Forwarded-For`,
      hint: 'name the addresses of the proxies alone',
    }),
  ),
];

/** True for networks that no proxy fills: shorter prefixes than those of a site. */
function isWide(network: string): boolean {
  const [address = '', bits] = network.split('/');
  if (bits === undefined) return false;
  return Number(bits) < (address.includes(':') ? 48 : 16);
}
