import { randomBytes, scryptSync } from 'node:crypto';
import { KEY_SIZE, openSealedBytes, sealBytes } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import { formatLockSecrets, parseLockSecrets, type LockSecrets } from './record.ts';

/* The encryption of the secrets in a lock. */

const SALT = 16;
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 << 20 };

/**
 * Encrypts the secrets of a lock: salt (16 bytes), nonce (12), tag (16) and the JSON text, in
 * base64. AES-256-GCM (NIST SP 800-38D); its key is scrypt (RFC 7914; N 2^15, r 8, p 1) of the
 * content of `--lock-key`.
 *
 * @param known the existing text: it is kept if it has the same secrets, so that a lock changes
 * only when they do
 */
export function sealSecrets(secrets: LockSecrets, key: Secret, known: string | undefined): string {
  const text = formatLockSecrets(secrets);
  if (known !== undefined && openSealed(known, key) === text) return known;
  const salt = randomBytes(SALT);
  const encrypted = sealBytes(Buffer.from(text), deriveKey(key, salt));
  return Buffer.concat([salt, encrypted]).toString('base64');
}

/**
 * Decrypts the secrets of a lock.
 * @throws ConfigError `lock.key-wrong`, `lock.secrets-malformed`
 */
export function unsealSecrets(sealed: string, key: Secret, path: string): LockSecrets {
  const text = openSealed(sealed, key);
  if (text !== undefined) return parseLockSecrets(text, path);
  throw new ConfigError('lock.key-wrong', `--lock-key does not open the secrets in "${path}"`, {
    hint: 'give the key that the lock was written with, or write it again with "sealift lock"',
  });
}

/** Opens the sealed text; undefined if the key is another one, or the text was changed. */
function openSealed(sealed: string, key: Secret): string | undefined {
  const bytes = Buffer.from(sealed, 'base64');
  const salt = bytes.subarray(0, SALT);
  return openSealedBytes(bytes.subarray(SALT), deriveKey(key, salt))?.toString('utf8');
}

const deriveKey = (key: Secret, salt: Uint8Array): Buffer =>
  scryptSync(key.reveal(), salt, KEY_SIZE, COST);
