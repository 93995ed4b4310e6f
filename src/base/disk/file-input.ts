import { stat } from 'node:fs/promises';
import type { Digest } from '../digest.ts';
import { isUnreadable } from './read-errors.ts';

/** A file that a result is made from: what counts are its bytes, not where it is. Plain JSON. */
export type FileInput = {
  readonly kind: 'file';
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly digest: Digest;
};

/** What a file's inode says of it. As long as all of it is the same, so are the bytes, as far as anybody knows. */
export type FileStamp = {
  readonly size: number;
  /** Milliseconds since 1970, with fractions. */
  readonly modified: number;
  readonly changed: number;
  readonly inode: number;
};

/** undefined for what is missing, out of reach, or no regular file. */
export async function readStamp(path: string): Promise<FileStamp | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    const { size, mtimeMs, ctimeMs, ino } = found;
    return { size, modified: mtimeMs, changed: ctimeMs, inode: ino };
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

export const isSameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.size === b.size && a.modified === b.modified && a.changed === b.changed && a.inode === b.inode;

/** undefined for what is not a stamp. */
export function parseStamp(value: unknown): FileStamp | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { size, modified, changed, inode } = value as Partial<Record<keyof FileStamp, unknown>>;
  if (typeof size !== 'number' || typeof modified !== 'number') return undefined;
  if (typeof changed !== 'number' || typeof inode !== 'number') return undefined;
  return { size, modified, changed, inode };
}

/** The file alone, without where it came from: the same bytes make the same results. */
export async function fileOf(file: FileInput | Promise<FileInput>): Promise<FileInput> {
  const { path, size, digest } = await file;
  return { kind: 'file', path, size, digest };
}
