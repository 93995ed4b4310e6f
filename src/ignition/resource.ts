import { gunzipSync } from 'node:zlib';
import type { File, Resource } from './config.ts';

/** Bytes that one resource of a configuration may unpack to. */
const MAX_SIZE = 64 << 20;

/**
 * Decodes a resource that the configuration itself holds: an RFC 2397 `data:` URL, in base64 or percent-encoded,
 * gzip or not.
 *
 * @param limit bytes that it may unpack to
 * @returns undefined if the bytes come from elsewhere, cannot be decoded, or exceed the limit
 */
export function decodeResource(
  { source = '', compression }: Resource,
  limit = MAX_SIZE,
): Buffer | undefined {
  const [, parameters, data] = /^data:([^,]*),(.*)$/is.exec(source) ?? [];
  if (parameters === undefined || data === undefined) return undefined;
  const plain = decodePercent(data);
  const isBase64 = /;base64$/i.test(parameters);
  const bytes = isBase64 ? Buffer.from(plain.toString('latin1'), 'base64') : plain;
  if (compression !== 'gzip') return bytes.length <= limit ? bytes : undefined;
  try {
    return gunzipSync(bytes, { maxOutputLength: Math.max(1, limit) });
  } catch {
    return undefined;
  }
}

/** RFC 3986 2.1: `%` and two hex digits are an octet, which need not be part of a character. */
function decodePercent(text: string): Buffer {
  const source = Buffer.from(text);
  const decoded = Buffer.alloc(source.length);
  let size = 0;
  for (let at = 0; at < source.length; at++) {
    const octet = source[at] === 0x25 ? parseOctet(source, at) : undefined;
    decoded[size++] = octet ?? source[at] ?? 0;
    if (octet !== undefined) at += 2;
  }
  return decoded.subarray(0, size);
}

function parseOctet(source: Buffer, at: number): number | undefined {
  const hex = source.toString('latin1', at + 1, at + 3);
  return /^[0-9a-f]{2}$/i.test(hex) ? Number.parseInt(hex, 16) : undefined;
}

/** Decodes the content that a file gets from the configuration itself; undefined as for `decodeResource`. */
export const decodeFileContent = ({ contents = {} }: Pick<File, 'contents'>): Buffer | undefined =>
  decodeResource(contents);
