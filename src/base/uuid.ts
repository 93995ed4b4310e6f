/* Owns the form of UUIDs (RFC 9562). */

/** In either case; other spellings, such as braces, are not taken. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @param bytes 16; version and variant are theirs already */
export const formatUuid = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

/**
 * Writes version and variant (RFC 9562 4.1, 4.2) into bytes of any source; the rest stays.
 *
 * @param bytes 9 or more
 */
export function markUuid(bytes: Uint8Array, version: 4 | 5 | 8): Buffer {
  const marked = Buffer.from(bytes);
  marked.writeUInt8((marked.readUInt8(6) & 0x0f) | (version << 4), 6);
  marked.writeUInt8((marked.readUInt8(8) & 0x3f) | 0x80, 8);
  return marked;
}
