import pg from 'pg';
import type { ConnectionOptions } from 'node:tls';
import { isLoopbackHost } from '../../base/http/address.ts';
import { connectOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';

/* Owns how the database is reached: by the rules for TLS that all connections have. */

export type DatabaseAccess = {
  /** The URL without its settings for TLS, which are in `ssl`. */
  readonly url: string;
  readonly host: string;
  readonly ssl: ConnectionOptions | false;
  /** A warning: the connection can be read or taken over by others. */
  readonly doubt: string | undefined;
};

/** Parameters of libpq for TLS, which pg would read again. */
const TLS_PARAMETERS = ['ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'uselibpqcompat'];

/** Reads the URL of a database as pg does: PGSSLMODE counts where the URL has no `sslmode`. */
export function readDatabaseAccess(given: string, env: NodeJS.ProcessEnv): DatabaseAccess {
  const { host, ssl } = new pg.Client({ connectionString: given }) as unknown as Parsed;
  const url = new URL(given);
  for (const name of TLS_PARAMETERS) url.searchParams.delete(name);
  const access = { url: url.href, host };
  if (ssl === false) {
    const isHere = host.startsWith('/') || isLoopbackHost(host);
    const doubt = `the connection to the database on ${host} is not encrypted: add ?sslmode=verify-full to --database`;
    return { ...access, ssl, doubt: isHere ? undefined : doubt };
  }
  const { ca, cert, key, rejectUnauthorized } = ssl === true ? {} : ssl;
  const insecure = rejectUnauthorized === false;
  const rules = connectOptions(
    { insecure, ...withoutUndefined({ ca: ca === undefined ? undefined : [ca], cert, key }) },
    env,
  );
  return {
    ...access,
    ssl: {
      ...rules,
      // pg names no server that is an IP address, and Node would then compare with "localhost".
      checkServerIdentity: (_, certificate) => rules.checkServerIdentity(host, certificate),
    },
    doubt: insecure
      ? `the certificate of the database on ${host} is not verified: use sslmode=verify-full in --database`
      : undefined,
  };
}

/** The result of pg, whose types say less. */
type Parsed = { readonly host: string; readonly ssl: boolean | Texts };

/** Files that pg has read. */
type Texts = {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized?: boolean;
};
