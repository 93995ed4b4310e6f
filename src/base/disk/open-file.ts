import { constants, openSync, writeFileSync, type Stats } from 'node:fs';
import { copyFile, open, rm, stat, type FileHandle } from 'node:fs/promises';
import { isErrno, DiskError } from '../errors.ts';
import { nameAside } from './aside.ts';
import { explainReadError, notReadable, notRegular, otherNames } from './disk-errors.ts';

/**
 * The only access to files. Others may write to the directories that we write to: a file opened
 * here for writing is a new file, or a regular file of our own that no link leads to.
 */

const { O_RDONLY, O_RDWR, O_WRONLY, O_CREAT, O_EXCL, O_APPEND } = constants;
const { O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY, COPYFILE_EXCL, COPYFILE_FICLONE_FORCE } = constants;

/**
 * Opens a file or a block device that a user named, also through a link. Never waits for a pipe's writer.
 *
 * @throws ConfigError `iso.unreadable` for anything else; the system's errors
 */
export async function openToRead(path: string): Promise<FileHandle> {
  const file = await open(path, O_RDONLY | O_NONBLOCK);
  return checking(file, async (stats) => {
    if (stats.isFile()) return;
    if (!stats.isBlockDevice()) throw notReadable(path, stats);
    await (await reopen(file, O_RDONLY)).close(); // a drive without a medium reports it only then
  });
}

/** Opens a file to read, for a thread that no other code waits for; does not wait for a pipe's writer. */
export const openToReadSync = (path: string): number => openSync(path, O_RDONLY | O_NONBLOCK);

/** Opens a path that was listed as a file: not a link that took its place. The caller checks its kind. */
export const openListed = (path: string): Promise<FileHandle> =>
  open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

/** The synchronous {@link openListed}, for files of some kilobytes that are many. */
export const openListedSync = (path: string): number =>
  openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

/** Opens a stream that another process opened for us, such as `/dev/fd/3`; its content is not cut off. */
export const openStream = (path: string): Promise<FileHandle> => open(path, O_WRONLY | O_APPEND);

/**
 * Makes a file, to read and write. Fails with EEXIST if the name is taken, even by a link.
 *
 * @param mode permission bits, less the umask; by default the owner's alone
 * @param more flags of open(2), such as O_DIRECT
 */
export const createFile = (path: string, mode = 0o600, more = 0): Promise<FileHandle> =>
  open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | more, mode);

/** The synchronous {@link createFile}. */
export const createFileSync = (path: string, mode = 0o600): number =>
  openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

export const fillFileSync = (file: number, data: string | Uint8Array): void => {
  writeFileSync(file, data);
};

/** Makes a file with this content and closes it; the content is on the disk when it resolves. */
export async function writeNewFile(
  path: string,
  data: string | Uint8Array,
  mode = 0o600,
): Promise<void> {
  const file = await createFile(path, mode);
  try {
    await file.writeFile(data);
    await file.sync();
  } finally {
    await file.close();
  }
}

export type OwnFileOptions = {
  /** Permission bits if it is made; by default the owner's alone. */
  readonly mode?: number;
  /** True if a missing file is made; default: yes. */
  readonly create?: boolean;
  /** True if everything is written at its end, even after others have moved the end. */
  readonly append?: boolean;
};

/**
 * Opens a file whose name others can guess, to read and write: a file that an earlier run left, or
 * a new one. Nothing is cut off, and nothing is written to a file that another user put there.
 *
 * @throws DiskError `file.not-regular` for links, pipes, devices and directories, `file.foreign` for a file
 * of another user, `file.other-names` for one with other hard links; the system's errors
 */
export async function openOwnFile(
  path: string,
  { mode = 0o600, create = true, append = false }: OwnFileOptions = {},
): Promise<FileHandle> {
  const more = (create ? O_CREAT : 0) | (append ? O_APPEND : 0);
  const flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | more;
  const file = await openRegular(path, flags, mode);
  return checking(file, async (stats) => {
    await requireOwn(path, stats);
    if (stats.nlink > 1) throw otherNames(path, stats.nlink);
  });
}

/**
 * Opens a file of our own that is written over in place, or a block device that has no other user.
 *
 * @throws errors of `openOwnFile`; ConfigError `iso.unreadable`; DiskError `device.in-use`; the
 * system's errors
 */
export async function openInPlace(path: string): Promise<FileHandle> {
  const found = await stat(path).catch((error: unknown) => {
    throw explainReadError(error, path);
  });
  if (!found.isBlockDevice()) return openOwnFile(path, { create: false });
  try {
    return await open(path, O_RDWR | O_EXCL); // open(2): EBUSY if it is mounted
  } catch (cause) {
    if (isErrno(cause, 'EACCES', 'EPERM')) throw cause;
    if (!isErrno(cause, 'EBUSY')) throw explainReadError(cause, path);
    throw new DiskError('device.in-use', `"${path}" is mounted or otherwise in use`, {
      cause,
      hint: 'unmount it',
    });
  }
}

/**
 * Opens a regular file that others may change, also through a link. @throws DiskError
 * `file.not-regular`; the system's errors
 */
