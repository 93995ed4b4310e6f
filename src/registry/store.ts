import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isErrno } from '../base/errno.ts';
import { readFileIfPresent } from '../base/files.ts';

/** Bytes of a file, both ends included, as in HTTP. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * A registry's tree wherever it lies: a folder, an ISO. Paths are absolute within the tree,
 * `/docker/registry/v2/...`, and never have `..`.
 */
export type RegistryTree = {
  /** The names in a directory, in no order; undefined when it is none. */
  list: (path: string) => Promise<readonly string[] | undefined>;
  /** Bytes of a regular file; undefined when it is none. */
  size: (path: string) => Promise<number | undefined>;
  /** A small file, whole; undefined when there is none. */
  read: (path: string) => Promise<Uint8Array | undefined>;
  /** A file that is there, or a part of it. */
  stream: (path: string, range?: ByteRange) => Readable;
};

const READ_SIZE = 1 << 20;

/** A tree in a folder: `path` is taken below `root`. */
export function directoryTree(root: string): RegistryTree {
  return {
    list: (path) => ifPresent(readdir(join(root, path))),
    async size(path) {
      const found = await ifPresent(stat(join(root, path)));
      return found?.isFile() === true ? found.size : undefined;
    },
    read: (path) => readFileIfPresent(join(root, path)),
    stream: (path, range) =>
      createReadStream(join(root, path), { highWaterMark: READ_SIZE, ...range }),
  };
}

async function ifPresent<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG')) return undefined;
    throw error;
  }
}
