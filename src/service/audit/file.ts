import type { FileHandle } from 'node:fs/promises';
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { takeLease } from '../../base/disk/lease.ts';
import { openForeign, openOwnFile } from '../../base/disk/open-file.ts';
import { DiskError, IntegrityError, isErrno } from '../../base/errors.ts';
import { AUDIT_BEGINNING, readAuditLine, type AuditTail } from './chain.ts';
import { readEnd } from './read-lines.ts';

/* Owns the file of the audit log: appended to by one process, which follows it when it is moved away. */

export type AuditFile = {
  /** The end of the chain when it was opened. */
  readonly tail: AuditTail;
  /** Bytes of a line that a crash had cut off; they are removed. */
  readonly torn: number;
  /** Opens a new file if its name was given away; returns both sizes if others changed the file. */
  readonly follow: () => Promise<{ readonly expected: number; readonly found: number } | undefined>;
  /** Appends lines; they are on the disk when it resolves. */
  readonly append: (lines: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type AuditFileOptions = {
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

/**
 * Opens the log at a path, and makes it if it is missing: its owner alone can read it. A chain whose file was moved away
 * is continued: the end is looked for in files of the same folder whose names begin with that of the log.
 */
export async function openAuditFile(path: string, options: AuditFileOptions): Promise<AuditFile> {
  await makeDirectory(dirname(path), 0o700);
  const unlock = await takeLock(path, options);
  let file: FileHandle | undefined;
  try {
    file = await openOwnFile(path, { append: true });
    const { last, size, torn } = await readEnd(file);
    const tail = last ? readTail(path, last.text) : await findMovedTail(path);
    await file.truncate(size);
    return follow({ path, file, size, tail, torn, unlock });
  } catch (error) {
    await file?.close();
    await unlock();
    throw error;
  }
}

type Opened = Pick<AuditFile, 'tail' | 'torn'> & {
  readonly path: string;
  readonly file: FileHandle;
  readonly size: number;
  readonly unlock: () => Promise<void>;
};

function follow({ path, tail, torn, unlock, ...opened }: Opened): AuditFile {
  let { file, size } = opened;
  return {
    tail,
    torn,
    async follow() {
      const [named, open] = await Promise.all([findStats(path), file.stat()]);
      if (named?.ino !== open.ino || named.dev !== open.dev) {
        const next = await openOwnFile(path, { append: true });
        await file.close();
        await syncDirectory(dirname(path));
        file = next;
        size = 0;
      }
      const found = (await file.stat()).size;
      const expected = size;
      size = found;
      return found === expected ? undefined : { expected, found };
    },
    async append(lines) {
      try {
        await file.appendFile(lines);
        await file.datasync();
      } catch (error) {
        await file.truncate(size).catch(() => undefined);
        throw explainWriteError(error, path);
      }
      size += Buffer.byteLength(lines);
    },
    async close() {
      await file.close();
      await unlock();
    },
  };
}

async function takeLock(path: string, options: AuditFileOptions): Promise<() => Promise<void>> {
  try {
    return (await takeLease(`${path}.lock`, options)).release;
  } catch (cause) {
    if (!(cause instanceof DiskError) || cause.code !== 'output.locked') throw cause;
    throw new DiskError('service.audit-in-use', `another process writes the audit log "${path}"`, {
      hint: 'stop it, or name another --audit-log: each process has a chain of its own',
    });
  }
}

async function findStats(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function readTail(path: string, text: string | undefined): AuditTail {
  const line = text === undefined ? undefined : readAuditLine(text);
  if (line) return line;
  throw new IntegrityError(
    'service.audit-damaged',
    `the last line of the audit log "${path}" was changed, or is not of an audit log`,
    { hint: 'keep the file, and name another --audit-log' },
  );
}

/** Finds the end of the chain among moved files; a file that ends otherwise is not one of them. */
async function findMovedTail(path: string): Promise<AuditTail> {
  const folder = dirname(path);
  const start = basename(path);
  let tail = AUDIT_BEGINNING;
  for (const name of await readdir(folder)) {
    if (!name.startsWith(start) || name === start) continue;
    const found = await readMoved(join(folder, name));
    if (found && found.sequence > tail.sequence) tail = found;
  }
  return tail;
}

async function readMoved(path: string): Promise<AuditTail | undefined> {
  let file: FileHandle;
  try {
    file = await openForeign(path);
  } catch {
    return undefined; // a folder, a link to nothing, a file of others
  }
  try {
    const { last } = await readEnd(file);
    return last?.text === undefined ? undefined : readAuditLine(last.text);
  } finally {
    await file.close();
  }
}
