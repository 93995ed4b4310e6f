import { isDigest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { readJson } from './lock-file.ts';

/** What was drawn at random for a lock, of which the lock has digests alone. */
export type LockSecrets = {
  readonly kind: 'SealiftLockSecrets';
  readonly format: 1;
  /** 32 bytes, base64: what the fingerprints of inputs are keyed with. */
  readonly key: string;
  /** By stage. */
  readonly drawn: Readonly<Record<string, Drawn>>;
};

/** A value that was drawn, and a fingerprint of what it was drawn for. */
export type Drawn = { readonly fingerprint: string; readonly value: Json };

/** Beside the lock: `sealift.lock.secrets` of `sealift.lock.json`. */
export const secretsPathOf = (lock: string): string => `${lock.replace(/\.json$/, '')}.secrets`;

export const formatLockSecrets = (secrets: LockSecrets): string => formatReadableJson(secrets);

/**
 * @returns undefined where there are none
 * @throws ConfigError `lock.unreadable`, `lock.too-large`, `lock.secrets-malformed`
 */
export function readLockSecrets(lock: string): LockSecrets | undefined {
  const path = secretsPathOf(lock);
  const value = readJson(path);
  return value === undefined ? undefined : requireSecrets(value, path);
}

/** @throws ConfigError `lock.secrets-malformed` */
export const parseLockSecrets = (text: string, path: string): LockSecrets =>
  requireSecrets(JSON.parse(text) as Json, path);

function requireSecrets(value: Json, path: string): LockSecrets {
  if (isLockSecrets(value)) return value;
  throw new ConfigError('lock.secrets-malformed', `"${path}" has not the secrets of a lock`, {
    hint: 'restore it, or remove it and run "sealift lock"',
  });
}

function isLockSecrets(value: unknown): value is LockSecrets {
  if (!isObject(value) || value['kind'] !== 'SealiftLockSecrets' || value['format'] !== 1) {
    return false;
  }
  const { key, drawn } = value;
  if (typeof key !== 'string' || Buffer.from(key, 'base64').length !== 32) return false;
  return isObject(drawn) && Object.values(drawn).every(isDrawn);
}

const isDrawn = (value: unknown): boolean =>
  isObject(value) &&
  'value' in value &&
  typeof value['fingerprint'] === 'string' &&
  isDigest(value['fingerprint']);
