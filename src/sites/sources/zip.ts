import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { crc32, inflateRaw } from 'node:zlib';
import {
  Entry,
  fromRandomAccessReaderPromise,
  getFileNameLowLevel,
  RandomAccessReader,
  type ZipFile,
} from 'yauzl';
import { openToRead } from '../../base/disk/open-file.ts';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import { printable } from '../../base/text/words.ts';
import { type MemberSource, type SiteMember, MAX_FILE, refuseManyMembers } from './list.ts';

/* Owns the reading of .zip archives. */

/** The parts of a member that are kept: yauzl's own Entry holds three buffers of a kilobyte. */
type Kept = Pick<
  Entry,
  | 'compressedSize'
  | 'uncompressedSize'
  | 'compressionMethod'
  | 'crc32'
  | 'relativeOffsetOfLocalHeader'
>;

type Archive = { readonly path: string; readonly file: FileHandle; readonly zip: ZipFile };

const inflate = promisify(inflateRaw);

/**
 * Reads the members of a .zip (APPNOTE 6.3.10, with zip64), stored or deflated. Reads only the
 * central directory; contents are read when they are asked for.
 */
export async function readZip(path: string, signal: AbortSignal): Promise<MemberSource> {
  const file = await openToRead(path);
  try {
    const members = await readDirectory({ path, file, zip: await openZip(path, file) }, signal);
    return {
      shownAs: path,
      rootName: basename(path).replace(/\.zip$/i, ''),
      members,
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Names are decoded and sizes checked here: yauzl would reject the whole archive for one bad member. */
async function openZip(path: string, file: FileHandle): Promise<ZipFile> {
  const options = { autoClose: false, decodeStrings: false, validateEntrySizes: false };
  try {
    const { size } = await file.stat();
    return await fromRandomAccessReaderPromise(new FileReader(file), size, options);
  } catch (cause) {
    throw damagedError(path, cause);
  }
}

/** Replaces yauzl's reader, which throws outside of promises if an archive names a position above 2^53. */
class FileReader extends RandomAccessReader {
  readonly #file: FileHandle;

  constructor(file: FileHandle) {
    super();
    this.#file = file;
  }

  // eslint-disable-next-line max-params -- as yauzl calls it
  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, bytesRead?: number) => void,
  ): void {
    this.#file.read(buffer, offset, length, position).then(({ bytesRead }) => {
      callback(null, bytesRead);
    }, callback);
  }
}

async function readDirectory(archive: Archive, signal: AbortSignal): Promise<SiteMember[]> {
  const { path, file, zip } = archive;
  refuseManyMembers(zip.entryCount, path);
  const members: SiteMember[] = [];
  let packed = 0;
  try {
    for await (const entry of zip.eachEntry()) {
      signal.throwIfAborted();
      members.push(toMember(archive, entry));
      packed += entry.compressedSize;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw damagedError(path, cause);
  }
  if (packed > (await file.stat()).size) throw overlapError(path);
  return members;
}

function toMember(archive: Archive, entry: Entry): SiteMember {
  const path = getFileNameLowLevel(
    entry.generalPurposeBitFlag,
    entry.fileNameRaw,
    entry.extraFields,
    true,
  );
  const { compressedSize, uncompressedSize, compressionMethod, relativeOffsetOfLocalHeader } =
    entry;
  const kept = {
    compressedSize,
    uncompressedSize,
    compressionMethod,
    crc32: entry.crc32,
    relativeOffsetOfLocalHeader,
  };
  return {
    path,
    kind: kindOf(entry, path),
    size: uncompressedSize,
    read: () => readContent(archive, kept, path),
  };
}

/** APPNOTE 4.4.15: the upper half of the attributes is a Unix mode if a Unix system packed it. */
function kindOf(entry: Entry, path: string): SiteMember['kind'] {
  const type = (entry.externalFileAttributes >>> 16) & 0o170000;
  if (type === 0o120000) return { other: 'is a symbolic link' };
  if (![0, 0o100000, 0o040000].includes(type)) return { other: 'is a device, a pipe or a socket' };
  if (path.endsWith('/') || type === 0o040000) return 'folder';
  if (entry.isEncrypted()) return { other: 'is encrypted' };
  if (entry.compressionMethod === 0 || entry.compressionMethod === 8) return 'file';
  return { other: `is compressed by method ${entry.compressionMethod}, and only deflate is read` };
}

async function readContent(archive: Archive, kept: Kept, path: string): Promise<Uint8Array> {
  const shownAs = `${archive.path}/${printable(path)}`;
  // Deflate adds at most 5 bytes to 16 KiB (RFC 1951 3.2.4), so this is never an honest file.
  if (kept.compressedSize > 2 * MAX_FILE)
    throw damagedMember(shownAs, 'it is larger packed than unpacked');
  try {
    const packed = await readPacked(archive, kept, shownAs);
    const bytes = kept.compressionMethod === 0 ? packed : await unpack(packed, kept);
    if (bytes.length !== kept.uncompressedSize) {
      throw damagedMember(
        shownAs,
        `it should have ${kept.uncompressedSize} bytes, but has ${bytes.length}`,
      );
    }
    if (crc32(bytes) !== kept.crc32) throw damagedMember(shownAs, 'its checksum is wrong');
    return bytes;
  } catch (cause) {
    if (cause instanceof SealiftError) throw cause;
    throw damagedMember(shownAs, (cause as Error).message, cause);
  }
}

/** Stops when the declared size is exceeded. */
async function unpack(packed: Uint8Array, { uncompressedSize }: Kept): Promise<Buffer> {
  try {
    return await inflate(packed, { maxOutputLength: Math.max(1, uncompressedSize) });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw cause;
    throw new Error(`it should have ${uncompressedSize} bytes, but has more`, { cause });
  }
}

async function readPacked({ zip, file }: Archive, kept: Kept, shownAs: string): Promise<Buffer> {
  const entry = Object.assign(new Entry(), kept);
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true });
  const packed = Buffer.alloc(kept.compressedSize);
  const { bytesRead } = await file.read(packed, 0, packed.length, fileDataStart);
  if (bytesRead !== packed.length) throw damagedMember(shownAs, 'the archive ends inside it');
  return packed;
}

const damagedMember = (shownAs: string, reason: string, cause?: unknown): ConfigError =>
  new ConfigError('sites.damaged', `${shownAs} cannot be unpacked: ${reason}`, {
    cause,
    hint: 'make the archive again',
  });

const damagedError = (path: string, cause: unknown): ConfigError =>
  new ConfigError('sites.damaged', `${path} is not a complete .zip: ${(cause as Error).message}`, {
    cause,
    hint: 'make the archive again',
  });

const overlapError = (path: string): ConfigError =>
  new ConfigError('sites.too-large', `${path} has members that share the same bytes`, {
    hint: 'do not use this archive: it is made to unfold without end',
  });
