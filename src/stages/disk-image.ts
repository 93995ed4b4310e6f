import { fileOf, type FileInput } from '../base/disk/file-digests.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Layout } from '../iso/index.ts';
import { roomOf } from '../outputs/place.ts';
import { requireDiskTools, takeMetalImage } from './1-resolve/take-metal-image.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import {
  createdAt,
  layOutDataIso,
  layOutDiskImage,
  prepareMetal,
  RECOVERY_LABEL,
  type PreparedMetal,
} from './4-lay-out/lay-out-disk-image.ts';
import { layOutLiveIso } from './4-lay-out/lay-out-live-iso.ts';
import { claimQcow2, convertToQcow2 } from './5-pour/convert.ts';
import { pourAndSealDisk } from './5-pour/pour.ts';
import type { IsoProduct } from './build.ts';
import { collectLiveParts, listFipsKargs } from './live-parts.ts';
import {
  describeDiskImage,
  summarizeDiskPlan,
  type DiskFacts,
  type DiskImagePlan,
} from './report/disk-image.ts';
import type { DiskImageRequest, PreparedDiskImage } from './disk-request.ts';
import type { BuildTools } from './tools.ts';

/* The disk image as a product: a live ISO in one partition and its registry in another, behind CoreOS's own. */

export const DISK_IMAGE: IsoProduct<DiskImageRequest, PreparedDiskImage, DiskFacts, DiskImagePlan> =
  {
    name: 'disk-image',
    prepare: prepareDiskImage,
    describe: describeDiskImage,
    summarize: summarizeDiskPlan,
    listBlobs: ({ config }, { plan }) => (config.mirrorPath === undefined ? plan.blobs : []),
    pour: async (request, prepared) => {
      const { files, ...poured } = pourDisk(request, prepared);
      return { ...poured, files: [await fileOf(prepared.base), ...files] };
    },
    pourStage: pourAndSealDisk,
    beside: {
      claim: claimQcow2,
      async write(request, _prepared, { engine }) {
        const { output, qcow2 } = request;
        if (qcow2 === undefined) return [];
        return [await engine.run(convertToQcow2, { output, qcow2, mode: modeOf(request) })];
      },
    },
  };

/** Permission bits of every file that has the contents of the disk. */
const modeOf = ({ confidential }: Pick<DiskImageRequest, 'confidential'>): number =>
  confidential.length > 0 ? 0o600 : 0o644;

/** Contents of a disk image, besides the base ISO. */
export const pourDisk = (
  { config, confidential }: DiskImageRequest,
  { plan, files }: Pick<PreparedDiskImage, 'plan' | 'files'>,
) => ({
  blobs: plan.blobs,
  files,
  mode: modeOf({ confidential }),
  lanes: config.build.concurrency,
});

async function prepareDiskImage(
  request: DiskImageRequest,
  tools: BuildTools,
): Promise<PreparedDiskImage> {
  const disk = await collectDisk(request, tools);
  const { layout } = disk;
  return settleDisk({ request, tools, disk }, { product: DISK_IMAGE.name, layout });
}

/** Decides every byte of the disk image that a request describes. */
export async function collectDisk(request: DiskImageRequest, tools: BuildTools) {
  const { engine } = tools;
  const { config, metalImage, diskSize, qcow2 } = request;
  await engine.run(requireDiskTools, { qcow2: qcow2 !== undefined });
  const metal = await engine.run(takeMetalImage, { given: metalImage });
  const menuKargs = [...listFipsKargs(config), ...config.build.kernelArguments];
  const carried = { registryOn: 'partition', menuKargs } as const;
  const collected = await collectLiveParts(request, tools, carried);
  const prepared = engine.run(prepareMetal, {
    metal: fileOf(metal),
    kargs: menuKargs,
    epoch: collected.parts.epoch ?? createdAt(collected.images.release),
  });
  const place = {
    metal: prepared,
    base: fileOf(collected.base),
    ...withoutUndefined({ size: diskSize }),
  };
  const { recovery, data } = layOutIsos(collected.parts, place, tools);
  const layout = await engine.run(layOutDiskImage, { ...place, recovery, data });
  const { files } = await prepared;
  return { collected, metal, files, layout, recovery: await recovery, data: await data };
}

type Settling = {
  readonly request: DiskImageRequest;
  readonly tools: BuildTools;
  readonly disk: Awaited<ReturnType<typeof collectDisk>>;
};

/** Checks the room for the medium with the disk image, and settles its names. */
export async function settleDisk<Medium extends Layout>(
  { request, tools, disk: { collected, layout: disk, ...parts } }: Settling,
  { product, layout }: { readonly product: string; readonly layout: Medium },
) {
  const { config } = request;
  const { images, installer } = collected;
  const { release, catalogs, plan } = images;
  const space = tools.engine.run(checkIsoSize, {
    layout,
    written: disk.written + (layout.size - disk.size),
    plan,
    ...roomOf(request),
    ...withoutUndefined({ maxSize: config.build.maxSize }),
    isLocal: config.mirrorPath !== undefined,
  });
  const found = {
    product,
    channel: config.ocpRelease.channel,
    releases: [release],
    plan,
    catalogs,
    base: await collected.base,
    layout,
    ...(installer && { installer: await installer }),
  };
  return {
    ...parts,
    ...found,
    ...(await tools.resolved.settle(found)),
    release,
    warnings: await collected.listWarnings(),
    space: await space,
    imagePolicy: await collected.imagePolicy,
    registriesConf: tools.registriesConf,
  };
}

type Collected = Awaited<ReturnType<typeof collectLiveParts>>;

/** Lays out the ISO of each partition. */
function layOutIsos(
  { missing, ...parts }: Collected['parts'],
  place: {
    readonly metal: Promise<PreparedMetal>;
    readonly base: Promise<FileInput>;
    readonly size?: number;
  },
  { engine }: BuildTools,
) {
  const { plan, release, catalogs, epoch } = parts;
  const recovery = engine.run(layOutLiveIso, { ...parts, recoveryLabel: RECOVERY_LABEL });
  const data = engine.run(layOutDataIso, {
    ...place,
    plan,
    release,
    catalogs,
    recovery,
    ...withoutUndefined({ missing, epoch }),
  });
  return { recovery, data };
}
