import { ConfigError } from '../../base/errors.ts';

/** How a lock's fields are named: `release.channel`, `tags["quay.io/a:1"]`. */
export const nameField = (path: string, name: string): string =>
  /^\w+$/.test(name) ? `${path}.${name}` : `${path}["${name}"]`;

/** What a build found is not what the lock says. @param field its name in the lock */
export const mismatch = (
  field: string,
  values: { readonly expected: string; readonly found: string },
): ConfigError =>
  new ConfigError('lock.mismatch', `${field} is not what the lock says`, {
    ...values,
    hint: 'restore what it was, or update the lock with "sealift lock"',
  });
