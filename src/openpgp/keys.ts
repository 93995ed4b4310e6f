import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { IntegrityError } from '../base/errors.ts';
import { maxOf } from '../base/lists.ts';
import { malformed, openCursor, parsePackets, TAG, takeInteger, type Packet } from './packets.ts';
import {
  isExpired,
  isSignedBy,
  MAY_SIGN,
  parseSignature,
  RSA,
  SIGNATURE,
  type SignaturePacket,
} from './signature.ts';

/** A primary key that a signature may name. Times are seconds since 1970. */
export type SigningKey = {
  /** Upper-case hex, 40 digits. */
  readonly fingerprint: string;
  /** Empty if the key has no name. */
  readonly name: string;
  readonly created: number;
  /** Absent: never. */
  readonly expires?: number;
  /** Reason why the key must not be used; absent if it may be. */
  readonly refused?: 'revoked' | 'not for signing' | 'not signed by itself';
  readonly key: KeyObject;
};

/** The last 16 digits of a fingerprint, in lower case, as signatures name their keys. */
export const keyIdOf = ({ fingerprint }: Pick<SigningKey, 'fingerprint'>): string =>
  fingerprint.slice(-16).toLowerCase();

/**
 * RFC 4880 11.1: public keys of version 4 with RSA, armoured or binary, one or several. Other content
 * (newer versions, other algorithms, subkeys) is skipped. Statements of several copies of a key are
 * combined: a revocation in one copy revokes the key.
 *
 * @param now seconds since 1970
 * @throws IntegrityError `openpgp.malformed`, `openpgp.no-key`
 */
export function parseKeys(bytes: Uint8Array, now: number): SigningKey[] {
  const packets = parsePackets(removeArmour(Buffer.from(bytes)), 'the file with keys');
  const copies = new Map<string, { readonly raw: RawKey; readonly packets: Packet[][] }>();
  for (const [first, ...more] of splitAt(packets, TAG.publicKey)) {
    const raw = parseKey(first?.body ?? Buffer.alloc(0));
    if (!raw) continue;
    const known = copies.get(raw.fingerprint);
    if (known) known.packets.push(more);
    else copies.set(raw.fingerprint, { raw, packets: [more] });
  }
  const keys = [...copies.values()].map(({ raw, packets }) => readKey(raw, packets, now));
  if (keys.length > 0) return keys;
  throw new IntegrityError(
    'openpgp.no-key',
    'the file with keys has no RSA key of OpenPGP version 4',
    {
      hint: 'export the public key with: gpg --armor --export KEYID',
    },
  );
}

const BEGIN = '-----BEGIN PGP PUBLIC KEY BLOCK-----';
const END = '-----END PGP PUBLIC KEY BLOCK-----';

/** RFC 4880 6.2. The checksum is ignored: signatures prove the contents. */
function removeArmour(bytes: Buffer): Buffer {
  if (((bytes[0] ?? 0) & 0x80) !== 0) return bytes;
  const [, ...begun] = bytes.toString('latin1').split(BEGIN);
  const blocks = begun.filter((block) => block.includes(END)).map(readBlock);
  if (blocks.length === 0) throw malformed('the file with keys is neither armoured nor binary');
  return Buffer.concat(blocks);
}

/** Headers, a blank line, base64, and a checksum after an equals sign. */
function readBlock(block: string): Buffer {
  const lines = block.slice(0, block.indexOf(END)).split(/\r?\n/);
  const blank = lines.findIndex((line, at) => at > 0 && line.trim() === '');
  const body = lines.slice(blank + 1).filter((line) => !line.startsWith('='));
  return Buffer.from(body.join(''), 'base64');
}

/** Groups of packets, each beginning with a packet of this tag; packets before the first one are left out. */
function splitAt(packets: readonly Packet[], tag: number): Packet[][] {
  const groups: Packet[][] = [];
  for (const packet of packets) {
    if (packet.tag === tag) groups.push([]);
    groups.at(-1)?.push(packet);
  }
  return groups;
}

type RawKey = Pick<SigningKey, 'fingerprint' | 'created' | 'key'> & {
  /** The key packet in the form that is hashed. */
  readonly packet: Buffer;
};

