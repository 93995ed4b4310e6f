import type { KeyObject } from 'node:crypto';
import { objectOrEmpty } from '../../../base/members.ts';
import { hexOf, type Digest } from '../../../base/digest.ts';
import { isSignedBy } from './simple-signing.ts';

/** Media types of bundles begin so; cosign 3 attaches one as a referrer. */
export const BUNDLE_PREFIX = 'application/vnd.dev.sigstore.bundle.';

const STATEMENT = 'application/vnd.in-toto+json';
const IMAGE_SIGNATURE = 'https://sigstore.dev/cosign/sign/v1';

/**
 * Whether a bundle (sigstore protobuf-specs, bundle v0.3) has an envelope (DSSE v1) that this key signed
 * with a statement (in-toto v1) of cosign about this image. Logs and time stamps are not looked at.
 */
export function isBundleFor(
  bundle: Uint8Array,
  { digest, key }: { readonly digest: Digest; readonly key: KeyObject },
): boolean {
  const { dsseEnvelope } = objectOrEmpty(parse(Buffer.from(bundle).toString('utf8')));
  const { payload, payloadType, signatures } = objectOrEmpty(dsseEnvelope);
  if (typeof payload !== 'string' || payloadType !== STATEMENT || !Array.isArray(signatures)) {
    return false;
  }
  const body = Buffer.from(payload, 'base64');
  const signed = encodeSigned(body);
  const isByKey = signatures.slice(0, MOST_SIGNATURES).some((one) => {
    const { sig } = objectOrEmpty(one);
    return typeof sig === 'string' && isSignedBy(signed, Buffer.from(sig, 'base64'), key);
  });
  return isByKey && isAbout(body, digest);
}

const MOST_SIGNATURES = 16;

/** DSSE protocol.md, "PAE". */
const encodeSigned = (body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${STATEMENT.length} ${STATEMENT} ${body.length} `), body]);

function isAbout(body: Buffer, digest: Digest): boolean {
  const { predicateType, subject } = objectOrEmpty(parse(body.toString('utf8')));
  if (predicateType !== IMAGE_SIGNATURE || !Array.isArray(subject)) return false;
  return subject.some(
    (one) => objectOrEmpty(objectOrEmpty(one)['digest'])['sha256'] === hexOf(digest),
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
