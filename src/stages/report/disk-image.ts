import type { BaseIso } from '../../openshift/release/base-iso.ts';
import { BLOCK_SIZE } from '../../iso/index.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type {
  DeploymentIsoRequest,
  DiskImageRequest,
  PreparedDeploymentIso,
  PreparedDiskImage,
} from '../disk-request.ts';
import {
  describeLiveIso,
  listSecrets,
  summarizePlan,
  type LiveFacts,
  type LiveIsoPlan,
} from './live-iso.ts';

/* The plans and reports of a disk image and of the ISO that deploys one: those of a live ISO, with the partitions. */

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

type DeploymentMembers = Omit<DiskMembers, 'product'> & {
  readonly product: 'deployment-iso';
  /** Size of the disk image on the ISO, and of the smallest disk that it fits. */
  readonly diskSize: number;
  readonly targetDevice: string;
  readonly sparseClone: boolean;
  readonly dryRun: boolean;
  /** Name of the script that runs after the disk is written. */
  readonly postScript?: string;
};

export type DeploymentIsoPlan = Omit<LiveIsoPlan, 'product'> & DeploymentMembers;

export type DeploymentFacts = Omit<LiveFacts, 'product'> & DeploymentMembers;

export type DeploymentIsoReport = DeploymentFacts & MadeIso;

export const describeDeploymentIso = (
  request: DeploymentIsoRequest,
  prepared: PreparedDeploymentIso,
): DeploymentFacts => ({
  ...describeLiveIso(request, asLiveIso(prepared)),
  ...describeDeployment(request, prepared),
});

export const summarizeDeploymentPlan = (
  request: DeploymentIsoRequest,
  prepared: PreparedDeploymentIso,
): DeploymentIsoPlan => ({
  ...summarizePlan(request, asLiveIso(prepared)),
  ...describeDeployment(request, prepared),
});

function describeDeployment(
  { config, deployment }: DeploymentIsoRequest,
  { disk, ...prepared }: PreparedDeploymentIso,
): DeploymentMembers & Pick<LiveIsoPlan, 'secretsOnMedia'> {
  const { targetDevice, isSparse, isDryRun, postScript } = deployment;
  return {
    ...describeDisk({ ...prepared, layout: disk }),
    product: 'deployment-iso',
    diskSize: disk.size,
    targetDevice,
    sparseClone: isSparse,
    dryRun: isDryRun,
    secretsOnMedia: [
      ...listSecrets({ config }),
      ...(postScript ? [`${postScript.name} (contents not inspected)`] : []),
    ],
    ...withoutUndefined({ postScript: postScript?.name }),
  };
}

/** The recovery ISO tells about the areas; the size is that of the whole image. */
const asLiveIso = ({
  recovery,
  layout,
  ...prepared
}: PreparedDiskImage | PreparedDeploymentIso) => ({
  ...prepared,
  layout: { ...recovery, size: layout.size },
});

function describeDisk({ metal, layout }: Pick<PreparedDiskImage, 'metal' | 'layout'>): DiskMembers {
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