/** Undefined if the key is not an RSA key of version 4, or its length is not trusted. */
function parseKey(body: Buffer): RawKey | undefined {
  const cursor = openCursor(body, 'a key packet');
  if (cursor.number(1) !== 4) return undefined;
  const created = cursor.number(4);
  if (!RSA.includes(cursor.number(1))) return undefined;
  const [n, e] = [takeInteger(cursor), takeInteger(cursor)];
  if (n.length < 256 || n.length > 1024 || e.length > 8) return undefined;
  const packet = frame(0x99, body);
  const fingerprint = createHash('sha1').update(packet).digest('hex').toUpperCase();
  const jwk = { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') };
  return { packet, created, fingerprint, key: createPublicKey({ key: jwk, format: 'jwk' }) };
}

/** RFC 4880 5.2.4: a key or a user ID in the form that is hashed, with its length in 2 or 4 bytes. */
function frame(mark: 0x99 | 0xb4, body: Buffer): Buffer {
  const head = Buffer.alloc(mark === 0x99 ? 3 : 5);
  head.writeUInt8(mark);
  head.writeUIntBE(body.length, 1, head.length - 1);
  return Buffer.concat([head, body]);
}

/** RFC 4880 11.1: a key with the signatures that state its permitted uses. */
function readKey(raw: RawKey, copies: readonly Packet[][], now: number): SigningKey {
  const { fingerprint, created, key } = raw;
  const userId = copies.flat().find(({ tag }) => tag === TAG.userId);
  const statements = readStatements(raw, copies, now);
  const { keyValidFor = 0 } = statements.last ?? {};
  const refused = findRefusal(statements);
  return {
    fingerprint,
    name: userId?.body.toString('utf8') ?? '',
    created,
    key,
    ...(keyValidFor !== 0 && { expires: created + keyValidFor }),
    ...(refused && { refused }),
  };
}

type Statements = { readonly isRevoked: boolean; readonly last?: SignaturePacket };

function findRefusal({ isRevoked, last }: Statements): SigningKey['refused'] {
  if (isRevoked) return 'revoked';
  if (!last) return 'not signed by itself';
  return ((last.keyFlags ?? MAY_SIGN) & MAY_SIGN) === 0 ? 'not for signing' : undefined;
}

/** The statements of a key about itself, in valid signatures; the newest one counts. */
function readStatements(
  { packet, key, fingerprint }: RawKey,
  copies: readonly Packet[][],
  now: number,
): Statements {
  const own = keyIdOf({ fingerprint });
  let isRevoked = false;
  let last: SignaturePacket | undefined;
  for (const { subject, signatures } of listSubjects(packet, copies)) {
    const made = signatures.filter(
      ({ issuer, ...one }) =>
        (issuer ?? own) === own && (isDoubtful(one) || isSignedBy(key, subject, one)),
    );
    isRevoked ||= made.some(({ type }) => type === SIGNATURE.keyRevocation);
    const revocations = made.filter(({ type }) => type === SIGNATURE.certificationRevocation);
    const withdrawn = maxOf(revocations.map(({ created }) => created));
    for (const one of made) {
      if (!SIGNATURE.statements.includes(one.type)) continue;
      if (one.created <= withdrawn || isExpired(one, now)) continue;
      if (!last || one.created >= last.created) last = one;
    }
  }
  return { isRevoked, ...(last && { last }) };
}

/** A revocation that cannot be checked, as with SHA-1, counts all the same: the key may be stolen. */
const isDoubtful = ({ type, unsupported }: Omit<SignaturePacket, 'issuer'>): boolean =>
  unsupported !== undefined &&
  (type === SIGNATURE.keyRevocation || type === SIGNATURE.certificationRevocation);

/** Largest user ID in bytes, as in GnuPG: each signature hashes it again. */
const MAX_NAME = 2048;

type Subject = { readonly subject: readonly Buffer[]; readonly signatures: SignaturePacket[] };

/** Signed subjects with their signatures: the key alone, then the key with each of its names. */
function listSubjects(packet: Buffer, copies: readonly Packet[][]): Iterable<Subject> {
  const alone: Subject = { subject: [packet], signatures: [] };
  const named = new Map<string, Subject>();
  for (const packets of copies) {
    let current = alone;
    for (const { tag, body } of packets) {
      if (tag === TAG.publicSubkey || tag === TAG.userAttribute) break;
      if (tag === TAG.signature) current.signatures.push(parseSignature(body));
      if (tag !== TAG.userId) continue;
      if (body.length > MAX_NAME)
        throw malformed(`a key has a user ID of more than ${MAX_NAME} bytes`);
      const name = body.toString('latin1');
      current = named.get(name) ?? { subject: [packet, frame(0xb4, body)], signatures: [] };
      named.set(name, current);
    }
  }
  return [alone, ...named.values()];
}
