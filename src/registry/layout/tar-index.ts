import { closeSync, fstatSync, readSync } from 'node:fs';
import { openToReadSync } from '../../base/disk/open-file.ts';
import { IntegrityError } from '../../base/errors.ts';

/** A regular file in a tar, which is not compressed: `size` bytes from `offset`. */
export type TarMember = {
  /** As the tar has it, without `./` in front. */
  readonly name: string;
  readonly offset: number;
  readonly size: number;
  /** Seconds since 1970. */
  readonly modified: number;
};

const BLOCK = 512;

/** Bytes read at once: more where headers of small members follow each other, few behind a body that is skipped. */
const WINDOW = { least: 1 << 12, most: 1 << 20 };

/** Far larger than the extended headers of any name that a file system allows. */
const LARGEST_EXTENSION = 1 << 20;

/** PATH_MAX of Linux. */
const LONGEST_NAME = 4096;

/**
 * Lists the regular files of a tar (POSIX ustar and pax, GNU) by its headers alone, so that the cost
 * does not depend on the size of the files. Other members are left out.
 */
export function* indexTar(path: string): Generator<TarMember> {
  const file = openToReadSync(path);
  try {
    yield* readMembers({ path, size: fstatSync(file).size, read: createWindow(file) });
  } finally {
    closeSync(file);
  }
}

/** Reads bytes of a tar; fewer at its end. The result is valid until the next call. */
type Read = (offset: number, size: number) => Buffer;
type Tar = { readonly path: string; readonly size: number; readonly read: Read };

function createWindow(file: number): Read {
  const window = Buffer.allocUnsafe(WINDOW.most);
  let start = 0;
  let end = 0;
  let wanted = WINDOW.least;
  return (offset, size) => {
    if (offset < start || offset + size > end) {
      const isNext = offset <= end;
      wanted = isNext ? Math.min(2 * wanted, WINDOW.most) : WINDOW.least;
      start = offset;
      end = offset + readFully(file, window.subarray(0, Math.max(wanted, size)), offset);
    }
    return window.subarray(offset - start, Math.min(end, offset + size) - start);
  };
}

function readFully(file: number, buffer: Buffer, offset: number): number {
  let done = 0;
  while (done < buffer.length) {
    const count = readSync(file, buffer, done, buffer.length - done, offset + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** Values of an extended header, which replace those of the member behind it. */
type Extension = { readonly name?: string; readonly size?: number };

function* readMembers(tar: Tar): Generator<TarMember> {
  let extension: Extension = {};
  for (let at = 0; ;) {
    const header = tar.read(at, BLOCK);
    if (header.length < BLOCK) throw damaged(tar, 'ends without the mark of its end');
    if (header[0] === 0 && header.every((byte) => byte === 0)) return;
    checkHeader(tar, header, at);
    const type = header.toString('latin1', 156, 157);
    const size = requireSize(tar, extension.size ?? readNumber(header, 124, 12), at);
    const offset = at + BLOCK;
    if (EXTENSIONS.has(type))
      extension = { ...extension, ...readExtension(tar, { type, offset, size }) };
    else {
      const name = (extension.name ?? readName(header)).replace(/^(?:\.\/)+/, '');
      if (name.length > LONGEST_NAME) throw damaged(tar, `has a name of ${name.length} characters`);
      const modified = readNumber(header, 136, 12);
      if (REGULAR.has(type)) yield { name, offset, size, modified };
      extension = {};
    }
    at = offset + Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** A size below zero would lead back to members that were read. */
function requireSize(tar: Tar, size: number, at: number): number {
  if (!Number.isSafeInteger(size) || size < 0)
    throw damaged(tar, `has no size of the member at byte ${at}`);
  if (at + BLOCK + size > tar.size) throw damaged(tar, `ends inside the member at byte ${at}`);
  return size;
}

/** POSIX `0` and its older forms. */
const REGULAR: ReadonlySet<string> = new Set(['0', '\0', '7']);

/** pax for one member and for all that follow; GNU's long names of a member and of a link. */
const EXTENSIONS: ReadonlySet<string> = new Set(['x', 'g', 'L', 'K']);

type Part = { readonly type: string; readonly offset: number; readonly size: number };

function readExtension(tar: Tar, { type, offset, size }: Part): Extension {
  if (type === 'g' || type === 'K') return {};
  if (size > LARGEST_EXTENSION) throw damaged(tar, `has a name of ${size} bytes`);
  const bytes = tar.read(offset, size);
  if (type === 'L') return { name: cutAtNul(bytes.toString('utf8')) };
  const records = readRecords(bytes);
  const [name, length] = [records.get('path'), records.get('size')];
  return {
    ...(name !== undefined && { name }),
    ...(length !== undefined && { size: Number(length) }),
  };
}

/** POSIX pax: records `LENGTH KEY=VALUE\n`, whose length counts all of the record. */
function readRecords(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const length = Number(/^\d+(?= )/.exec(bytes.toString('latin1', at, at + 20))?.[0] ?? NaN);
    if (!(length > 0)) break;
    const record = bytes.toString('utf8', at, at + length - 1);
    const [, key = '', value = ''] = /^\d+ ([^=]*)=([^]*)$/.exec(record) ?? [];
    records.set(key, value);
    at += length;
  }
  return records;
}

function checkHeader(tar: Tar, header: Buffer, at: number): void {
  let sum = 8 * 0x20; // the checksum itself counts as blanks
  for (let index = 0; index < BLOCK; index++) {
    if (index < 148 || index >= 156) sum += header[index] ?? 0;
  }
  if (sum !== readNumber(header, 148, 8)) {
    throw damaged(tar, `has no header of a member at byte ${at}`);
  }
}

function readName(header: Buffer): string {
  const name = cutAtNul(header.toString('utf8', 0, 100));
  const isPosix = header.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isPosix ? cutAtNul(header.toString('utf8', 345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Octal digits, or GNU's form of large numbers: 0x80 and the number in base 256. */
function readNumber(header: Buffer, at: number, size: number): number {
  if (header[at] === 0x80) return header.readUIntBE(at + size - 6, 6);
  const digits = header.toString('latin1', at, at + size).replaceAll(/[\0 ]/g, '');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

const cutAtNul = (text: string): string => text.replace(/\0[^]*$/, '');

const damaged = ({ path }: Tar, problem: string): IntegrityError =>
  new IntegrityError('registry.tar-damaged', `${path} ${problem}`, {
    expected: 'a whole tar',
    hint: 'copy it again',
  });
