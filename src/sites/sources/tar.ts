import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PassThrough, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract, type Header } from 'tar-stream';
import { requireSize } from '../../base/decode/limits.ts';
import { createFile, openToRead } from '../../base/disk/open-file.ts';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import {
  MAX_FILE,
  refuseBomb,
  refuseManyMembers,
  type MemberSource,
  type SiteMember,
} from './list.ts';

/* Owns the reading of .tar and .tar.gz archives. */

export type TarOptions = {
  /** True if it is packed with gzip. */
  readonly packed: boolean;
  readonly signal: AbortSignal;
};

type TarEntry = AsyncIterable<Buffer> & {
  readonly header: Header & { readonly byteOffset: number };
  readonly resume: () => unknown;
};

/** The file from which contents are read, and the position for the next content of a .tar.gz. */
type Contents = { readonly file: FileHandle; end: number };

const CHUNK_SIZE = 1 << 20;

/** Old tars without a `ustar` magic are read, too; their checksum must still be right. */
const TAR_OPTIONS = { allowUnknownFormat: true, highWaterMark: CHUNK_SIZE };

/**
 * Reads the members of a tar (POSIX pax, GNU). Contents of a plain tar are read in place when they
 * are asked for. Gzip cannot be entered in the middle, so the small files of a .tar.gz are stored in
 * a temporary file, private and without a name.
 */
export async function readTar(path: string, options: TarOptions): Promise<MemberSource> {
  const contents: Contents = {
    file: options.packed ? await openUnnamed() : await openToRead(path),
    end: 0,
  };
  try {
    return {
      shownAs: path,
      rootName: basename(path).replace(/\.(tar|tgz|tar\.gz)$/i, ''),
      members: await readMembers(path, contents, options),
      close: () => contents.file.close(),
    };
  } catch (error) {
    await contents.file.close();
    throw error;
  }
}

const openUnnamed = (): Promise<FileHandle> =>
  useTemporaryFolder((folder) => createFile(join(folder, 'members')));

async function readMembers(
  path: string,
  contents: Contents,
  options: TarOptions,
): Promise<SiteMember[]> {
  const tar = extract(TAR_OPTIONS);
  const feeding = feed(tar, path, options);
  const failure = feeding.then(
    () => undefined,
    (error: unknown) => error,
  );
  const members: SiteMember[] = [];
  try {
    for await (const entry of tar as AsyncIterable<TarEntry>) {
      requireSize(entry.header, (cause) => damagedError(path, cause));
      members.push(await toMember(entry, contents, options.packed));
      refuseManyMembers(members.length, path);
    }
    await feeding;
    return members;
  } catch (error) {
    tar.destroy();
    const cause = error instanceof SealiftError ? error : ((await failure) ?? error);
    options.signal.throwIfAborted();
    throw cause instanceof SealiftError ? cause : damagedError(path, cause);
  }
}

async function feed(tar: Extract, path: string, { packed, signal }: TarOptions): Promise<void> {
  try {
    const source = createReadStream(path, { highWaterMark: CHUNK_SIZE });
    const unpacking = packed ? createGunzip({ chunkSize: CHUNK_SIZE }) : new PassThrough();
    const watch = new Transform({
      transform(chunk: Buffer, _, done) {
        unpacked += chunk.length;
        try {
          if (packed) refuseBomb(source.bytesRead, unpacked, path);
          done(null, chunk);
        } catch (error) {
          done(error as Error);
        }
      },
    });
    let unpacked = 0;
    await pipeline(source, unpacking, watch, tar, { signal });
  } catch (error) {
    tar.destroy(error as Error);
    throw error;
  }
}

async function toMember(entry: TarEntry, contents: Contents, packed: boolean): Promise<SiteMember> {
  const { name, size, byteOffset } = entry.header;
  const kind = kindOf(entry.header);
  const member = { path: name, kind, size };
  if (!packed || kind !== 'file' || size > MAX_FILE) {
    entry.resume();
    return { ...member, read: () => readAt(contents.file, byteOffset, size) };
  }
  const start = contents.end;
  for await (const chunk of entry) {
    await contents.file.write(chunk, 0, chunk.length, contents.end);
    contents.end += chunk.length;
  }
  return { ...member, read: () => readAt(contents.file, start, size) };
}

async function readAt(file: FileHandle, offset: number, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  const { bytesRead } = await file.read(bytes, 0, size, offset);
  if (bytesRead === size) return bytes;
  throw new ConfigError('sites.changed', 'the archive changed while the sites were read', {
    hint: 'run the same command again',
  });
}

function kindOf({ type, pax }: Header): SiteMember['kind'] {
  if (type === 'directory') return 'folder';
  if (type === 'symlink') return { other: 'is a symbolic link' };
  if (type === 'link') return { other: 'is a hard link' };
  if (type !== 'file' && type !== 'contiguous-file')
    return { other: 'is neither a file nor a folder' };
  // GNU tar manual, D.2: the content that the tar holds for such a file is not simply its bytes.
  const isSparse = Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'));
  return isSparse ? { other: 'is a sparse file' } : 'file';
}

const damagedError = (path: string, cause: unknown): ConfigError =>
  new ConfigError(
    'sites.damaged',
    `${path} is not a complete tar archive: ${(cause as Error).message}`,
    {
      cause,
      hint: 'create the archive again',
    },
  );
