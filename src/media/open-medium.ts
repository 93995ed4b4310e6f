import { stat } from 'node:fs/promises';
import { ConfigError, isErrno, IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/members.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';
import { formatCauses } from '../iso/reading-context.ts';
import { SECTOR_SIZE } from '../iso/extent.ts';
import { openTree } from '../iso/iso-tree.ts';
import { createStructureSource } from '../iso/structure-source.ts';
import { openRandomAccess, type RandomAccess } from '../iso/random-access.ts';
import { decodeVolumeDescriptor } from '../iso/volume/volume-descriptor.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a directory',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ELOOP: 'its symbolic links are a loop',
  ENAMETOOLONG: 'its name is too long',
};

/**
 * Opens an ISO that somebody named.
 *
 * @throws ConfigError `iso.unreadable`; what `openIso` throws
 */
export async function openMedium(path: string): Promise<IsoImage> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw unreadable(path, 'it is a directory');
    if (!found.isFile()) throw unreadable(path, 'it is not a regular file', COPY);
    return await openIso(path);
  } catch (cause) {
    const code = Object.keys(REASONS).find((code) => isErrno(cause, code));
    throw code === undefined ? cause : unreadable(path, REASONS[code] ?? code);
  }
}

/** A device has no size that a file system tells. */
const COPY = 'copy the device or pipe into a file, and give that';

/** Does something with an ISO that somebody named, and closes it in any case. */
export async function useMedium<Result>(
  path: string,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> {
  const iso = await openMedium(path);
  try {
    return await work(iso);
  } finally {
    await iso.close();
  }
}

const unreadable = (path: string, reason: string, hint?: string): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: ${reason}`, {
    ...withoutUndefined({ hint }),
  });

/**
 * What an error says about the bytes of an image: wrong ones, or sectors that a worn disc or stick does
 * not give any more. undefined for any other error.
 */
export function describeDamage(error: unknown): string | undefined {
  if (error instanceof IntegrityError) return formatCauses(error);
  return isErrno(error, 'EIO') ? 'the device answers with an error' : undefined;
}

/** What can be had of an image that has a directory tree, whatever else is wrong with it. */
export type IsoFiles = Pick<
  IsoImage,
  'path' | 'fileSize' | 'find' | 'walk' | 'readFile' | 'readBytes' | 'close'
>;

/** ECMA-119 6.2.1, 8.4: the primary volume descriptor of every image we know is the first one. */
const PRIMARY_SECTOR = 16;
const DEFAULT_LIMIT = 16 * 1024 * 1024;

/**
 * The files of an image that `openIso` refuses: one that was cut off, or whose boot catalog or further
 * descriptors are damaged.
 *
 * @throws IntegrityError when not even its root directory can be read
 */
export async function openDamaged(path: string): Promise<IsoFiles> {
  const image = await openRandomAccess(path);
  try {
    const descriptor = decodeVolumeDescriptor(
      await image.read(PRIMARY_SECTOR * SECTOR_SIZE, SECTOR_SIZE),
    );
    if (descriptor.kind !== 'primary') {
      throw new IntegrityError(
        'iso.not-iso9660',
        `first volume descriptor is of kind ${descriptor.kind}, not primary`,
      );
    }
    const { find, walk } = await openTree(createStructureSource(image), descriptor.volume);
    return {
      path,
      fileSize: image.size,
      find,
      walk,
      readFile: (node, limit = DEFAULT_LIMIT) => readWhole(image, node, limit),
      readBytes: image.read,
      close: image.close,
    };
  } catch (error) {
    await image.close();
    throw error;
  }
}

type Node = Parameters<IsoImage['readFile']>[0];

async function readWhole(image: RandomAccess, node: Node, limit: number): Promise<Uint8Array> {
  if (node.kind !== 'file' || node.size > limit) {
    throw new IntegrityError(
      'iso.file-too-large',
      `"${node.name}" is not a file of at most ${limit} bytes`,
    );
  }
  const pieces: Uint8Array[] = [];
  for (const { offset, size } of node.extents) pieces.push(await image.read(offset, size));
  return Buffer.concat(pieces);
}
