import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { readFileIfPresent, readInputFile } from '../../base/disk/files.ts';
import { isErrno, ConfigError, IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/http/range.ts';
import { openRandomAccess } from '../../base/random-access.ts';
import { MAX_MANIFEST_SIZE } from '../manifest.ts';
import { isRepository, isTag } from '../reference.ts';
import { pathTo } from './distribution.ts';

/** A tree in a directory or on an ISO. Paths are absolute in it, `/docker/registry/v2/...`, without `..`. */
export type RegistryTree = {
  /** Called when a request begins: a tree that limits the cost of reading starts to count again. */
  begin?: () => void;
  /** The names in a directory, in no order; undefined when it is not a directory. */
  list: (path: string) => Promise<readonly string[] | undefined>;
  /** Bytes of a regular file; undefined when it is not a regular file. */
  size: (path: string) => Promise<number | undefined>;
  /** A small file, whole; undefined if it does not exist. */
  read: (path: string) => Promise<Uint8Array | undefined>;
  /** A file that exists, or a part of it. */
  stream: (path: string, range?: ByteRange) => Readable;
  /** The file on this machine that has the bytes of a file that exists. Default: its path below the root. */
  locate?: (path: string) => { readonly path: string; readonly position: number };
};

/** A tree that a server may read for many slow clients: nothing is read ahead. */
export type ServedTree = RegistryTree & {
  readonly open: (path: string) => Promise<OpenTreeFile>;
};

export type OpenTreeFile = {
  /** Fills the buffer with the bytes from `offset`. */
  readonly fill: (bytes: Buffer, offset: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

const READ_SIZE = 1 << 20;

/** A tree in a directory: paths are below `root`. */
export function directoryTree(root: string): ServedTree {
  return {
    list: (path) => ifPresent(readdir(join(root, path))),
    async size(path) {
      const found = await ifPresent(stat(join(root, path)));
      return found?.isFile() === true ? found.size : undefined;
    },
    read: (path) => readFileIfPresent(join(root, path)),
    stream: (path, range) =>
      createReadStream(join(root, path), { highWaterMark: READ_SIZE, ...range }),
    async open(path) {
      const { read, size, close } = await openRandomAccess(join(root, path));
      return {
        async fill(bytes, offset) {
          const end = offset + bytes.length;
          if (end > size) throw tooShort(path, end, size);
          await read(offset, bytes.length, bytes);
        },
        close,
      };
    },
  };
}

/** A file shorter than announced must not look whole. */
const tooShort = (path: string, least: number, size: number): IntegrityError =>
  new IntegrityError(
    'registry.file-size',
    `file ${path} should give ${least} bytes, but gave ${size} bytes`,
    { expected: `${least} bytes`, found: `${size} bytes` },
  );

/**
 * A tree that another program wrote: nothing outside `root` is read through a symbolic link, no directory
 * is listed through one (a few can make a tree without end), no pipe or device is opened, and `read`
 * takes no file larger than a manifest may be. `root` is a real path.
 *
 * @throws IntegrityError `registry.outside-tree`, `registry.linked-directory`,
 * `registry.special-file`; ConfigError `registry.tree-unreadable`, `registry.too-large`
 */
export function enclosedTree(root: string): RegistryTree {
  const plain = directoryTree(root);
  const locate = async (path: string): Promise<string | undefined> => {
    const real = await ifReadable(join(root, path), () => ifPresent(realpath(join(root, path))));
    if (real === undefined || real === root || real.startsWith(`${root}/`)) return real;
    throw new IntegrityError(
      'registry.outside-tree',
      `${join(root, path)} is a link to ${real}, outside the registry tree`,
      { expected: `a path below ${root}`, found: real, hint: 'copy the file into the tree' },
    );
  };
  const size = async (path: string): Promise<number | undefined> => {
    if ((await locate(path)) === undefined) return undefined;
    const found = await ifPresent(stat(join(root, path)));
    if (found?.isFile() === true) return found.size;
    if (found === undefined || found.isDirectory()) return undefined;
    throw new IntegrityError(
      'registry.special-file',
      `${join(root, path)} is neither a file nor a directory`,
    );
  };
  return {
    size,
    async list(path) {
      const real = await locate(path);
      if (real === undefined) return undefined;
      const place = join(root, path);
      if (real === place) return ifReadable(place, () => plain.list(path));
      throw new IntegrityError(
        'registry.linked-directory',
        `${place} is, or is in, a link to ${real}`,
        {
          expected: 'a directory',
          found: 'a symbolic link',
          hint: 'copy the directory to its place',
        },
      );
    },
    async read(path) {
      if ((await size(path)) === undefined) return undefined;
      const rules = { domain: 'registry', limit: MAX_MANIFEST_SIZE };
      return ifReadable(join(root, path), () => readInputFile(join(root, path), rules));
    },
    stream: plain.stream,
  };
}

async function ifReadable<Value>(path: string, read: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (!isErrno(cause, 'EACCES', 'EPERM', 'ELOOP')) throw cause;
    throw new ConfigError('registry.tree-unreadable', `${path} cannot be read`, {
      cause,
      hint: 'make the whole tree readable for the user who runs the build',
    });
  }
}

async function ifPresent<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG')) return undefined;
    throw error;
  }
}

