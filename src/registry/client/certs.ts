import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { readInputFile, readListed } from '../../base/disk/files.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';

/** containers-certs.d(5), in order; the first that has a directory of the host is read. */
export const SYSTEM_CERTS_DIRS = ['/etc/containers/certs.d', '/etc/docker/certs.d'] as const;

export type CertsOptions = {
  /** PEM, trusted for every host. */
  readonly caBundle?: string;
  readonly certsDirs: readonly string[];
};

/** The TLS options of a host (with its port, as references name it). */
export type CertsReader = (host: string) => Promise<TlsOptions>;

/**
 * Reads `<dir>/<host:port>/*.crt` (CAs), and `*.cert` with its `*.key` (client certificate), once a
 * host.
 *
 * @throws ConfigError `certs.key-missing`, `certs.unreadable`, `certs.too-large`
 */
export function createCertsReader(options: CertsOptions): CertsReader {
  const known = new Map<string, Promise<TlsOptions>>();
  return (host) => {
    const reading = known.get(host) ?? readCerts(host, options);
    known.set(host, reading);
    return reading;
  };
}

async function readCerts(host: string, { caBundle, certsDirs }: CertsOptions): Promise<TlsOptions> {
  const bundle = caBundle === undefined ? [] : [caBundle];
  for (const directory of certsDirs) {
    const path = join(directory, host);
    const names = await listDirectory(path);
    if (names) return readHostDirectory(path, names.sort(), bundle);
  }
  return bundle.length > 0 ? { ca: bundle } : {};
}

function readHostDirectory(
  path: string,
  names: readonly string[],
  bundle: readonly string[],
): TlsOptions {
  const rules = { domain: 'certs' };
  const read = (name: string): string => {
    const file = join(path, name);
    return readListed(file, rules, () => readInputFile(file, rules).toString('latin1'));
  };
  const own = names.filter((name) => name.endsWith('.crt')).map(read);
  const ca = [...bundle, ...own];
  const cert = names.find((name) => name.endsWith('.cert'));
  if (cert === undefined) return ca.length > 0 ? { ca } : {};
  const key = cert.replace(/cert$/, 'key');
  if (!names.includes(key)) {
    throw new ConfigError(
      'certs.key-missing',
      `client certificate ${join(path, cert)} has no ${key}`,
      {
        hint: `put ${key} beside it`,
      },
    );
  }
  return { ...(ca.length > 0 && { ca }), cert: read(cert), key: read(key) };
}

/** A directory that this user may not read counts as absent, as for podman. */
async function listDirectory(path: string): Promise<string[] | undefined> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return undefined;
    throw error;
  }
}
