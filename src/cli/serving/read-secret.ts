import { statSync, type Stats } from 'node:fs';
import { resolve } from 'node:path';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { ConfigError } from '../../base/errors.ts';
import { readSecretSource } from '../../config/secrets.ts';
import type { CliHost } from '../host.ts';

/** What an option names as file:PATH or env:NAME. @throws ConfigError `service.secret` */
export function readSecret(option: string, text: string, { cwd: directory, env }: CliHost): string {
  const reading = readSecretSource(text, { directory, env });
  if (reading.kind === 'value' && reading.from === 'reference') return reading.value;
  throw new ConfigError(
    'service.secret',
    reading.kind === 'value'
      ? `${option} is neither file:PATH nor env:NAME`
      : `${option}: ${reading.problem}`,
    { hint: `give ${option} as file:PATH or env:NAME` },
  );
}

/** Tells of secrets that others on this machine can read. */
export function warnOfSecrets(
  { key, database = '' }: { readonly key: string; readonly database?: string },
  { cwd }: Pick<CliHost, 'cwd'>,
  warn: (message: string) => void,
): void {
  const [, path] = /^file:(.*)$/s.exec(key) ?? [];
  const found = path === undefined ? undefined : findFile(resolve(cwd, path));
  const mode = (found?.mode ?? 0) & 0o777;
  if ((mode & 0o004) !== 0) {
    warn(
      `everybody on this machine can read ${path ?? ''} (mode ${mode.toString(8)}): chmod 600 it`,
    );
  }
  if (URL.canParse(database) && new URL(database).password !== '') {
    warn('the password of --database is in the list of processes: give env:NAME or file:PATH');
  }
}

/** Undefined for what cannot be reached: `readSecret` refuses it. */
function findFile(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}
