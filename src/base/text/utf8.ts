import { isUtf8 } from 'node:buffer';
import { ConfigError } from '../errors.ts';

/** True if bytes are UTF-8 without NUL: a text with NUL is UTF-16, or not a text. */
export const isText = (bytes: Uint8Array): boolean => isUtf8(bytes) && !bytes.includes(0);

/**
 * Decodes a file that a user gave. Other encodings are refused, because each foreign letter would
 * become U+FFFD.
 *
 * @param code `config.not-utf8` unless the domain has its own
 * @throws ConfigError
 */
export function decodeUserText(bytes: Uint8Array, path: string, code = 'config.not-utf8'): string {
  if (isText(bytes)) return Buffer.from(bytes).toString('utf8');
  throw new ConfigError(code, `${path} is not UTF-8 text`, {
    hint: 'save it as UTF-8, or name another file',
  });
}

/** The fault of a text that neither a path nor UTF-8 can have; undefined without one. */
export function explainBroken(text: string): string | undefined {
  if (text.includes('\0')) return 'has a NUL character';
  return /\p{Surrogate}/u.test(text) ? 'has half a surrogate pair' : undefined;
}

/** A text without what `explainBroken` finds. */
export const withoutBroken = (text: string): string => text.replaceAll(/\0|\p{Surrogate}/gu, '');
