import { IntegrityError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import { partOf, requireBytes, SECTOR_SIZE } from '../extent.ts';
import { decodeBoth32, encodeBoth32 } from '../volume/numbers.ts';

/** SUSP 4.1: two letters, a version, and up to 251 bytes of their own. */
export type SystemUseEntry = {
  readonly signature: string;
  readonly version: number;
  readonly data: Uint8Array;
};

/** SUSP 5.1: the place at which the entries continue. */
export type Continuation = {
  readonly sector: number;
  /** Bytes from the start of that sector. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
};

const HEADER_SIZE = 4;
const CONTINUATION_SIZE = 28;
/** As many as Linux follows (fs/isofs/rock.c, RR_MAX_CE_ENTRIES). */
const MAX_CONTINUATIONS = 32;

/** The entries up to the end of an area, its ST entry or its zero padding, CE included. Data are views. */
export function decodeSystemUse(area: Uint8Array): SystemUseEntry[] {
  const entries: SystemUseEntry[] = [];
  for (let at = 0; at + HEADER_SIZE <= area.length && area[at] !== 0;) {
    const signature = String.fromCharCode(area[at] ?? 0, area[at + 1] ?? 0);
    const length = area[at + 2] ?? 0;
    if (length < HEADER_SIZE) {
      throw new IntegrityError(
        'iso.malformed-entry',
        `system use entry ${JSON.stringify(signature)} has length ${length}, less than 4`,
      );
    }
    requireBytes(area, { at, size: length });
    if (signature === 'ST') break;
    const data = partOf(area, at + HEADER_SIZE, at + length);
    entries.push({ signature, version: area[at + 3] ?? 0, data });
    at += length;
  }
  return entries;
}

/** True if an entry has the place of further entries (SUSP 5.1). */
export const isContinuation = ({ signature }: SystemUseEntry): boolean => signature === 'CE';

export function encodeSystemUse(entries: readonly SystemUseEntry[]): Uint8Array {
  return Buffer.concat(entries.map(encodeEntry));
}

/** All entries of a record, those in continuation areas included and the CE entries left out. */
export async function readSystemUse(
  area: Uint8Array,
  read: (continuation: Continuation) => Promise<Uint8Array>,
): Promise<SystemUseEntry[]> {
  const entries: SystemUseEntry[] = [];
  let current: Uint8Array | undefined = area;
  for (let areas = 0; current; areas += 1) {
    if (areas > MAX_CONTINUATIONS) {
      throw new IntegrityError(
        'iso.looping-continuation',
        `system use area continues more than ${MAX_CONTINUATIONS} times`,
      );
    }
    const found: SystemUseEntry[] = decodeSystemUse(current);
    append(
      entries,
      found.filter((entry) => !isContinuation(entry)),
    );
    const next = found.find(isContinuation);
    current = next && (await read(decodeContinuation(next)));
  }
  return entries;
}

/**
 * Splits entries over a record with `room` bytes and a continuation area. If they do not all fit, `inline` ends
 * with an unset CE entry: set it to `encodeContinuation` once the area has its place.
 */
export function placeSystemUse(
  entries: readonly SystemUseEntry[],
  room: number,
): { inline: Uint8Array; continuation: Uint8Array } {
  const encoded = entries.map(encodeEntry);
  const whole = Buffer.concat(encoded);
  if (whole.length <= room) return { inline: whole, continuation: new Uint8Array(0) };
  let kept = 0;
  let size = 0;
  for (const entry of encoded) {
    if (size + entry.length > room - CONTINUATION_SIZE) break;
    size += entry.length;
    kept += 1;
  }
  const continuation = Buffer.concat(encoded.slice(kept));
  if (room < CONTINUATION_SIZE || continuation.length > SECTOR_SIZE) {
    throw new RangeError(`system use entries of ${whole.length} bytes do not fit into ${room}`);
  }
  const placeholder = encodeContinuation(0, 0, continuation.length);
  return { inline: Buffer.concat([...encoded.slice(0, kept), placeholder]), continuation };
}

/** The CE entry, 28 bytes: `length` bytes from byte `offset` of `sector`. */
export function encodeContinuation(sector: number, offset: number, length: number): Uint8Array {
  const data = new Uint8Array(CONTINUATION_SIZE - HEADER_SIZE);
  encodeBoth32(data, 0, sector);
  encodeBoth32(data, 8, offset);
  encodeBoth32(data, 16, length);
  return encodeEntry({ signature: 'CE', version: 1, data });
}

export function decodeContinuation(entry: SystemUseEntry): Continuation {
  return {
    sector: decodeBoth32(entry.data, 0),
    offset: decodeBoth32(entry.data, 8),
    size: decodeBoth32(entry.data, 16),
  };
}

function encodeEntry(entry: SystemUseEntry): Uint8Array {
  const length = HEADER_SIZE + entry.data.length;
  if (length > 255 || entry.signature.length !== 2) {
    throw new RangeError(`system use entry "${entry.signature}" would take ${length} bytes`);
  }
  const bytes = new Uint8Array(length);
  bytes.set(Buffer.from(entry.signature, 'latin1'));
  bytes[2] = length;
  bytes[3] = entry.version;
  bytes.set(entry.data, HEADER_SIZE);
  return bytes;
}
