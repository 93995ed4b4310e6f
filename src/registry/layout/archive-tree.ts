import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { openToRead } from '../../base/disk/open-file.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { MAX_MANIFEST_SIZE } from '../manifest.ts';
import { indexTar, type TarMember } from './tar-index.ts';
import type { RegistryTree } from './tree.ts';

export type ArchivedFile = Omit<TarMember, 'name'> & { readonly archive: string };

/** Files of several tars as one tree; paths are relative. */
export type ArchivedFiles = {
  readonly find: (path: string) => ArchivedFile | undefined;
  /** Names in a directory; undefined if nothing is in it. */
  readonly list: (path: string) => readonly string[] | undefined;
};

type Directory = Map<string, Directory | ArchivedFile>;

/**
 * Indexes tars. A file of a later tar takes the place of one of the same name; names that lead out of
 * the tree are left out.
 *
 * @throws ConfigError `registry.too-large`; the errors of `indexTar`
 */
export function indexArchives(archives: readonly string[]): ArchivedFiles {
  const root: Directory = new Map();
  let count = 0;
  for (const archive of archives) {
    for (const { name, ...place } of indexTar(archive)) {
      if (++count > MOST_FILES) throw refuseMany(archive);
      add(root, name, { archive, ...place });
    }
  }
  const find = (path: string): Directory | ArchivedFile | undefined => {
    let node: Directory | ArchivedFile | undefined = root;
    for (const name of split(path)) node = node instanceof Map ? node.get(name) : undefined;
    return node;
  };
  return {
    find(path) {
      const node = find(path);
      return node instanceof Map ? undefined : node;
    },
    list(path) {
      const node = find(path);
      return node instanceof Map ? [...node.keys()] : undefined;
    },
  };
}

/** Far more than the files of 10,000 images; each takes some 600 bytes of memory. */
const MOST_FILES = 400_000;

const refuseMany = (archive: string): ConfigError =>
  new ConfigError('registry.too-large', `the archives up to ${archive} have too many files`, {
    expected: `at most ${MOST_FILES}`,
    found: `more than ${MOST_FILES}`,
    hint: 'mirror to a directory, which is read in place',
  });

const split = (path: string): string[] => path.split('/').filter((name) => name !== '');

function add(root: Directory, path: string, file: ArchivedFile): void {
  const names = split(path);
  const last = names.pop();
  if (last === undefined || [...names, last].some((name) => name === '.' || name === '..')) return;
  let directory = root;
  for (const name of names) {
    const known = directory.get(name);
    const next: Directory = known instanceof Map ? known : new Map<string, Directory>();
    directory.set(name, next);
    directory = next;
  }
  directory.set(last, file);
}

/** The registry's tree in tars; contents are read in place. */
export function archiveTree({ find, list }: ArchivedFiles): RegistryTree {
  const require = (path: string): ArchivedFile => {
    const file = find(path);
    if (file) return file;
    throw new IntegrityError('registry.blob-missing', `no archive has ${path}`);
  };
  return {
    list: (path) => Promise.resolve(list(path)),
    size: (path) => Promise.resolve(find(path)?.size),
    read: async (path) => {
      const file = find(path);
      return file && readArchived(file);
    },
    stream(path, range) {
      const { archive, offset, size } = require(path);
      const { start = 0, end = size - 1 } = range ?? {};
      if (size === 0) return Readable.from([]);
      return createReadStream(archive, {
        start: offset + start,
        end: offset + end,
        highWaterMark: READ_SIZE,
      });
    },
    locate(path) {
      const { archive, offset } = require(path);
      return { path: archive, position: offset };
    },
  };
}

const READ_SIZE = 1 << 20;

async function readArchived({ archive, offset, size }: ArchivedFile): Promise<Uint8Array> {
  if (size > MAX_MANIFEST_SIZE) {
    throw new ConfigError('registry.too-large', `a file of ${archive} has ${size} bytes`, {
      expected: `at most ${MAX_MANIFEST_SIZE}`,
      found: String(size),
    });
  }
  const file = await openToRead(archive);
  try {
    const buffer = Buffer.allocUnsafe(size);
    const { bytesRead } = await file.read(buffer, 0, size, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
