import { isBroken } from '../base/disk/disk-errors.ts';
import { IntegrityError } from '../base/errors.ts';
import { openRandomAccess, type RandomAccess } from '../base/random-access.ts';
import { decodeInitrd } from '../ignition/initrd.ts';
import { findEmbedArea } from '../iso/coreos/embed-area.ts';
import { SECTOR_SIZE } from '../iso/extent.ts';
import { openIso, type IsoImage } from '../iso/read/open.ts';
import { formatCauses, createStructureSource } from '../iso/read/source.ts';
import { openTree } from '../iso/read/tree.ts';
import { decodeVolumeDescriptor } from '../iso/volume/descriptor.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../openshift/node/bootstrap.ts';
import { BOOTSTRAP_IMAGE_PATH } from './media-index.ts';

/** An ISO that somebody named: by its path, or as `openSource` opened it. */
export type Medium = string | RandomAccess;

/**
 * Does something with an ISO that somebody named, and closes it in any case.
 *
 * @throws ConfigError `iso.unreadable`; what `openIso` throws
 */
export async function useMedium<Result>(
  medium: Medium,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> {
  return useImage(medium, async (image) => work(await openIso(image)));
}

/** The same for its bytes, whatever they are. */
export async function useImage<Result>(
  medium: Medium,
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
 * What an error says about the bytes of an image: wrong ones, or sectors that a worn disc or stick does
 * not give any more. undefined for any other error.
 */
export function describeDamage(error: unknown): string | undefined {
  if (error instanceof IntegrityError) return formatCauses(error);
  return isBroken(error) ? 'the device answers with an error' : undefined;
}

/** What can be had of an image that has a directory tree, whatever else is wrong with it. */
export type IsoFiles = Pick<IsoImage, 'fileSize' | 'find' | 'walk' | 'readFile' | 'readBytes'>;

/** ECMA-119 6.2.1, 8.4: the primary volume descriptor of every image we know is the first one. */
const PRIMARY_SECTOR = 16;
const DEFAULT_LIMIT = 16 * 1024 * 1024;

/**
 * The files of an image that `openIso` refuses: one that was cut off, or whose boot catalog or further
 * descriptors are damaged.
 *
 * @throws IntegrityError when not even its root directory can be read
 */
export async function openDamaged(image: RandomAccess): Promise<IsoFiles> {
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

export type Attempt<Value> = { readonly value?: Value; readonly problem?: string };

/** What is damaged is what somebody looks at an image for: it is reported, not thrown. */
export async function attempt<Value>(read: () => Promise<Value>): Promise<Attempt<Value>> {
  try {
    return { value: await read() };
  } catch (error) {
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    return { problem };
  }
}

const BOOTSTRAP_LIMIT = 64 * 1024 * 1024;

/**
 * The config in the embed area, as text; undefined when the area is empty.
 *
 * @throws IntegrityError where the image has no embed area, or what is in it is not an initrd
 */
export async function readEmbeddedIgnition(iso: IsoImage): Promise<string | undefined> {
  const { offset, size } = await findEmbedArea(iso);
  const bytes = await iso.readBytes(offset, size);
  if (bytes.every((byte) => byte === 0)) return undefined;
  return toText((await decodeInitrd(bytes)).get('config.ign'));
}

/** The bootstrap config of a medium of ours, as text; undefined on other images. */
export async function readBootstrapIgnition(iso: IsoImage): Promise<string | undefined> {
  const node = await iso.find(BOOTSTRAP_IMAGE_PATH);
  if (node?.kind !== 'file') return undefined;
  const members = await decodeInitrd(await iso.readFile(node, BOOTSTRAP_LIMIT));
  return toText(
    members.get(BOOTSTRAP_IGNITION_PATH) ?? members.get(BOOTSTRAP_IGNITION_PATH.slice(1)),
  );
}

const toText = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('utf8');
