import { constants } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  checkServerIdentity,
  createSecureContext,
  rootCertificates,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls';
import { readInputFile, readListed } from '../disk/files.ts';
import { variableOf } from '../environment.ts';
import { withoutUndefined } from '../lists.ts';

/* Owns the TLS of everything that connects: the trusted roots, the versions, and the check of names. */

/** TLS of one origin. PEM texts. Absent members mean the system's roots and verification on. */
export type TlsOptions = {
  /** PEM texts of roots that are trusted besides the system's roots, not instead of them. */
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
  /** Switches verification off: explicit, per registry, and shown in the report. */
  readonly insecure?: boolean;
};

/**
 * Options of tls.connect. All of them are given, because Node would else ask its environment:
 * NODE_TLS_REJECT_UNAUTHORIZED, and `--tls-...` of NODE_OPTIONS.
 */
export type ConnectOptions = {
  readonly secureContext: SecureContext;
  readonly rejectUnauthorized: boolean;
  readonly checkServerIdentity: typeof checkServerIdentity;
};

/** One context for all connections: reading some 300 roots takes 40 ms, so only who asks for a check waits for it. */
export function connectOptions(tls: TlsOptions, env: NodeJS.ProcessEnv): ConnectOptions {
  const system = readSystemRoots(env); // also a file that is not used is refused if it cannot be read
  const secureContext = createSecureContext({
    ca: [...(tls.insecure === true ? [] : [...rootCertificates, ...system]), ...(tls.ca ?? [])],
    ...withoutUndefined({ cert: tls.cert, key: tls.key }),
    ...TLS_RULES,
  });
  return {
    secureContext,
    rejectUnauthorized: tls.insecure !== true,
    checkServerIdentity: checkName,
  };
}

/** Versions and ciphers of clients and servers, regardless of NODE_OPTIONS. */
export const TLS_RULES = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: constants.defaultCoreCipherList,
} as const;

/**
 * RFC 9110 4.3.4: clients must not take the common name for a name of the server. Node does if there is
 * no other; podman, skopeo and the nodes of a cluster refuse it.
 */
function checkName(host: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname !== undefined) return checkServerIdentity(host, certificate);
  return Object.assign(new Error('no subject alternative name'), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
}

function readSystemRoots(env: NodeJS.ProcessEnv): string[] {
  const found = SYSTEM_ROOTS.find((path) => existsSync(path));
  const named = ROOTS_VARIABLES.map((name) => readRootsOf(env, name)?.bytes);
  const [system = found === undefined ? undefined : readRootsFile(found), further] = named;
  const texts = [system, further].flatMap((bytes) => bytes?.toString('latin1') ?? []);
  return [...new Set(texts)]; // both variables often name one file
}

/** The first names a file in place of that of the system, the second one besides it. */
export const ROOTS_VARIABLES = ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'] as const;

/**
 * The file of roots that a variable names.
 *
 * @throws ConfigError `ca-bundle.unreadable`, `ca-bundle.too-large`
 */
export function readRootsOf(
  env: NodeJS.ProcessEnv,
  name: (typeof ROOTS_VARIABLES)[number],
): { readonly path: string; readonly bytes: Buffer } | undefined {
  const path = variableOf(env, name);
  return path === undefined
    ? undefined
    : { path, bytes: readRootsFile(path, `correct or unset ${name}`) };
}

/** Bytes of a list of roots; those of systems have up to 600 KB. OpenSSL takes 0.2 s for each MiB. */
export const MOST_ROOTS = 2 << 20;

export const ROOTS_RULES = { domain: 'ca-bundle', limit: MOST_ROOTS } as const;

function readRootsFile(path: string, hint?: string): Buffer {
  const rules = { ...ROOTS_RULES, ...withoutUndefined({ hint }) };
  return readListed(path, rules, () => readInputFile(path, rules));
}

/**
 * Paths at which Linux distributions keep all trusted roots in one PEM file; the first that exists is read.
 */
const SYSTEM_ROOTS = [
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/ssl/ca-bundle.pem',
];
