import { IntegrityError } from '../base/errors.ts';

/** `mode` may lack the file type; `name` is written as it is given, a leading slash included. */
export type CpioMember = {
  readonly name: string;
  readonly mode: number;
  readonly data: Uint8Array;
};

const MAGIC = '070701';
const HEADER_SIZE = 110;
const TRAILER = 'TRAILER!!!';
const TYPE_MASK = 0o170000;
const REGULAR = 0o100000;

/**
 * A newc archive (cpio(5)) in the form that the kernel's initramfs reader needs: owner 0:0, mtime 0, one link
 * each, names and data padded with NUL to 4 bytes, members in the order given.
 */
export function encodeCpio(members: readonly CpioMember[]): Uint8Array {
  const parts = members.flatMap((member, index) => {
    const mode = (member.mode & TYPE_MASK) === 0 ? member.mode | REGULAR : member.mode;
    return encodeMember({ ...member, mode, inode: index + 1 });
  });
  const trailer = encodeMember({ name: TRAILER, mode: 0, data: new Uint8Array(), inode: 0 });
  return Buffer.concat([...parts, ...trailer]);
}

function encodeMember(member: CpioMember & { readonly inode: number }): Buffer[] {
  const name = Buffer.from(`${member.name}\0`);
  // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check
  const numbers = [member.inode, member.mode, 0, 0, 1, 0, member.data.length, 0, 0, 0, 0];
  const fields = [...numbers, name.length, 0].map((field) => field.toString(16).padStart(8, '0'));
  const header = Buffer.from(MAGIC + fields.join('').toUpperCase());
  return [
    header,
    name,
    padding(HEADER_SIZE + name.length),
    Buffer.from(member.data),
    padding(member.data.length),
  ];
}

const padding = (size: number): Buffer => Buffer.alloc((4 - (size % 4)) % 4);

/** Anything in an archive but a regular file: a directory, a link, a device. */
export type SpecialMember = Pick<CpioMember, 'name' | 'mode'>;

/**
 * Reads one archive from `start` on: its members, and the position after its trailer. Names end at their first
 * NUL (dracut-cpio pads them to align the data). `onMember` is called with the offset of each member before
 * it is read, and may throw.
 *
 * @throws IntegrityError `cpio.malformed`, `cpio.truncated`
 */
export function decodeCpio(
  bytes: Uint8Array,
  start: number,
  onMember?: (offset: number) => void,
): {
  readonly members: readonly CpioMember[];
  readonly special: readonly SpecialMember[];
  readonly end: number;
} {
  const members: CpioMember[] = [];
  const special: SpecialMember[] = [];
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = start; ;) {
    onMember?.(offset);
    const header = decodeHeader(buffer, offset);
    const dataStart = offset + align4(HEADER_SIZE + header.nameSize);
    const dataEnd = dataStart + header.dataSize;
    if (dataEnd > buffer.length) throw truncated(offset, dataEnd, buffer.length);
    const rawName = buffer.toString('utf8', offset + HEADER_SIZE, dataStart);
    const name = rawName.split('\0', 1)[0] ?? '';
    offset = Math.min(dataStart + align4(header.dataSize), buffer.length);
    if (name === TRAILER) return { members, special, end: offset };
    const { mode } = header;
    if ((mode & TYPE_MASK) !== REGULAR) special.push({ name, mode });
    else members.push({ name, mode, data: buffer.subarray(dataStart, dataEnd) });
  }
}

/** True if a newc archive (with or without checksums) starts here. */
export const isCpio = (bytes: Uint8Array, start: number): boolean =>
  /^07070[12]$/.test(Buffer.from(bytes.subarray(start, start + 6)).toString('latin1'));

function decodeHeader(
  buffer: Buffer,
  offset: number,
): { readonly mode: number; readonly dataSize: number; readonly nameSize: number } {
  if (offset + HEADER_SIZE > buffer.length) {
    throw truncated(offset, offset + HEADER_SIZE, buffer.length);
  }
  const text = buffer.toString('latin1', offset, offset + HEADER_SIZE);
  if (!/^07070[12][0-9A-Fa-f]{104}$/.test(text)) {
    throw new IntegrityError('cpio.malformed', `no newc header at byte ${offset} of the archive`);
  }
  const field = (index: number): number => parseInt(text.slice(6 + index * 8, 14 + index * 8), 16);
  return { mode: field(1), dataSize: field(6), nameSize: field(11) };
}

const align4 = (size: number): number => Math.ceil(size / 4) * 4;

const truncated = (offset: number, needed: number, size: number): IntegrityError =>
  new IntegrityError(
    'cpio.truncated',
    `archive member at byte ${offset} needs ${needed} bytes, but there are ${size}`,
    { expected: String(needed), found: String(size) },
  );

/** More than any archive that is searched here. */
const MOST_SEARCHED = 64;
const LONGEST_NAME = 4096;
const LARGEST_FOUND = 64 << 10;

/**
 * Finds a small member of the archive that a file begins with, without reading the others; undefined if it is not
 * there, or the file does not begin with an archive.
 *
 * @param read reads a range of the file, which may be shorter at the end
 */
export async function findCpioMember(
  wanted: string,
  read: (range: { readonly start: number; readonly size: number }) => Promise<Uint8Array>,
): Promise<Uint8Array | undefined> {
  let start = 0;
  for (let count = 0; count < MOST_SEARCHED; count++) {
    const head = Buffer.from(await read({ start, size: HEADER_SIZE }));
    if (head.length < HEADER_SIZE || !isCpio(head, 0)) return undefined;
    const { nameSize, dataSize } = decodeHeader(head, 0);
    if (nameSize > LONGEST_NAME) return undefined;
    const bytes = await read({ start: start + HEADER_SIZE, size: nameSize });
    const name = Buffer.from(bytes).toString('utf8').split('\0', 1)[0];
    const data = start + align4(HEADER_SIZE + nameSize);
    if (name === wanted) {
      return dataSize > LARGEST_FOUND ? undefined : read({ start: data, size: dataSize });
    }
    start = data + align4(dataSize);
  }
  return undefined;
}
