import { verify, type KeyObject } from 'node:crypto';
import { type Digest, hexOf } from '../../../base/digest.ts';
import { SealiftError } from '../../../base/errors.ts';
import { parseReference, type Reference } from '../../../registry/reference.ts';
import type { SignedIdentity } from '../../release/image-policy.ts';
import { parseReleaseStatement } from '../release-statement.ts';
import { objectOrEmpty } from '../../../base/lists.ts';

/** Media type of the layer with what cosign signed, and its annotation with the signature, base64. */
export const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';

/** A layer of the image that cosign attaches to another as `sha256-HEX.sig`. */
export type SimpleSignature = {
  readonly payload: Uint8Array;
  /** Base64. */
  readonly signature: string;
};

/** What a signature has to be for. */
export type Signed = {
  /** Of a manifest; that of an index is not asked for. */
  readonly digest: Digest;
  /** As the cluster names the image. */
  readonly image: Reference;
  readonly key: KeyObject;
  readonly identity: SignedIdentity;
};

/**
 * Why a node refuses a signature; undefined where it accepts it (containers-policy.json(5),
 * sigstoreSigned with one key): RSA PKCS #1 v1.5 or ECDSA with SHA-256, or Ed25519, over the payload; then
 * its digest and its identity.
 */
export function findSignatureProblem(
  { payload, signature }: SimpleSignature,
  { digest, image, key, identity }: Signed,
): string | undefined {
  const encoded = signature.replaceAll(/[\r\n]/g, ''); // as Go reads base64
  if (!isBase64(encoded)) return 'its signature is not base64';
  if (!isSignedBy(payload, Buffer.from(encoded, 'base64'), key)) return 'it is by another key';
  try {
    const statement = parseReleaseStatement(payload, 'cosign container image signature');
    if (statement.digest !== digest) return `it is for ${statement.digest}`;
    const name = nameOf(parseReference(statement.identity));
    const expected = nameSigned(nameOf(image), identity);
    return name === expected ? undefined : `it is for ${name}, not ${expected}`;
  } catch (error) {
    if (error instanceof SealiftError) return error.message;
    throw error;
  }
}

const isSignedBy = (data: Uint8Array, signature: Uint8Array, key: KeyObject): boolean =>
  verify(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', data, key, signature);

const isBase64 = (text: string): boolean =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);

const nameOf = ({ registry, repository }: Reference): string => `${registry}/${repository}`;

function nameSigned(name: string, identity: SignedIdentity): string {
  if (identity.kind === 'exact-repository') return nameOf(parseReference(identity.repository));
  if (identity.kind === 'repository') return name;
  const { prefix, signedPrefix } = identity;
  const isBelow = name === prefix || name.startsWith(`${prefix}/`);
  return isBelow ? `${signedPrefix}${name.slice(prefix.length)}` : name;
}

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
