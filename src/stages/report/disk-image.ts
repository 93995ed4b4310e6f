import type { BaseIso } from '../../openshift/release/base-iso.ts';
import { BLOCK_SIZE } from '../../iso/index.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type { DiskImageRequest, PreparedDiskImage } from '../request.ts';
import { describeLiveIso, summarizePlan, type LiveFacts, type LiveIsoPlan } from './live-iso.ts';

/* The plan and the report of a disk image: those of a live ISO, with the partitions. */

/** Bytes. */
export type DiskPartition = {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
};

type DiskMembers = {
  readonly product: 'disk-image';
  readonly metal: Pick<BaseIso, 'digest' | 'from' | 'size'>;
  /** The partitions behind CoreOS's boot file system. */
  readonly partitions: readonly DiskPartition[];
  /** Bytes of the image that are not holes. */
  readonly contentSize: number;
};

export type DiskImagePlan = Omit<LiveIsoPlan, 'product'> & DiskMembers;

export type DiskFacts = Omit<LiveFacts, 'product'> &
  DiskMembers & {
    /** The copy in the format of QEMU, if one was asked for. */
    readonly qcow2?: string;
  };

export type DiskImageReport = DiskFacts & MadeIso;

export const describeDiskImage = (
  request: DiskImageRequest,
  prepared: PreparedDiskImage,
): DiskFacts => ({
  ...describeLiveIso(request, asLiveIso(prepared)),
  ...describeDisk(prepared),
  ...withoutUndefined({ qcow2: request.qcow2 }),
});

export const summarizeDiskPlan = (
  request: DiskImageRequest,
  prepared: PreparedDiskImage,
): DiskImagePlan => ({
  ...summarizePlan(request, asLiveIso(prepared)),
  ...describeDisk(prepared),
});

/** The recovery ISO tells about the areas; the size is that of the whole image. */
const asLiveIso = ({ recovery, layout, ...prepared }: PreparedDiskImage) => ({
  ...prepared,
  layout: { ...recovery, size: layout.size },
});

function describeDisk({ metal, layout }: PreparedDiskImage): DiskMembers {
  const { root, recovery, data } = layout.partitions;
  const named = [
    ['root', root],
    ['agentboot', recovery],
    ['agentdata', data],
  ] as const;
  return {
    product: 'disk-image',
    metal: { digest: metal.digest, from: metal.from, size: metal.size },
    contentSize: layout.written,
    partitions: named.map(([name, { first, last }]) => ({
      name,
      offset: first * BLOCK_SIZE,
      size: (last + 1 - first) * BLOCK_SIZE,
    })),
  };
}
