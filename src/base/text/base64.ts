const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * The bytes of a base64 text (RFC 4648, 4) as Go's decoder reads it: line breaks do not count, all other characters
 * and the padding do. Undefined if it is not base64.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const base64 = text.replaceAll(/[\r\n]/g, '');
  return base64.length % 4 === 0 && BASE64.test(base64) ? Buffer.from(base64, 'base64') : undefined;
}
