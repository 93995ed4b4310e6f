import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { RandomAccess } from '../base/random-access.ts';
import { BLOCK_SIZE, openIso, readPartitionTables, SYSTEM_AREA_SIZE } from '../iso/index.ts';
import { describeMisplaced, findCarriedDisk, openDisk, type IsoPartition } from './disk-image.ts';
import { inspectIso, type Inspection } from './inspect.ts';
import { attempt } from './open.ts';

/* The description of a disk image, alone or on the ISO that deploys it. */

/** A disk image: its partitions, and the ISO images in two of them. */
export type DiskInspection = {
  readonly kind: 'disk-image';
  readonly size: number;
  readonly partitions: readonly {
    readonly name: string;
    readonly offset: number;
    readonly size: number;
  }[];
  /** The live ISO in partition `agentboot`, which installs and recovers. */
  readonly recovery: Inspection;
  /** The ISO of the registry in partition `agentdata`. */
  readonly data: Inspection;
};

/** An ISO; a deployment ISO with the disk image that it carries. */
export type MediumInspection = Inspection & { readonly disk?: DiskInspection };

/** Describes a disk image or an ISO, and closes it. */
export async function inspectImage(
  image: RandomAccess,
): Promise<DiskInspection | MediumInspection> {
  const disk = await inspectDisk(image);
  if (disk) return disk;
  const { value: carried } = await attempt(() => inspectCarried(image));
  return { ...(await inspectIso(image)), ...withoutUndefined({ disk: carried }) };
}

async function inspectCarried(image: RandomAccess): Promise<DiskInspection | undefined> {
  const carried = await findCarriedDisk(await openIso(image));
  return carried && inspectDisk(carried);
}

/** Undefined if the image is not a disk image of ours. */
async function inspectDisk(image: RandomAccess): Promise<DiskInspection | undefined> {
  const disk = await openDisk(image);
  if (!disk) return undefined;
  for (const partition of [disk.recovery, disk.data]) requirePresent(image, partition);
  const { gpt } = readPartitionTables(await image.read(0, SYSTEM_AREA_SIZE));
  return {
    kind: 'disk-image',
    size: image.size,
    partitions: (gpt?.partitions ?? []).map(({ name, firstBlock, lastBlock }) => ({
      name,
      offset: firstBlock * BLOCK_SIZE,
      size: (lastBlock - firstBlock + 1) * BLOCK_SIZE,
    })),
    recovery: await inspectIso(disk.recovery.access),
    data: await inspectIso(disk.data.access),
  };
}

function requirePresent({ path, size }: RandomAccess, partition: IsoPartition): void {
  const problem = describeMisplaced(partition, size);
  if (problem === undefined) return;
  throw new IntegrityError('disk-image.truncated', `${path} is damaged: ${problem}`, {
    hint: 'copy the disk image again; "sealift verify" lists everything that is wrong',
  });
}
