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
