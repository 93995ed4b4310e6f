import { inflateRawSync, inflateSync } from 'node:zlib';
import { IntegrityError } from '../base/errors.ts';
import { keyIdOf, type SigningKey } from './keys.ts';
import { malformed, openCursor, parsePackets, TAG, type Packet } from './packets.ts';
import {
  isExpired,
  isSignedBy,
  parseSignature,
  SIGNATURE,
  type SignaturePacket,
} from './signature.ts';

export type VerifiedMessage = {
  /** Exactly the signed bytes. */
  readonly content: Buffer;
  readonly key: SigningKey;
};

/** Bytes; a message in a signature store has less than a kilobyte. */
const MAX_SIZE = 1 << 20;

/**
 * RFC 4880 11.3: a one-pass signed message with one signature, compressed or not. No content
 * is returned before the signature is verified, and no byte may be left over.
 *
 * @param now seconds since 1970
 * @throws IntegrityError `openpgp.malformed`, `openpgp.unsupported`, `signature.untrusted-key`,
 * `signature.wrong`, `signature.in-future`, `signature.expired`, `signature.key-expired`, `signature.key-refused`
 */
export function verifySignedMessage(
  message: Uint8Array,
  keys: readonly SigningKey[],
  now: number,
): VerifiedMessage {
  if (message.length > MAX_SIZE) throw malformed(`the signature has more than ${MAX_SIZE} bytes`);
  const { content, signature } = parseMessage(Buffer.from(message));
  const { issuer = '', issuerFingerprint = issuer.toUpperCase() } = signature;
  const named = keys.filter((key) => keyIdOf(key) === issuer);
  if (named.length === 0) throw untrusted(issuerFingerprint, keys);
  if (signature.unsupported !== undefined) {
    throw new IntegrityError(
      'openpgp.unsupported',
      `the signature cannot be checked: ${signature.unsupported}`,
    );
  }
  const key = named.find(({ key }) => isSignedBy(key, [content], signature));
  if (!key) {
    throw new IntegrityError(
      'signature.wrong',
      `key ${issuer.toUpperCase()} did not sign this content`,
      { hint: 'download the signature again from where it was published' },
    );
  }
  checkTimes(signature, key, now);
  return { content, key };
}

/** Parses one packet of each kind, in order; the packets must agree with each other. */
function parseMessage(bytes: Buffer): {
  readonly content: Buffer;
  readonly signature: SignaturePacket;
} {
  const packets = unpack(parsePackets(bytes, 'the signature'));
  const [onePass, literal, last] = packets;
  const kinds = packets.map(({ tag }) => tag).join();
  if (!onePass || !literal || !last || kinds !== KINDS) {
    throw malformed('the signature is not an OpenPGP message with one signature');
  }
  const signature = parseSignature(last.body);
  const issuer = parseOnePass(onePass.body, last.body);
  if ((signature.issuer ?? issuer) !== issuer) {
    throw malformed(`the message announces key ${issuer}, but another key signed it`);
  }
  return { content: parseLiteral(literal.body), signature: { ...signature, issuer } };
}

const KINDS = [TAG.onePassSignature, TAG.literal, TAG.signature].join();

function unpack(packets: readonly Packet[]): readonly Packet[] {
  const [first, ...more] = packets;
  if (first?.tag !== TAG.compressed || more.length > 0) return packets;
  return parsePackets(inflate(first.body), 'the signature');
}

/** RFC 4880 5.6. No bytes may follow the compressed data. */
function inflate(body: Buffer): Buffer {
  const unpacker = { 1: inflateRawSync, 2: inflateSync }[body[0] ?? 0];
  if (!unpacker) throw malformed('the signature is compressed with neither ZIP nor ZLIB');
  const packed = body.subarray(1);
  let unpacked: Unpacked;
  try {
    unpacked = unpacker(packed, { maxOutputLength: MAX_SIZE, info: true }) as unknown as Unpacked;
  } catch (cause) {
    throw new IntegrityError('openpgp.malformed', 'the signature cannot be unpacked', { cause });
  }
  if (unpacked.engine.bytesWritten === packed.length) return unpacked.buffer;
  throw malformed('the signature has bytes after its compressed data');
}

/** Result of zlib with the option `info`. */
type Unpacked = { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };

/** RFC 4880 5.4: version, type, hash and public-key algorithm, key, and whether it is the last one. */
function parseOnePass(body: Buffer, signature: Buffer): string {
  const isVersion4 = signature[0] === 4;
  const type = signature[isVersion4 ? 1 : 2] ?? 0;
  const [algorithm = 0, hash = 0] = signature.subarray(isVersion4 ? 2 : 15);
  const announced = Buffer.from([3, type, hash, algorithm]);
  if (type !== SIGNATURE.binaryDocument)
    throw malformed('the signature is not a signature of a binary document');
  if (body.length === 13 && body.subarray(0, 4).equals(announced) && body[12] === 1) {
    return body.subarray(4, 12).toString('hex');
  }
  throw malformed('the signature differs from the announcement at the start of its message');
}

/** RFC 4880 5.9: format, name and time, which are not signed, and the content. */
function parseLiteral(body: Buffer): Buffer {
  const cursor = openCursor(body, 'a literal data packet');
  if (cursor.number(1) !== 0x62) throw malformed('the signed content is not binary');
  cursor.take(cursor.number(1));
  cursor.take(4);
  return cursor.rest();
}

function untrusted(issuer: string, keys: readonly SigningKey[]): IntegrityError {
  const trusted = [...new Set(keys.map(({ fingerprint }) => fingerprint))].join(', ');
  return new IntegrityError(
    'signature.untrusted-key',
    `the signature is by key ${issuer}, which is not trusted`,
    { expected: trusted, found: issuer },
  );
}

function checkTimes(signature: SignaturePacket, key: SigningKey, now: number): void {
  const named = `key ${key.fingerprint}`;
  if (key.refused !== undefined) {
    throw new IntegrityError('signature.key-refused', `${named} is ${key.refused}`);
  }
  if (key.expires !== undefined && key.expires <= now) {
    const message = `${named} expired at ${formatTime(key.expires)}`;
    throw new IntegrityError('signature.key-expired', message);
  }
  if (isExpired(signature, now)) {
    const end = signature.created + (signature.validFor ?? 0);
    throw new IntegrityError('signature.expired', `the signature expired at ${formatTime(end)}`);
  }
  checkFuture(signature, key, now);
  if (signature.created >= key.created) return;
  throw new IntegrityError(
    'signature.wrong',
    `the signature was made at ${formatTime(signature.created)}, before ${named} was created`,
  );
}

/** Seconds by which the clocks of the signer and of this machine may differ. */
const MAX_SKEW = 300;

function checkFuture(signature: SignaturePacket, key: SigningKey, now: number): void {
  const [what, created] =
    key.created > now + MAX_SKEW
      ? [`key ${key.fingerprint}`, key.created]
      : ['the signature', signature.created];
  if (created <= now + MAX_SKEW) return;
  throw new IntegrityError(
    'signature.in-future',
    `${what} was made at ${formatTime(created)}, but it is ${formatTime(now)} now`,
    { hint: 'if the clock of this machine is wrong, correct it' },
  );
}

const formatTime = (seconds: number): string => new Date(seconds * 1000).toISOString();