/** `sha256:` and 64 hex digits, no newline. */
const LINK_SIZE = 71;

/** The repositories of a tree, in no order: directories with `_manifests` or `_layers` in them. */
export async function listRepositories(tree: RegistryTree): Promise<string[]> {
  const repositories: string[] = [];
  const walk = async (name: string): Promise<void> => {
    const names =
      (await tree.list(name === '' ? pathTo.repositories : pathTo.repository(name))) ?? [];
    if (names.some(isReserved) && isRepository(name)) repositories.push(name);
    for (const child of names) {
      const path = name === '' ? child : `${name}/${child}`;
      if (isRepository(path)) await walk(path);
    }
  };
  await walk('');
  return repositories;
}

export async function hasRepository(tree: RegistryTree, repository: string): Promise<boolean> {
  return ((await tree.list(pathTo.repository(repository))) ?? []).some(isReserved);
}

/** The tags of a repository, in no order. */
export async function listTags(tree: RegistryTree, repository: string): Promise<string[]> {
  return ((await tree.list(pathTo.tags(repository))) ?? []).filter(isTag);
}

/**
 * The digest that a link holds; undefined if there is no link.
 *
 * @throws IntegrityError `registry.link-malformed`
 */
export async function readLink(tree: RegistryTree, path: string): Promise<Digest | undefined> {
  const size = await tree.size(path);
  if (size === undefined) return undefined;
  const bytes = size === LINK_SIZE ? await tree.read(path) : undefined;
  const text = Buffer.from(bytes ?? []).toString('latin1');
  if (isDigest(text)) return text;
  throw new IntegrityError(
    'registry.link-malformed',
    `link ${path} should hold a digest of ${LINK_SIZE} bytes, but holds ${size} bytes`,
    { expected: 'sha256: and 64 hex digits', found: JSON.stringify(text) },
  );
}

/**
 * True if there is a link to this digest.
 *
 * @throws IntegrityError `registry.link-malformed`, `registry.link-wrong` when it names another.
 */
export async function hasLink(tree: RegistryTree, path: string, digest: Digest): Promise<boolean> {
  const found = await readLink(tree, path);
  if (found === undefined || found === digest) return found !== undefined;
  throw new IntegrityError('registry.link-wrong', `link ${path} names ${found}`, {
    expected: digest,
    found,
  });
}

/**
 * A manifest's bytes; undefined if the tree does not hold them.
 *
 * @throws IntegrityError `registry.manifest-too-large`, `registry.manifest-damaged` when they have
 * another digest.
 */
export async function readManifestBytes(
  tree: RegistryTree,
  digest: Digest,
): Promise<Uint8Array | undefined> {
  const path = pathTo.blob(digest);
  const size = await tree.size(path);
  if (size !== undefined && size > MAX_MANIFEST_SIZE) throw tooLarge(digest, size);
  const bytes = await tree.read(path);
  if (bytes === undefined) return undefined;
  const found = digestOf(bytes);
  if (found === digest) return bytes;
  throw new IntegrityError(
    'registry.manifest-damaged',
    `manifest ${digest} has bytes with the digest ${found}`,
    { expected: digest, found },
  );
}

const tooLarge = (digest: Digest, size: number): IntegrityError =>
  new IntegrityError(
    'registry.manifest-too-large',
    `manifest ${digest} has ${size} bytes, more than the ${MAX_MANIFEST_SIZE} any registry takes`,
    { expected: `at most ${MAX_MANIFEST_SIZE} bytes`, found: `${size} bytes` },
  );

const isReserved = (name: string): boolean => name === '_manifests' || name === '_layers';
