/** Verifies OpenPGP messages signed with RSA keys (RFC 4880). */

export { parseKeys } from './keys.ts';
export type { SigningKey } from './keys.ts';
export { verifySignedMessage } from './message.ts';
