import { verify, type KeyObject } from 'node:crypto';
import { isDigest, type Digest, hexOf } from '../../base/digest.ts';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { isObject, objectOrEmpty } from '../../base/lists.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { type SigningKey, verifySignedMessage } from '../../openpgp/index.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';
import type { SignedIdentity } from './image-policy.ts';
import type { Release } from './release.ts';

/** The statement in the signature of an image. */
export type ReleaseStatement = {
  readonly digest: Digest;
  /** The signer's name for the image; mirrors have other names. */
  readonly identity: string;
};

/**
 * containers/image atomic-signature.md: exactly the signed JSON. Only `optional` may have members
 * that are not known here.
 *
 * @param type of a signature in an OpenPGP message, or of one that cosign made, whose `optional`
 * may be null
 * @throws IntegrityError `signature.malformed`
 */
export function parseReleaseStatement(
  content: Uint8Array,
  type: StatementType = 'atomic container signature',
): ReleaseStatement {
  const whole = readMembers(parseJson(content), ['critical', 'optional'], 'it');
  const isAbsent = whole['optional'] === null && type === 'cosign container image signature';
  if (!isAbsent && !isObject(whole['optional'])) {
    throw malformed('its member optional is not an object');
  }
  checkOptional(isObject(whole['optional']) ? whole['optional'] : {});
  const critical = readMembers(whole['critical'], ['image', 'type', 'identity'], 'critical');
  const image = readMembers(critical['image'], ['docker-manifest-digest'], 'image');
  const identity = readMembers(critical['identity'], ['docker-reference'], 'identity');
  if (critical['type'] !== type) throw malformed(`its type is not "${type}"`);
  const digest = readText(image, 'docker-manifest-digest');
  if (!isDigest(digest)) throw malformed(`its digest "${digest}" is not sha256: and 64 hex digits`);
  const reference = readText(identity, 'docker-reference');
  // It is shown to people, who must not take a part of it for a message of the program.
  if (!/^[\x21-\x7e]+$/.test(reference)) throw malformed('its docker-reference is not a reference');
  return { digest, identity: reference };
}

/** Checks the types of members that readers know: each has one type. */
function checkOptional({ creator = '', timestamp = 0 }: Readonly<Record<string, unknown>>): void {
  if (typeof creator !== 'string') throw malformed('its creator is not a string');
  if (!Number.isInteger(timestamp)) throw malformed('its timestamp is not a whole number');
}

type StatementType = 'atomic container signature' | 'cosign container image signature';

const malformed = (reason: string): IntegrityError =>
  new IntegrityError(
    'signature.malformed',
    `the signed content is not the signature of an image: ${reason}`,
  );

/** If two members have the same name, readers choose different ones: neither is accepted. */
function parseJson(content: Uint8Array): unknown {
  const read = readJsonText(content, TYPED_JSON);
  if (read.why === undefined) return read.value;
  throw malformed(`it ${read.why}`);
}

/** An object with exactly these members. */
function readMembers(
  value: unknown,
  names: readonly string[],
  what: string,
): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw malformed(`${what} is not an object`);
  const found = Object.keys(value).sort().join(', ');
  const expected = [...names].sort().join(', ');
  if (found === expected) return value;
  throw malformed(`${what} should have the members ${expected}, but has ${found || 'none'}`);
}

function readText(of: Readonly<Record<string, unknown>>, name: string): string {
  const value = of[name];
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw malformed(`its ${name} is empty`);
}

/**
 * Verifies a signed message of a release: first its signer, and then that it is about this digest.
 * The identity is the signer's name for the release, and not compared: mirrors have other names.
 *
 * @param now seconds since 1970
 * @throws IntegrityError `signature.other-digest`; the errors of `verifySignedMessage` and
 * `parseReleaseStatement`
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

/** Signatures in base64; empty if the release is not verified. */
export const signaturesOf = ({ signature }: Release): readonly string[] =>
  signature?.status === 'verified' ? signature.messages : [];

export const isUnsigned = ({ signature }: Release): boolean => signature?.status === 'unsigned';

/** Media type of the layer that cosign signed, and its annotation with the signature, base64. */
export const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';

/** A layer of the image that cosign attaches to another as `sha256-HEX.sig`. */
export type SimpleSignature = {
  readonly payload: Uint8Array;
  /** Base64. */
  readonly signature: string;
};

/** The image and key that a signature must match. */
export type Signed = {
  /** Digest of a manifest; the digest of an index is not asked for. */
  readonly digest: Digest;
  /** Name of the image in the cluster. */
  readonly image: Reference;
  readonly key: KeyObject;
  readonly identity: SignedIdentity;
};

/**
 * The reason why a node refuses a signature; undefined if it accepts it
 * (containers-policy.json(5), sigstoreSigned with one key): RSA PKCS #1 v1.5 or ECDSA with
 * SHA-256, or Ed25519, over the payload; then its digest and its identity.
 */
export function findSignatureProblem(
  { payload, signature }: SimpleSignature,
  { digest, image, key, identity }: Signed,
): string | undefined {
  const decoded = decodeBase64(signature);
  if (!decoded) return 'its signature is not base64';
  if (!isSignedBy(payload, decoded, key)) return 'it is by another key';
  try {
    const statement = parseReleaseStatement(payload, 'cosign container image signature');
    if (statement.digest !== digest) return `it is for ${statement.digest}`;
    return findIdentityProblem(parseReference(statement.identity), image, identity);
  } catch (error) {
    if (error instanceof SealiftError) return error.message;
    throw error;
  }
}

/**
 * The default, and a remapped identity, compare whole references: a signature that names a repository alone,
 * as cosign makes them, is for no image. Of images by digest, the repository is compared.
 */
function findIdentityProblem(
  signed: Reference,
  image: Reference,
  identity: SignedIdentity,
): string | undefined {
  const [name, expected] = [nameOf(signed), nameSigned(nameOf(image), identity)];
  if (name !== expected) return `it is for ${name}, not ${expected}`;
  if (identity.kind === 'repository' || identity.kind === 'exact-repository') return undefined;
  const { tag, digest } = signed;
  if (tag === undefined && digest === undefined) {
    return `it is for ${name} without a tag, which only the policy MatchRepository accepts`;
  }
  const wanted = image.tag ?? 'latest';
  return image.digest !== undefined || (tag === wanted && digest === undefined)
    ? undefined
    : `it is for ${formatReference(signed)}, not ${expected}:${wanted}`;
}

const isSignedBy = (data: Uint8Array, signature: Uint8Array, key: KeyObject): boolean =>
  verify(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', data, key, signature);

const nameOf = ({ registry, repository }: Reference): string => `${registry}/${repository}`;

function nameSigned(name: string, identity: SignedIdentity): string {
  if (identity.kind === 'exact-repository') return nameOf(parseReference(identity.repository));
  if (identity.kind !== 'remapped') return name;
  const { prefix, signedPrefix } = identity;
  const isBelow = name === prefix || name.startsWith(`${prefix}/`);
  return isBelow ? `${signedPrefix}${name.slice(prefix.length)}` : name;
}

/** Prefix of the media types of bundles; cosign 3 attaches one as a referrer. */
export const BUNDLE_PREFIX = 'application/vnd.dev.sigstore.bundle.';

const STATEMENT = 'application/vnd.in-toto+json';
const IMAGE_SIGNATURE = 'https://sigstore.dev/cosign/sign/v1';

/**
 * True if a bundle (sigstore protobuf-specs, bundle v0.3) has an envelope (DSSE v1) that this key
 * signed with a statement (in-toto v1) of cosign about this image. Logs and time stamps are not
 * checked.
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