export const openForeign = (path: string): Promise<FileHandle> =>
  openRegular(path, O_RDONLY | O_NONBLOCK);

/** Opens a regular file that others may change, but not through a link, and not a file with other names. */
export async function openForeignSole(path: string): Promise<FileHandle> {
  const file = await openRegular(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  return checking(file, ({ nlink }) =>
    nlink > 1 ? Promise.reject(otherNames(path, nlink)) : Promise.resolve(),
  );
}

/** Makes a new file that shares the blocks of another. Fails if the file system does not clone. */
export const cloneToNew = (from: string, to: string): Promise<void> =>
  copyFile(from, to, COPYFILE_FICLONE_FORCE | COPYFILE_EXCL);

/** A path at which an open file can be executed, and read by child processes, as long as it is open. */
export const pathOfOpen = (file: FileHandle): string => `/proc/${process.pid}/fd/${file.fd}`;

/** Opens an open file again (Linux alone has this), regardless of the current target of its name. */
export const reopen = (file: FileHandle, flags: number): Promise<FileHandle> =>
  open(`/proc/self/fd/${file.fd}`, flags);

/**
 * Reads a file at a path that other users can guess. Returns undefined if it does not exist, and refuses a
 * pipe instead of waiting for it.
 *
 * @param most of its bytes; default: all
 * @throws DiskError `file.not-regular`; the system's errors
 */
export const readRegularFile = (path: string, most?: number): Promise<Buffer | undefined> =>
  readChecked(path, () => Promise.resolve(), most);

/**
 * Reads a file whose content is trusted, so it must belong to this user. Returns undefined if it does not exist,
 * and refuses a pipe instead of waiting for it.
 *
 * @throws DiskError `file.not-regular`, `file.foreign` for a file of another user; the system's errors
 */
export const readOwnFile = (path: string): Promise<Buffer | undefined> =>
  readChecked(path, (stats) => requireOwn(path, stats));

/**
 * Opens our own directory, whose name others can guess: not a link.
 *
 * @param mode permission bits that it gets; default: unchanged
 * @throws DiskError `file.not-directory`, `file.foreign`
 */
export async function openOwnDirectory(path: string, mode?: number): Promise<FileHandle> {
  const directory = await openDirectory(path);
  return checking(directory, async (stats) => {
    await requireOwn(path, stats);
    if (mode !== undefined && (stats.mode & 0o777) !== mode) await directory.chmod(mode);
  });
}

/** @param follow true if a link may lead to it; default: no */
export async function openDirectory(path: string, { follow = false } = {}): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW));
  } catch (cause) {
    if (!isErrno(cause, 'ELOOP', 'ENOTDIR')) throw cause;
    throw new DiskError('file.not-directory', `"${path}" is not a directory`, {
      cause,
      expected: 'a directory, or nothing',
      found: 'a link, or a file',
      hint: 'remove it, or name another place',
    });
  }
}

async function readChecked(
  path: string,
  check: (stats: Stats) => Promise<void>,
  most?: number,
): Promise<Buffer | undefined> {
  try {
    const file = await openRegular(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    await checking(file, check);
    try {
      if (most === undefined) return await file.readFile();
      const { bytesRead, buffer } = await file.read(Buffer.alloc(most), 0, most, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

async function openRegular(path: string, flags: number, mode?: number): Promise<FileHandle> {
  try {
    const file = await open(path, flags, mode);
    return await checking(file, (stats) => {
      if (!stats.isFile()) throw notRegular(path);
      return Promise.resolve();
    });
  } catch (error) {
    // A link, a directory, a socket or a device without a driver.
    throw isErrno(error, 'ELOOP', 'EISDIR', 'ENXIO', 'ENODEV') ? notRegular(path, error) : error;
  }
}

/** Returns the file, or closes it if the check fails. */
async function checking(
  file: FileHandle,
  check: (stats: Stats) => Promise<void>,
): Promise<FileHandle> {
  try {
    await check(await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function requireOwn(path: string, { uid }: Stats): Promise<void> {
  if (await isOwnUser(uid, path)) return;
  throw new DiskError('file.foreign', `"${path}" belongs to another user`, {
    expected: `user ${process.geteuid?.() ?? ''}`,
    found: `user ${uid}`,
    hint: 'run the command as that user, or name another place',
  });
}

/**
 * True if a user is the owner of files that we make next to a path: ourselves, or the user to
 * which the file system maps us (NFS maps root to an anonymous user, FAT has one owner for all).
 */
export async function isOwnUser(uid: number, path: string): Promise<boolean> {
  return uid === process.geteuid?.() || uid === (await findOwner(path));
}

/** Undefined if we cannot make any file. */
async function findOwner(path: string): Promise<number | undefined> {
  const aside = await nameAside(path);
  try {
    const file = await createFile(aside);
    const { uid } = await file.stat();
    await file.close();
    return uid;
  } catch (error) {
    if (isErrno(error, 'EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOSPC', 'EDQUOT')) return undefined;
    throw error;
  } finally {
    await rm(aside, { force: true }).catch(() => undefined); // the file could not be made, or cannot be removed
  }
}
