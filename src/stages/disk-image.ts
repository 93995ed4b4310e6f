import { fileOf } from '../base/disk/file-digests.ts';
import { withoutUndefined } from '../base/lists.ts';
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
import type { IsoProduct } from './build.ts';
import { collectLiveParts, listFipsKargs } from './live-parts.ts';
import {
  describeDiskImage,
  summarizeDiskPlan,
  type DiskFacts,
  type DiskImagePlan,
} from './report/disk-image.ts';
import type { DiskImageRequest, PreparedDiskImage } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The disk image as a product: a live ISO in one partition and its registry in another, behind CoreOS's own. */

export const DISK_IMAGE: IsoProduct<DiskImageRequest, PreparedDiskImage, DiskFacts, DiskImagePlan> =
  {
    name: 'disk-image',
    prepare: prepareDiskImage,
    describe: describeDiskImage,
    summarize: summarizeDiskPlan,
    listBlobs: ({ config }, { plan }) => (config.mirrorPath === undefined ? plan.blobs : []),
    pour: async ({ config, confidential }, { base, plan, files }) => ({
      blobs: plan.blobs,
      files: [await fileOf(base), ...files],
      mode: confidential.length > 0 ? 0o600 : 0o644,
      lanes: config.build.concurrency,
    }),
    beside: {
      claim: claimQcow2,
      async write({ output, qcow2 }, _prepared, { engine }) {
        if (qcow2 === undefined) return [];
        return [await engine.run(convertToQcow2, { output, qcow2 })];
      },
    },
  };

async function prepareDiskImage(
  request: DiskImageRequest,
  tools: BuildTools,
): Promise<PreparedDiskImage> {
  const { engine, resolved } = tools;
  const { config, metalImage, diskSize, qcow2 } = request;
  const { channel } = config.ocpRelease;
  await engine.run(requireDiskTools, { qcow2: qcow2 !== undefined });
  const metal = await engine.run(takeMetalImage, { given: metalImage });
  const menuKargs = [...listFipsKargs(config), ...config.build.kernelArguments];
  const carried = { registryOn: 'partition', menuKargs } as const;
  const collected = await collectLiveParts(request, tools, carried);
  const { images, installer } = collected;
  const { release, catalogs, plan } = images;
  const prepared = engine.run(prepareMetal, {
    metal: fileOf(metal),
    kargs: menuKargs,
    epoch: collected.parts.epoch ?? createdAt(release),
  });
  const { recovery, data } = layOutIsos(collected.parts, prepared, tools);
  const layout = await engine.run(layOutDiskImage, {
    metal: prepared,
    recovery,
    base: fileOf(collected.base),
    data,
    ...withoutUndefined({ size: diskSize }),
  });
  const space = engine.run(checkIsoSize, {
    layout,
    written: layout.written,
    plan,
    ...roomOf(request),
    ...withoutUndefined({ maxSize: config.build.maxSize }),
    isLocal: config.mirrorPath !== undefined,
  });
  const found = {
    product: DISK_IMAGE.name,
    channel,
    releases: [release],
    plan,
    catalogs,
    base: await collected.base,
    layout,
    ...(installer && { installer: await installer }),
  };
  return {
    ...found,
    ...(await resolved.settle(found)),
    release,
    metal,
    recovery: await recovery,
    data: await data,
    files: (await prepared).files,
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
  metal: Promise<PreparedMetal>,
  { engine }: BuildTools,
) {
  const { plan, release, catalogs, epoch } = parts;
  return {
    recovery: engine.run(layOutLiveIso, { ...parts, recoveryLabel: RECOVERY_LABEL }),
    data: engine.run(layOutDataIso, {
      plan,
      release,
      catalogs,
      metal,
      ...withoutUndefined({ missing, epoch }),
    }),
  };
}
