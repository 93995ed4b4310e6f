import type { FileInput } from '../base/disk/file-digests.ts';
import type { Layout } from '../iso/index.ts';
import type { DeploymentOptions } from '../openshift/node/deployment.ts';
import type { BaseIso, GivenBaseIso } from '../openshift/release/base-iso.ts';
import type { DiskLayout } from './4-lay-out/lay-out-disk-image.ts';
import type { EmbedAreaUse } from './4-lay-out/lay-out-installation-iso.ts';
import type { LiveLayout } from './4-lay-out/lay-out-live-iso.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './request.ts';

/* The requests of a disk image and of the ISO that deploys one, and the types of their prepared results. */

export type DiskImageRequest = LiveIsoRequest & {
  /** The raw image of CoreOS for disks. */
  readonly metalImage: GivenBaseIso;
  /** GiB of the disk; absent: as small as possible. */
  readonly diskSize?: number;
  /** Absolute path of a copy in the format of QEMU. */
  readonly qcow2?: string;
};

export type PreparedDiskImage = Omit<PreparedLiveIso, 'layout'> & {
  readonly layout: DiskLayout;
  readonly recovery: LiveLayout;
  readonly data: Layout;
  readonly metal: BaseIso;
  /** Metal image and edited boot file system. */
  readonly files: readonly FileInput[];
};

export type DeploymentIsoRequest = Omit<DiskImageRequest, 'diskSize' | 'qcow2'> & {
  readonly deployment: DeploymentOptions;
};

/** The layout is that of the ISO, which carries the disk. */
export type PreparedDeploymentIso = Omit<PreparedDiskImage, 'layout'> & {
  readonly layout: Layout;
  readonly disk: DiskLayout;
  readonly embedArea: EmbedAreaUse;
};
