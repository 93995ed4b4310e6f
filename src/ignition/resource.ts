import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import type { File, IgnitionResource } from './schema.ts';

/** Bytes that one resource of a configuration may unpack to. */
const MAX_SIZE = 64 << 20;

/**
 * Decodes a resource that the configuration itself holds: an RFC 2397 `data:` URL, gzip or not.
 *
 * @param limit bytes that it may unpack to
 * @returns undefined if the bytes come from elsewhere, cannot be decoded, or exceed the limit
 */
export function decodeResource(resource: IgnitionResource, limit = MAX_SIZE): Buffer | undefined {
  const held = decodeDataUrl(resource.source ?? '');
  if (typeof held === 'string') return undefined;
  const bytes = unpack(held, resource, limit);
  return typeof bytes === 'string' ? undefined : bytes;
}

/** Decodes the content that a file gets from the configuration itself; undefined as for `decodeResource`. */
export const decodeFileContent = ({ contents = {} }: Pick<File, 'contents'>): Buffer | undefined =>
  decodeResource(contents);

/**
 * Explains why Ignition would refuse a `data:` URL, its compression or its hash, now or when a host starts.
 *
 * @param left bytes that all resources of a configuration may unpack to; what exceeds them is not checked
 */
export function explainHeld(
  resource: IgnitionResource,
  left: { bytes: number },
): string | undefined {
  const held = decodeDataUrl(resource.source ?? '');
  if (typeof held === 'string') return `data URL ${held}`;
  const bytes = unpack(held, resource, left.bytes);
  if (bytes === TOO_LARGE) return undefined;
  if (typeof bytes === 'string') return `content ${bytes}`;
  left.bytes -= bytes.length;
  return hasHash(bytes, resource) ? undefined : 'content has another hash than is given for it';
}

/** `verification.hash` is of the contents without compression. */
export function hasHash(bytes: Uint8Array, { verification }: IgnitionResource): boolean {
  if (verification?.hash === undefined) return true;
  const [, type, hex] = /^(sha256|sha512)-([0-9a-f]+)$/i.exec(verification.hash) ?? [];
  if (type === undefined || hex === undefined) return false;
  return createHash(type.toLowerCase()).update(bytes).digest('hex') === hex.toLowerCase();
}

const TOO_LARGE = 'is too large';

/** The bytes without their compression, or the reason against them. */
function unpack(held: Buffer, { compression }: IgnitionResource, limit: number): Buffer | string {
  if (compression !== 'gzip') return held.length <= limit ? held : TOO_LARGE;
  try {
    return gunzipSync(held, { maxOutputLength: Math.max(1, limit) });
  } catch (error) {
    return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? TOO_LARGE : 'is not gzip';
  }
}

/** RFC 2045 5.1. */
const TOKEN = String.raw`[\w!#$%&'*+\-.^\`{|}~]`;
/** The types of RFC 2045; Ignition's parser compares their beginning. */
const TYPE = String.raw`(?:[xX]-|text|image|audio|video|application|message|multipart)${TOKEN}*/${TOKEN}*`;
const HEX = '[0-9a-fA-F]';
/** Escapes of a string of Go, in which Ignition's parser reads the text between quotation marks. */
const ESCAPE = String.raw`\\(?:[abfnrtv\\"]|[0-3][0-7]{2}|x${HEX}{2}|(?:u|U0000)(?![dD][89a-fA-F])${HEX}{4}|U00(?:0[1-9a-fA-F]|10)${HEX}{4})`;
const VALUE = String.raw`(?:(?:(?!%)${TOKEN}|%${HEX}{2})+|"(?:[ !#-\[\]-~]|${ESCAPE})*")`;
const HEAD = new RegExp(`^data:(?:${TYPE})?(?:;${TOKEN}+=${VALUE})*(;base64)?,`);

/**
 * Decodes a `data:` URL as Ignition reads it: by RFC 2397, but `data:` and `base64` have small letters, and `base64`
 * is the last parameter. Base64 has its padding, and neither line ends nor `%`.
 *
 * Source: net/url and github.com/vincent-petithory/dataurl 1.0.0, which Ignition uses.
 *
 * @returns the bytes, or the reason why Ignition refuses the URL
 */
function decodeDataUrl(source: string): Buffer | string {
  const comma = source.indexOf(',');
  if (comma === -1) return 'has no comma';
  const head = HEAD.exec(source);
  if (!head) return 'has a head that is not as in RFC 2397';
  const data = source.slice(head[0].length);
  return head[1] === undefined ? decodePercent(data) : decodeBase64(data);
}

function decodeBase64(data: string): Buffer | string {
  const end = data.endsWith('==') ? -2 : data.endsWith('=') ? -1 : data.length;
  const isBase64 = data.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(data.slice(0, end));
  return isBase64 ? Buffer.from(data, 'base64') : 'is not base64';
}

/** RFC 3986 2.1: `%` and two hex digits are an octet, which need not be part of a character. */
function decodePercent(text: string): Buffer | string {
  // The characters of a URL by RFC 2396.
  if (/[^!$-;=?-Z_a-z~]/.test(text))
    return 'has a character that must be written as % and two hex digits';
  if (/%(?![0-9a-f]{2})/i.test(text)) return 'has a % without two hex digits';
  const source = Buffer.from(text, 'latin1');
  const decoded = Buffer.alloc(source.length);
  let size = 0;
  for (let at = 0; at < source.length; at++) {
    const isOctet = source[at] === 0x25;
    decoded[size++] = isOctet
      ? Number.parseInt(source.toString('latin1', at + 1, at + 3), 16)
      : (source[at] ?? 0);
    if (isOctet) at += 2;
  }
  return decoded.subarray(0, size);
}
