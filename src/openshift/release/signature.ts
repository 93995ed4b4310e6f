import { verify, type KeyObject } from 'node:crypto';
import { type Digest, hexOf } from '../../base/digest.ts';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { type SigningKey, verifySignedMessage } from '../../openpgp/index.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';
import {
  decode,
  decodeJson,
  ifFaultless,
  JSON_RULES,
  requireDecoded,
  type Rules,
} from '../../shape/decode.ts';
import { TYPED_JSON } from '../../shape/json-text.ts';
import {
  DIGEST,
  FREE,
  INTEGER,
  LEFT_OUT,
  list,
  mapping,
  oneOf,
  partial,
  record,
  refine,
  type Shape,
  TEXT,
  type TypeOf,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import type { SignedIdentity } from './image-policy.ts';
import type { Release } from './release.ts';

/** The statement in the signature of an image. */
export type ReleaseStatement = {
  readonly digest: Digest;
  /** The signer's name for the image; mirrors have other names. */
  readonly identity: string;
};

/** Readers choose different ones of two members with one name: neither is accepted. */
const RULES: Rules = { ...JSON_RULES, ...TYPED_JSON };

const PRINTABLE = refine(TEXT, (text) =>
  // It is shown to people, who must not take a part of it for a message of the program.
  /^[\x21-\x7e]+$/.test(text) ? undefined : 'is not a reference',
);

/** Only this part may have members that are not known here. */
const OPTIONAL = partial({ creator: TEXT, timestamp: INTEGER }, LEFT_OUT);

/** containers/image atomic-signature.md: exactly the signed JSON. */
const describeStatement = <T>(type: StatementType, optional: Shape<T>) =>
  record({
    critical: record({
      image: record({ 'docker-manifest-digest': DIGEST }),
      type: oneOf(type),
      identity: record({ 'docker-reference': PRINTABLE }),
    }),
    optional,
  });

type StatementType = 'atomic container signature' | 'cosign container image signature';

const ATOMIC = describeStatement('atomic container signature', OPTIONAL);
/** Cosign writes null for no optional members. */
const COSIGN = describeStatement(
  'cosign container image signature',
  refine(FREE, (value) => {
    const [first] = value === null ? [] : decode(OPTIONAL, value).findings;
    return first && describeFinding(first);
  }),
);

/** Reads the statement in an OpenPGP message (`ATOMIC`), or in a signature by cosign. */
export function parseReleaseStatement(
  content: Uint8Array,
  shape: typeof ATOMIC | typeof COSIGN = ATOMIC,
): ReleaseStatement {
  const { critical } = requireDecoded<TypeOf<typeof shape>>(
    decodeJson(shape, content, RULES),
    ([first]) => malformed(describeFinding(first, 'it')),
  );
  const { image, identity } = critical;
  return { digest: image['docker-manifest-digest'], identity: identity['docker-reference'] };
}

const malformed = (reason: string): IntegrityError =>
  new IntegrityError(
    'signature.malformed',
    `the signed content is not the signature of an image: ${reason}`,
  );

/**
 * Verifies the signer, and then that the message is about this digest. The identity is not compared: mirrors
 * have other names.
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
 * The reason why a node refuses a signature; undefined if it accepts it (containers-policy.json(5),
 * sigstoreSigned with one key): RSA PKCS #1 v1.5 or ECDSA with SHA-256, or Ed25519, over the payload.
 */
export function findSignatureProblem(
  { payload, signature }: SimpleSignature,
  { digest, image, key, identity }: Signed,
): string | undefined {
  const decoded = decodeBase64(signature);
  if (!decoded) return 'its signature is not base64';
  if (!isSignedBy(payload, decoded, key)) return 'it is by another key';
  try {
    const statement = parseReleaseStatement(payload, COSIGN);
    if (statement.digest !== digest) return `it is for ${statement.digest}`;
    return findIdentityProblem(parseReference(statement.identity), image, identity);
  } catch (error) {
    if (error instanceof SealiftError) return error.message;
    throw error;
  }
}

/**
 * The default, and a remapped identity, compare whole references: a name without tag, as cosign makes it,
 * matches no image. Of images by digest, the repository is compared.
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

const ENVELOPE = record(
  {
    payload: TEXT,
    payloadType: oneOf(STATEMENT),
    signatures: list(record({ sig: TEXT }, LEFT_OUT)),
  },
  LEFT_OUT,
);
const BUNDLE = record({ dsseEnvelope: ENVELOPE }, LEFT_OUT);

const IN_TOTO = record(
  {
    predicateType: oneOf(IMAGE_SIGNATURE),
    subject: list(record({ digest: mapping(TEXT) }, LEFT_OUT)),
  },
  LEFT_OUT,
);

/**
 * True if a bundle (sigstore protobuf-specs, bundle v0.3) has an envelope (DSSE v1) that this key signed with
 * a statement (in-toto v1) of cosign about this image. Logs and time stamps are not checked.
 */
export function isBundleFor(
  bundle: Uint8Array,
  { digest, key }: { readonly digest: Digest; readonly key: KeyObject },
): boolean {
  const envelope = ifFaultless(decodeJson(BUNDLE, bundle))?.dsseEnvelope;
  if (!envelope) return false;
  const body = Buffer.from(envelope.payload, 'base64');
  const signed = encodeSigned(body);
  const isByKey = envelope.signatures
    .slice(0, MOST_SIGNATURES)
    .some(({ sig }) => isSignedBy(signed, Buffer.from(sig, 'base64'), key));
  if (!isByKey) return false;
  const { subject = [] } = ifFaultless(decodeJson(IN_TOTO, body)) ?? {};
  return subject.some((one) => one.digest['sha256'] === hexOf(digest));
}

const MOST_SIGNATURES = 16;

/** DSSE protocol.md, "PAE". */
const encodeSigned = (body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${STATEMENT.length} ${STATEMENT} ${body.length} `), body]);
