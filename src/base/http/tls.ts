import { existsSync } from 'node:fs';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { readInputFile, readListed } from '../disk/files.ts';
import { withoutUndefined } from '../members.ts';

/** TLS of one origin. PEM texts. Absent members mean the system's roots and verification on. */
export type TlsOptions = {
  /** Trusted besides the system's roots, not instead of them. */
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
  /** Switches verification off: explicit, per registry, and shown in the report. */
  readonly insecure?: boolean;
};

export type ConnectOptions = {
  readonly secureContext: SecureContext;
  readonly rejectUnauthorized?: boolean;
};

/** One context for all connections: reading some 300 roots takes 40 ms. */
export function connectOptions(tls: TlsOptions, env: NodeJS.ProcessEnv): ConnectOptions {
  const secureContext = createSecureContext({
    ca: [...rootCertificates, ...readSystemRoots(env), ...(tls.ca ?? [])],
    ...withoutUndefined({ cert: tls.cert, key: tls.key }),
    minVersion: 'TLSv1.2',
  });
  return { secureContext, ...(tls.insecure === true && { rejectUnauthorized: false }) };
}

/** @throws ConfigError `ca-bundle.unreadable`, `ca-bundle.too-large` */
function readSystemRoots(env: NodeJS.ProcessEnv): string[] {
  const system = env['SSL_CERT_FILE'] ?? SYSTEM_ROOTS.find((path) => existsSync(path));
  return [system, env['NODE_EXTRA_CA_CERTS']]
    .filter((path): path is string => path !== undefined && path !== '')
    .map((path) => {
      const rules = { domain: 'ca-bundle' };
      return readListed(path, rules, () => readInputFile(path, rules).toString('latin1'));
    });
}

/** Where Linux distributions keep all trusted roots in one PEM file; the first that exists is read. */
const SYSTEM_ROOTS = [
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/ssl/ca-bundle.pem',
];
