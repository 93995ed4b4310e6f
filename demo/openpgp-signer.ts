import {
  constants,
  createHash,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
import { deflateRawSync } from 'node:zlib';

type Hash = 'sha1' | 'sha256' | 'sha384' | 'sha512';

/** RFC 4880 9.4. */
const HASH_IDS: Readonly<Record<Hash, number>> = { sha1: 2, sha256: 8, sha384: 9, sha512: 10 };

export type KeyOptions = {
  /** RSA; absent: one of 2048 bits is made, for as long as the process lives. */
  readonly privateKey?: KeyObject;
  readonly name?: string;
  /** Seconds since 1970. */
  readonly created?: number;
  /** Seconds from its creation on. */
  readonly validFor?: number;
  /** RFC 4880 5.2.3.21; certify and sign where absent. */
  readonly flags?: number;
  readonly isRevoked?: boolean;
  /** Of its revocation; SHA-256 where absent. */
  readonly revocationHash?: Hash;
  /** Of its signature over itself. */
  readonly hash?: Hash;
  /** Seconds since 1970 of its signature over itself; its creation where absent. */
  readonly stated?: number;
};

export type MessageOptions = {
  readonly version?: 3 | 4;
  readonly hash?: Hash;
  /** Seconds since 1970. */
  readonly created?: number;
  /** Seconds from its creation on. */
  readonly validFor?: number;
  readonly isCompressed?: boolean;
  /** Kind of an empty subpacket that is marked as critical, in version 4 (RFC 4880 5.2.3.1). */
  readonly critical?: number;
};

/** A throw-away key, and what it signs. */
export type Signer = {
  /** Upper-case hex. */
  readonly fingerprint: string;
  /** The public key with a signature over itself, binary, as `gpg --export` writes it. */
  readonly publicKey: Buffer;
  /** A signed message (RFC 4880 11.3), as release signatures are. */
  readonly sign: (content: Uint8Array, options?: MessageOptions) => Buffer;
};

const CREATED = 1_700_000_000;

/** A key whose only use is that something signed can be made here. */
export function createSigner(options: KeyOptions = {}): Signer {
  const { created = CREATED, name = 'Throw-away key', hash: ownHash = 'sha256' } = options;
  const privateKey =
    options.privateKey ?? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const body = encodeKey(createPublicKey(privateKey), created);
  const framed = Buffer.concat([Buffer.from([0x99]), number(body.length, 2), body]);
  const fingerprint = createHash('sha1').update(framed).digest('hex').toUpperCase();
  const keyId = Buffer.from(fingerprint.slice(-16), 'hex');
  const makeSignature = (
    content: readonly Uint8Array[],
    head: Buffer,
    { hash, trailer }: { readonly hash: Hash; readonly trailer: Buffer },
  ): Buffer => {
    const data = Buffer.concat([...content, trailer]);
    const start = createHash(hash).update(data).digest().subarray(0, 2);
    const value = sign(hash, data, { key: privateKey, padding: constants.RSA_PKCS1_PADDING });
    return Buffer.concat([head, start, integer(value)]);
  };
  const signVersion4 = (
    content: readonly Uint8Array[],
    { type, hash, subpackets }: { type: number; hash: Hash; subpackets: readonly Buffer[] },
  ): Buffer => {
    const hashed = Buffer.concat(subpackets);
    const covered = Buffer.from([
      4,
      type,
      1,
      HASH_IDS[hash],
      ...number(hashed.length, 2),
      ...hashed,
    ]);
    const trailer = Buffer.concat([covered, Buffer.from([4, 0xff]), number(covered.length, 4)]);
    const issuer = subpacket(16, keyId);
    const head = Buffer.concat([covered, number(issuer.length, 2), issuer]);
    return makeSignature(content, head, { hash, trailer });
  };
  const ownFingerprint = subpacket(
    33,
    Buffer.concat([Buffer.from([4]), Buffer.from(fingerprint, 'hex')]),
  );
  const userId = Buffer.from(name);
  const certified = [framed, Buffer.from([0xb4]), number(userId.length, 4), userId];
  return {
    fingerprint,
    publicKey: Buffer.concat([
      packet(6, body),
      ...(options.isRevoked === true
        ? [
            packet(
              2,
              signVersion4([framed], {
                type: 0x20,
                hash: options.revocationHash ?? 'sha256',
                subpackets: [time(2, created)],
              }),
            ),
          ]
        : []),
      packet(13, userId),
      packet(
        2,
        signVersion4(certified, {
          type: 0x13,
          hash: ownHash,
          subpackets: [
            time(2, options.stated ?? created),
            subpacket(27, Buffer.from([options.flags ?? 0x03])),
            ...(options.validFor === undefined ? [] : [time(9, options.validFor)]),
          ],
        }),
      ),
    ]),
    sign(content, { version = 4, hash = 'sha256', isCompressed = true, ...times } = {}) {
      const { created: at = created + 60, validFor, critical } = times;
      const trailer = Buffer.concat([Buffer.from([0]), number(at, 4)]);
      const algorithms = Buffer.from([1, HASH_IDS[hash]]);
      const signature =
        version === 3
          ? makeSignature(
              [content],
              Buffer.concat([Buffer.from([3, 5]), trailer, keyId, algorithms]),
              { hash, trailer },
            )
          : signVersion4([content], {
              type: 0,
              hash,
              subpackets: [
                time(2, at),
                ownFingerprint,
                ...(validFor === undefined ? [] : [time(3, validFor)]),
                ...(critical === undefined ? [] : [subpacket(0x80 | critical, Buffer.of())]),
              ],
            });
      const onePass = Buffer.from([3, 0, HASH_IDS[hash], 1, ...keyId, 1]);
      const literal = Buffer.concat([Buffer.from('b\0'), number(at, 4), content]);
      const message = Buffer.concat([
        packet(4, onePass),
        packet(11, literal),
        packet(2, signature),
      ]);
      if (!isCompressed) return message;
      return Buffer.concat([Buffer.from([0xa3, 1]), deflateRawSync(message)]);
    },
  };
}

/** What a signer of releases says of an image (containers/image, atomic-signature.md). */
export const stateRelease = (digest: string, identity: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      critical: {
        image: { 'docker-manifest-digest': digest },
        type: 'atomic container signature',
        identity: { 'docker-reference': identity },
      },
      optional: { creator: 'a throw-away key' },
    }),
  );

/** RFC 4880 5.5.2: RSA of version 4. */
function encodeKey(key: KeyObject, created: number): Buffer {
  const { n = '', e = '' } = key.export({ format: 'jwk' });
  const numbers = [n, e].map((text) => integer(Buffer.from(text, 'base64url')));
  return Buffer.concat([Buffer.from([4]), number(created, 4), Buffer.from([1]), ...numbers]);
}

function number(value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
}

/** RFC 4880 3.2: no leading zeros, and the length in bits in front. */
function integer(bytes: Buffer): Buffer {
  let start = 0;
  while (bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  const bits = digits.length * 8 - (Math.clz32(digits[0] ?? 0) - 24);
  return Buffer.concat([number(bits, 2), digits]);
}

/** RFC 4880 4.2.1: an old packet with two bytes of length. */
const packet = (tag: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x80 | (tag << 2) | 1]), number(body.length, 2), body]);

const subpacket = (kind: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([body.length + 1, kind]), body]);

const time = (kind: number, seconds: number): Buffer => subpacket(kind, number(seconds, 4));
