import { constants, createHash, verify, type KeyObject } from 'node:crypto';
import { withoutUndefined } from '../base/lists.ts';
import { malformed, openCursor, takeInteger, type Cursor } from './packets.ts';

/** A signature packet of version 3 or 4. Times are seconds since 1970. */
export type SignaturePacket = {
  /** RFC 4880 5.2.1: the kind of content that is signed. */
  readonly type: number;
  readonly created: number;
  /** Seconds of validity after `created`; absent: forever. */
  readonly validFor?: number;
  /** Lower-case hex; absent if the packet omits it. */
  readonly issuer?: string;
  /** Upper-case hex; absent if the packet has the key id alone. */
  readonly issuerFingerprint?: string;
  /** Seconds of a key's validity after its creation; absent: forever. */
  readonly keyValidFor?: number;
  /** Permitted uses of a key; absent if the signature does not limit them. */
  readonly keyFlags?: number;
  /** Reason why the signature cannot be checked; absent if it can. */
  readonly unsupported?: string;
  readonly hash: keyof typeof HASHES;
  /** Bytes hashed after the content. */
  readonly trailer: Buffer;
  /** The first 16 bits of the digest. */
  readonly digestStart: Buffer;
  /** RSA signature without leading zeros. */
  readonly value: Buffer;
};

/** RFC 4880 5.2.1. */
export const SIGNATURE = {
  binaryDocument: 0x00,
  /** Certifications of a name by its key, and a key's signature over itself. */
  statements: [0x10, 0x11, 0x12, 0x13, 0x1f] as readonly number[],
  keyRevocation: 0x20,
  certificationRevocation: 0x30,
} as const;

/** RFC 4880 5.2.3.21: may sign data. */
export const MAY_SIGN = 0x02;

/** RFC 4880 9.1: RSA (encrypt or sign), RSA (sign only). */
export const RSA: readonly number[] = [1, 3];

/** RFC 4880 9.4: digests without known collisions. SHA-1 and older ones are excluded. */
const HASHES = { 8: 'sha256', 9: 'sha384', 10: 'sha512' } as const;

const isHash = (id: number): id is keyof typeof HASHES => id in HASHES;

export function parseSignature(body: Buffer): SignaturePacket {
  const cursor = openCursor(body, 'a signature packet');
  const version = cursor.number(1);
  if (version === 3) return parseVersion3(cursor);
  if (version === 4) return parseVersion4(cursor, body);
  return { ...UNREADABLE, unsupported: `it is a signature of version ${version}` };
}

const UNREADABLE: SignaturePacket = {
  type: -1,
  created: 0,
  hash: 8,
  trailer: Buffer.alloc(0),
  digestStart: Buffer.alloc(0),
  value: Buffer.alloc(0),
};

/** RFC 4880 5.2.2: only type and time are hashed after the content. */
function parseVersion3(cursor: Cursor): SignaturePacket {
  if (cursor.number(1) !== 5) throw malformed('a signature packet of version 3 hashes 5 bytes');
  const trailer = cursor.take(5);
  const issuer = cursor.take(8).toString('hex');
  const algorithms = cursor.take(2);
  return {
    type: trailer.readUInt8(0),
    created: trailer.readUInt32BE(1),
    issuer,
    trailer,
    ...parseValue(cursor, algorithms),
  };
}

/** RFC 4880 5.2.3, 5.2.4: after the content, all up to the end of the hashed subpackets, and its length. */
function parseVersion4(cursor: Cursor, body: Buffer): SignaturePacket {
  const type = cursor.number(1);
  const algorithms = cursor.take(2);
  const hashed = cursor.take(cursor.number(2));
  const unhashed = cursor.take(cursor.number(2));
  const head = body.subarray(0, 6 + hashed.length);
  const end = Buffer.from([4, 0xff, 0, 0, 0, 0]);
  end.writeUInt32BE(head.length, 2);
  const signed = parseSubpackets(hashed);
  const { issuer } = parseSubpackets(unhashed);
  return {
    type,
    trailer: Buffer.concat([head, end]),
    ...withoutUndefined({ issuer }),
    created: 0,
    ...(signed.created === undefined && { unsupported: 'it does not state when it was made' }),
    ...signed,
    ...parseValue(cursor, algorithms),
  };
}

