import { gunzipSync } from 'node:zlib';
import type { File } from './config.ts';

/** Bytes that one file of a configuration may unpack to. */
const MAX_SIZE = 64 << 20;

/**
 * The bytes that a file gets from the configuration itself (RFC 2397 `data:` URL, gzip or not);
 * undefined where they come from elsewhere, or cannot be decoded.
 */
export function decodeFileContent({ contents }: Pick<File, 'contents'>): Buffer | undefined {
  const [, parameters, data] = /^data:([^,]*),(.*)$/s.exec(contents?.source ?? '') ?? [];
  if (parameters === undefined || data === undefined) return undefined;
  try {
    const encoding = /;base64$/i.test(parameters) ? 'base64' : 'utf8';
    const bytes = Buffer.from(decodeURIComponent(data), encoding);
    if (contents?.compression !== 'gzip') return bytes;
    return gunzipSync(bytes, { maxOutputLength: MAX_SIZE });
  } catch {
    return undefined;
  }
}
