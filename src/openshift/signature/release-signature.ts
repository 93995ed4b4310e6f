import type { Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Release } from '../release/release-payload.ts';
import type { SigningKey } from './openpgp/keys.ts';
import { verifySignedMessage } from './openpgp/signed-message.ts';
import { parseReleaseStatement } from './release-statement.ts';

/**
 * Verifies a signed message of a release: who signed it, and then that it speaks of this digest. The
 * identity is the signer's name for the release, and not compared: mirrors have other names.
 *
 * @param now seconds since 1970
 * @throws IntegrityError `signature.other-digest`; what `verifySignedMessage` and `parseReleaseStatement`
 * throw
 */
export function verifyReleaseMessage(
  message: Uint8Array,
  digest: Digest,
  { keys, now }: { readonly keys: readonly SigningKey[]; readonly now: number },
): { readonly key: string; readonly identity: string } {
  const { content, key } = verifySignedMessage(message, keys, now);
  const statement = parseReleaseStatement(content);
  if (statement.digest === digest) {
    return { key: key.fingerprint, identity: statement.identity };
  }
  throw new IntegrityError('signature.other-digest', 'it is the signature of another image', {
    expected: digest,
    found: statement.digest,
  });
}

/** Base64; empty for what is not verified. */
export const signaturesOf = ({ signature }: Release): readonly string[] =>
  signature?.status === 'verified' ? signature.messages : [];

export const isUnsigned = ({ signature }: Release): boolean => signature?.status === 'unsigned';