function parseValue(
  cursor: Cursor,
  algorithms: Buffer,
): Pick<SignaturePacket, 'hash' | 'digestStart' | 'value' | 'unsupported'> {
  const [algorithm, hash] = [algorithms.readUInt8(0), algorithms.readUInt8(1)];
  const digestStart = cursor.take(2);
  if (!RSA.includes(algorithm)) {
    const unsupported = `its public-key algorithm ${algorithm} is not RSA`;
    return { hash: 8, digestStart, value: cursor.rest(), unsupported };
  }
  const value = takeInteger(cursor);
  if (!cursor.isAtEnd()) throw malformed('a signature packet continues past its signature');
  if (isHash(hash)) return { hash, digestStart, value };
  const unsupported = `its hash algorithm ${hash} is not SHA-256, SHA-384 or SHA-512`;
  return { hash: 8, digestStart, value, unsupported };
}

type Subpackets = Partial<
  Pick<
    SignaturePacket,
    | 'created'
    | 'validFor'
    | 'issuer'
    | 'issuerFingerprint'
    | 'keyValidFor'
    | 'keyFlags'
    | 'unsupported'
  >
>;

/** RFC 4880 5.2.3.1: subpackets without effect here, even if marked as critical. */
const WITHOUT_EFFECT: readonly number[] = [4, 7, 11, 21, 22, 23, 24, 25, 26, 28, 29, 30, 32, 34];

/** RFC 4880 5.2.3.1: if a subpacket appears twice, the last one counts. */
function parseSubpackets(bytes: Buffer): Subpackets {
  const cursor = openCursor(bytes, 'a list of subpackets');
  let found: Subpackets = {};
  while (!cursor.isAtEnd()) {
    const body = cursor.take(takeLength(cursor));
    const kind = body[0] ?? 0;
    found = { ...found, ...explainSubpacket(kind & 0x7f, kind > 0x7f, body.subarray(1)) };
  }
  return found;
}

function takeLength(cursor: Cursor): number {
  const first = cursor.number(1);
  if (first < 192) return first;
  return first === 255 ? cursor.number(4) : ((first - 192) << 8) + cursor.number(1) + 192;
}

function explainSubpacket(kind: number, isCritical: boolean, body: Buffer): Subpackets {
  const cursor = openCursor(body, 'a subpacket');
  switch (kind) {
    case 2:
      return { created: cursor.number(4) };
    case 3:
      return { validFor: cursor.number(4) };
    case 9:
      return { keyValidFor: cursor.number(4) };
    case 16:
      return { issuer: cursor.take(8).toString('hex') };
    case 27:
      return { keyFlags: cursor.number(1) };
    case 33:
      return explainFingerprint(body);
    default:
      return isCritical && !WITHOUT_EFFECT.includes(kind)
        ? { unsupported: `its critical subpacket ${kind} is unknown` }
        : {};
  }
}

/** RFC 9580 5.2.3.35: the fingerprint of a key of version 4 has 20 bytes; the last 8 are the key's id. */
const explainFingerprint = (body: Buffer): Subpackets =>
  body[0] === 4 && body.length === 21
    ? {
        issuer: body.subarray(-8).toString('hex'),
        issuerFingerprint: body.subarray(1).toString('hex').toUpperCase(),
      }
    : {};

/** True if a key made a signature over this content. Never throws. */
export function isSignedBy(
  key: KeyObject,
  content: readonly Uint8Array[],
  { unsupported, hash, trailer, digestStart, value }: SignaturePacket,
): boolean {
  if (unsupported !== undefined) return false;
  const data = Buffer.concat([...content, trailer]);
  const name = HASHES[hash];
  const digest = createHash(name).update(data).digest();
  if (!digest.subarray(0, 2).equals(digestStart)) return false;
  const size = Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
  if (value.length > size) return false;
  const padded = Buffer.concat([Buffer.alloc(size - value.length), value]);
  try {
    return verify(name, data, { key, padding: constants.RSA_PKCS1_PADDING }, padded);
  } catch {
    return false; // OpenSSL takes neither such a key nor such a number
  }
}

/** True if a signature has expired. `now` is in seconds since 1970. */
export const isExpired = ({ created, validFor = 0 }: SignaturePacket, now: number): boolean =>
  validFor !== 0 && created + validFor <= now;
