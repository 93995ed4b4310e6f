import { createHash, createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { IntegrityError } from './errors.ts';

/** OCI image-spec, descriptor.md "Digests"; only the registered algorithm that every registry serves. */
export type Digest = `sha256:${string}`;

const PATTERN = /^sha256:[0-9a-f]{64}$/;

export const isDigest = (text: string): text is Digest => PATTERN.test(text);

/** True for the 64 lower-case hex digits of a digest alone, as names of files and `sha256sum` have them. */
export const isDigestHex = (text: string): boolean => PATTERN.test(`sha256:${text}`);

/** A digest by the grammar of image-spec, of an algorithm that is not read here: sha512, blake3. */
const OTHER = /^(?!sha256:)([a-z0-9]+(?:[+._-][a-z0-9]+)*):[\w=-]+$/;

export const isForeignDigest = (text: unknown): boolean =>
  typeof text === 'string' && OTHER.test(text);

/** The predicate of a sentence about a text that cannot be read as a digest; undefined if it can. */
export function explainDigest(text: string): string | undefined {
  if (isDigest(text)) return undefined;
  const [, algorithm] = OTHER.exec(text) ?? [];
  return algorithm === undefined
    ? 'is not a valid digest: sha256: and 64 hex digits'
    : `is a digest of ${algorithm}, which is not supported: only sha256 is`;
}

function parseDigest(text: string): Digest {
  if (isDigest(text)) return text;
  throw new IntegrityError('digest.malformed', `digest "${text}" is not sha256: and 64 hex digits`);
}

export const hexOf = (digest: Digest): string => digest.slice('sha256:'.length);

export const digestFromHex = (hex: string): Digest => parseDigest(`sha256:${hex}`);

export function digestOf(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

const NONCE = 12;
const TAG = 16;

/** Bytes of a key. */
export const KEY_SIZE = 32;

/**
 * Encrypted bytes: nonce (12 bytes), tag (16) and the text. AES-256-GCM (NIST SP 800-38D); the
 * nonce is random, so a key is good for some 2^32 texts.
 *
 * @param boundTo subject that the bytes belong to: they cannot be opened for any other
 */
export function sealBytes(plain: Uint8Array, key: Uint8Array, boundTo = ''): Buffer {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from(boundTo));
  const encrypted = [cipher.update(plain), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]);
}

/** undefined if the key is another one, the bytes belong to something else, or they were changed. */
export function openSealedBytes(
  sealed: Uint8Array,
  key: Uint8Array,
  boundTo = '',
): Buffer | undefined {
  const tag = sealed.subarray(NONCE, NONCE + TAG);
  if (tag.length < TAG) return undefined;
  const options = { authTagLength: TAG };
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE), options);
  decipher.setAuthTag(tag);
  decipher.setAAD(Buffer.from(boundTo));
  const plain = decipher.update(sealed.subarray(NONCE + TAG));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    return undefined; // the tag does not match, the only failure for which Node.js throws here
  }
}
