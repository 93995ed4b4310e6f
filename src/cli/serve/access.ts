import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { isCutOff } from '../../base/http/address.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { Secret } from '../../base/secret.ts';
import { parseDuration, parseSize, SIZE_FORM, TIME_FORM } from '../../base/text/words.ts';
import { isReference } from '../../config/secrets.ts';
import type { AuthSettings } from '../../service/auth/identity.ts';
import type { CliHost } from '../host.ts';
import { parseWhole, refuseOption } from '../options.ts';
import { readNamedFile } from './listen.ts';
import { readSecret } from './token.ts';
import { requireTrustedFile } from './trusted-file.ts';

/* Owns the options for records, their keys, and who may use them. */

export type ServeAccess = {
  readonly key: string;
  readonly previousKey?: string;
  readonly database?: string;
  readonly tenantRecords: number;
  /** In bytes. */
  readonly tenantBytes: number;
  readonly auth: 'none' | 'local' | 'rhsso';
  readonly authKeys?: string;
  readonly authIssuer?: string;
  readonly authAudience?: string;
  /** In milliseconds. */
  readonly authLifetime: number;
};

export const addServeAccess = (command: Command): Command =>
  command
    .requiredOption(
      '--key <source>',
      'key that encrypts the keys of records: file:PATH or env:NAME',
    )
    .option('--previous-key <source>', 'key before --key, while it is changed: see "serve rekey"')
    .option('--database <url>', 'PostgreSQL for records (postgres://..., env:NAME or file:PATH)')
    .addOption(
      new Option('--tenant-records <number>', 'most records of a tenant')
        .argParser(parseWhole('usage.limit', [1, 1_000_000], '--tenant-records'))
        .default(1000),
    )
    .addOption(
      new Option('--tenant-bytes <size>', 'most bytes of the records of a tenant')
        .argParser(parseBytes)
        .default(2 ** 28, '256MiB'),
    )
    .addOption(
      new Option('--auth <type>', 'who may use the service: everyone, or holders of a token')
        .choices(['none', 'local', 'rhsso'])
        .default('none'),
    )
    .option(
      '--auth-keys <file>',
      'keys of the issuer of tokens: public key (PEM), JSON Web Key Set, or the https:// URL of such a set',
    )
    .option('--auth-issuer <issuer>', 'issuer that tokens must name')
    .option('--auth-audience <audience>', 'audience that tokens must name')
    .addOption(
      new Option('--auth-lifetime <duration>', 'how long a token may be valid')
        .argParser(parseLongest)
        .default(24 * 3_600_000, '24h'),
    );

function parseBytes(text: string): number {
  const size = parseSize(text) ?? 0;
  if (size > 0) return size;
  throw refuseOption('usage.limit', text, { option: '--tenant-bytes', expected: SIZE_FORM });
}

function parseLongest(text: string): number {
  const time = parseDuration(text) ?? 0;
  if (time > 0) return time;
  throw refuseOption('usage.lifetime', text, {
    option: '--auth-lifetime',
    expected: TIME_FORM,
  });
}

export const readKeys = (
  { key, previousKey }: Pick<ServeAccess, 'key' | 'previousKey'>,
  host: CliHost,
): { readonly key: Secret; readonly previousKey?: Secret } => ({
  key: new Secret(readSecret('--key', key, host)),
  ...(previousKey !== undefined && {
    previousKey: new Secret(readSecret('--previous-key', previousKey, host)),
  }),
});

/** The URL may be in a file or a variable: it may have a password, and a command line is not secret. */
export function readDatabase(
  { database: text }: Pick<ServeAccess, 'database'>,
  host: CliHost,
): string | undefined {
  if (text === undefined) return undefined;
  const url = isReference(text) ? readSecret('--database', text, host) : text;
  if (/^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url) && !isCutOff(new URL(url))) return url;
  throw new UsageError('usage.database', '--database is not a URL of PostgreSQL', {
    expected: 'postgres://USER:PASSWORD@HOST:PORT/NAME',
    hint: 'write #, / and ? in a password as %23, %2F and %3F',
  });
}

/** Keys from elsewhere may sign tokens for others as well, so issuer and audience are required with them. */
export function readAuth(
  options: Pick<ServeAccess, 'auth' | 'authKeys' | 'authIssuer' | 'authAudience' | 'authLifetime'>,
  { cwd }: Pick<CliHost, 'cwd'>,
): AuthSettings {
  const { auth, authKeys, authIssuer: issuer, authAudience: audience } = options;
  if (auth === 'none') return { type: auth };
  if (authKeys === undefined) {
    throw new UsageError('usage.auth-keys', `--auth ${auth} needs --auth-keys`, {
      hint: 'name the public key, or the JSON Web Key Set, of the issuer of tokens',
    });
  }
  const rules = { lifetime: options.authLifetime, ...withoutUndefined({ issuer, audience }) };
  if (authKeys.startsWith('https://') && URL.canParse(authKeys)) {
    requireRules(rules);
    return { type: auth, keys: authKeys, ...rules };
  }
  const path = resolve(cwd, authKeys);
  requireTrustedFile('--auth-keys', path);
  return { type: auth, keys: readNamedFile('--auth-keys', path), ...rules };
}

function requireRules({ issuer, audience }: { issuer?: string; audience?: string }): void {
  if (issuer === undefined) {
    throw new UsageError('usage.auth-issuer', 'keys from a URL need --auth-issuer', {
      hint: 'name the issuer of the tokens, their claim "iss"',
    });
  }
  if (audience !== undefined) return;
  throw new UsageError('usage.auth-audience', 'keys from a URL need --auth-audience', {
    hint: 'name the audience of the tokens, their claim "aud"',
  });
}
