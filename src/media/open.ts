import { join } from 'node:path';
import { findDevice } from '../base/disk/block-device.ts';
import { isBroken } from '../base/disk/disk-errors.ts';
import { IntegrityError, isErrno, SealiftError } from '../base/errors.ts';
import { openRandomAccess, type RandomAccess } from '../base/random-access.ts';
import { decodeInitrd } from '../ignition/index.ts';
import {
  createStructureSource,
  decodeVolumeDescriptor,
  findEmbedArea,
  formatCauses,
  type IsoImage,
  openIso,
  openTree,
  SECTOR_SIZE,
} from '../iso/index.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../openshift/node/bootstrap.ts';
import { standInFor } from '../outputs/device.ts';
import { isElsewhere, openSource, type SourceHost } from '../outputs/read/open.ts';
import { refuseHalfCustomised } from './customize/write.ts';
import { openGivenIso } from './delta/describe.ts';
import { isDelta } from './delta/file.ts';
import { openDisk, refuseQcow2 } from './disk-image.ts';
import { BOOTSTRAP_IMAGE_PATH, INDEX_PATH, readIndex, type MediaIndex } from './media-index.ts';

/* Ways to open an ISO that a user named, intact or damaged, and to read its Ignition configs. */

/** An ISO given by the user: its path, or the access that `openSource` returned. */
export type IsoSource = string | RandomAccess;

/**
 * Always closes the ISO.
 *
 * @throws ConfigError `iso.unreadable`; the errors of `openGivenIso`
 */
export async function useMedium<Result>(
  medium: IsoSource,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> {
  return useImage(medium, async (image) => work(await openGivenIso(image)));
}

/** Always closes the image, which need not be an ISO. */
export async function useImage<Result>(
  medium: IsoSource,
  work: (image: RandomAccess) => Promise<Result>,
): Promise<Result> {
  const image = typeof medium === 'string' ? await openRandomAccess(medium) : medium;
  try {
    return await work(image);
  } finally {
    await image.close();
  }
}

/**
 * Always closes the medium. An ISO of this machine must not be half customised.
 *
 * @throws DiskError `customize.half-way`; IntegrityError `disk-image.qcow2`; the errors of `openSource`
 */
export async function useSource<Result>(
  text: string,
  host: SourceHost,
  work: (source: RandomAccess) => Promise<Result>,
): Promise<Result> {
  return useImage(await openSource(text, host), async (source) => {
    if (!isElsewhere(text)) {
      const device = findDevice(source.path);
      const workDir = join(host.cwd, '.sealift'); // a change of a device is recorded there
      await refuseHalfCustomised(source, device && standInFor(device, workDir));
    }
    await refuseQcow2(source);
    return work(source);
  });
}

/** True for a medium of ours, which has an index, for a disk image, and for a delta. */
export const isOurs = async (access: RandomAccess): Promise<boolean> =>
  (await hasIndex((await openDisk(access))?.data.access ?? access)) || (await isDelta(access));

async function hasIndex(access: RandomAccess): Promise<boolean> {
  try {
    return (await (await openIso(access)).find(INDEX_PATH))?.kind === 'file';
  } catch (error) {
    if (error instanceof SealiftError || isErrno(error, 'EACCES', 'EPERM')) return false;
    throw error;
  }
}

/** Undefined if the image is not a medium of ours, or is damaged. */
export async function readWholeIndex(access: RandomAccess): Promise<MediaIndex | undefined> {
  try {
    return await readIndex(await openIso(access));
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
    throw error;
  }
}

/** Wrong bytes, or sectors that a worn disc or stick cannot read. Undefined for any other error. */
export function describeDamage(error: unknown): string | undefined {
  if (error instanceof IntegrityError) return formatCauses(error);
  return isBroken(error) ? 'the device reports a read error' : undefined;
}

/** Files of an image that has a readable directory tree, even if other structures are damaged. */
export type IsoFiles = Pick<IsoImage, 'fileSize' | 'find' | 'walk' | 'readFile' | 'readBytes'>;

/** Primary volume descriptor (ECMA-119 6.2.1, 8.4), the first descriptor in every known image. */
const PRIMARY_SECTOR = 16;
const DEFAULT_LIMIT = 16 * 1024 * 1024;

/** Opens an image that is truncated, or whose boot catalog or further descriptors are damaged. */
export async function openDamaged(image: RandomAccess): Promise<IsoFiles> {
  const descriptor = decodeVolumeDescriptor(
    await image.read(PRIMARY_SECTOR * SECTOR_SIZE, SECTOR_SIZE),
  );
  if (descriptor.kind !== 'primary') {
    throw new IntegrityError(
      'iso.not-iso9660',
      `the first volume descriptor is of kind ${descriptor.kind}, not primary`,
    );
  }
  const { find, walk } = await openTree(createStructureSource(image), descriptor.volume);
  return {
    fileSize: image.size,
    find,
    walk,
    readFile: (node, limit = DEFAULT_LIMIT) => readWhole(image, node, limit),
    readBytes: image.read,
  };
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

export type OpenAttempt<Value> = { readonly value?: Value; readonly problem?: string };

/** Reports damage instead of throwing: it is often the reason to look at an image. */
export async function attempt<Value>(read: () => Promise<Value>): Promise<OpenAttempt<Value>> {
  try {
    return { value: await read() };
  } catch (error) {
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    return { problem };
  }
}

/** Files of an image, of which the configs are read. */
export type ConfigFiles = Pick<IsoImage, 'find' | 'readFile' | 'readBytes'>;

const BOOTSTRAP_LIMIT = 64 * 1024 * 1024;

/**
 * Undefined if the embed area is empty.
 *
 * @throws IntegrityError if the image has no embed area, or if the area does not hold an initrd
 */
export async function readEmbeddedIgnition(iso: ConfigFiles): Promise<string | undefined> {
  const { offset, size } = await findEmbedArea(iso);
  const bytes = await iso.readBytes(offset, size);
  if (bytes.every((byte) => byte === 0)) return undefined;
  return toText((await decodeInitrd(bytes)).get('config.ign'));
}

/** Undefined on images that are not ours. */
export async function readBootstrapIgnition(iso: ConfigFiles): Promise<string | undefined> {
  const node = await iso.find(BOOTSTRAP_IMAGE_PATH);
  if (node?.kind !== 'file') return undefined;
  const members = await decodeInitrd(await iso.readFile(node, BOOTSTRAP_LIMIT));
  return toText(
    members.get(BOOTSTRAP_IGNITION_PATH) ?? members.get(BOOTSTRAP_IGNITION_PATH.slice(1)),
  );
}

const toText = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('utf8');
