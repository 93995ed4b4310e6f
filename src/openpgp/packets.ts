import { IntegrityError } from '../base/errors.ts';

/** RFC 4880 4.3: the kinds of packets in signatures and keys. */
export const TAG = {
  signature: 2,
  onePassSignature: 4,
  publicKey: 6,
  compressed: 8,
  literal: 11,
  userId: 13,
  publicSubkey: 14,
  userAttribute: 17,
} as const;

export type Packet = { readonly tag: number; readonly body: Buffer };

/** A position in a run of bytes that never passes their end. */
export type Cursor = {
  readonly take: (length: number) => Buffer;
  /** A number of that many bytes, most significant first. */
  readonly number: (length: number) => number;
  readonly rest: () => Buffer;
  readonly isAtEnd: () => boolean;
};

export function openCursor(bytes: Buffer, what: string): Cursor {
  let at = 0;
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) {
      throw malformed(`${what} ends ${length - (bytes.length - at)} bytes too early`);
    }
    at += length;
    return bytes.subarray(at - length, at);
  };
  return {
    take,
    number: (length) => (length === 0 ? 0 : take(length).readUIntBE(0, length)),
    rest: () => take(bytes.length - at),
    isAtEnd: () => at === bytes.length,
  };
}

export const malformed = (message: string): IntegrityError =>
  new IntegrityError('openpgp.malformed', message);

/**
 * RFC 4880 4.2: packets in a row, in the old and the new format. Lengths that are not stated are
 * read in the two forms that signed messages use: up to the end, and in parts.
 */
export function parsePackets(bytes: Buffer, what: string): Packet[] {
  const cursor = openCursor(bytes, what);
  const packets: Packet[] = [];
  while (!cursor.isAtEnd()) packets.push(parsePacket(cursor, what));
  return packets;
}

function parsePacket(cursor: Cursor, what: string): Packet {
  const header = cursor.number(1);
  if ((header & 0x80) === 0) throw malformed(`${what} is not made of OpenPGP packets`);
  if ((header & 0x40) !== 0) {
    const tag = header & 0x3f;
    return { tag, body: takeNewFormat(cursor, tag) };
  }
  const [tag, lengthType] = [(header >> 2) & 0x0f, header & 3];
  if (lengthType < 3) return { tag, body: cursor.take(cursor.number(1 << lengthType)) };
  requireData(tag);
  return { tag, body: cursor.rest() };
}

/** RFC 4880 4.2.2: a length of one, two or five bytes; or parts, of which the last has such a length. */
function takeNewFormat(cursor: Cursor, tag: number): Buffer {
  const parts: Buffer[] = [];
  for (;;) {
    const first = cursor.number(1);
    if (first < 192) parts.push(cursor.take(first));
    else if (first < 224) parts.push(cursor.take(((first - 192) << 8) + cursor.number(1) + 192));
    else if (first === 255) parts.push(cursor.take(cursor.number(4)));
    else {
      requireData(tag);
      parts.push(cursor.take(2 ** (first & 0x1f)));
      continue;
    }
    return parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts);
  }
}

function requireData(tag: number): void {
  if (tag === TAG.compressed || tag === TAG.literal) return;
  throw malformed(`a packet with tag ${tag} does not state its length`);
}

/** RFC 4880 3.2: a number after its length in bits, leading zeros not counted. */
export function takeInteger(cursor: Cursor): Buffer {
  const bits = cursor.number(2);
  const bytes = cursor.take(Math.ceil(bits / 8));
  const found = bytes.length === 0 ? 0 : bytes.length * 8 - (Math.clz32(bytes[0] ?? 0) - 24);
  if (found === bits) return bytes;
  throw malformed(`a number should have ${bits} bits, but has ${found}`);
}
