import { fileOf } from '../base/disk/file-digests.ts';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { formatValidIgnition } from '../ignition/index.ts';
import { BLOCK_SIZE } from '../iso/index.ts';
import { renderDeploymentIgnition, type DeployedPlaces } from '../openshift/node/deployment.ts';
import { hashCorePassword } from '../openshift/node/install.ts';
import { describeRelease } from '../openshift/release/release.ts';
import { scanBase } from './1-resolve/fetch-base-iso.ts';
import type { DiskLayout } from './4-lay-out/lay-out-disk-image.ts';
import { layOutInstallationIso } from './4-lay-out/lay-out-installation-iso.ts';
import type { IsoProduct } from './build.ts';
import { collectDisk, pourDisk, settleDisk } from './disk-image.ts';
import { saltPassword } from './ignition.ts';
import { linesOf } from './live-parts.ts';
import {
  describeDeploymentIso,
  summarizeDeploymentPlan,
  type DeploymentFacts,
  type DeploymentIsoPlan,
} from './report/disk-image.ts';
import type { DeploymentIsoRequest, PreparedDeploymentIso } from './disk-request.ts';
import type { BuildTools } from './tools.ts';

/* The deployment ISO as a product: a live ISO that carries a disk image and writes it to a disk. */

export const DEPLOYMENT_ISO: IsoProduct<
  DeploymentIsoRequest,
  PreparedDeploymentIso,
  DeploymentFacts,
  DeploymentIsoPlan
> = {
  name: 'deployment-iso',
  prepare: prepareDeploymentIso,
  describe: describeDeploymentIso,
  summarize: summarizeDeploymentPlan,
  listBlobs: ({ config }, { plan }) => (config.mirrorPath === undefined ? plan.blobs : []),
  pour: async (request, prepared) => ({
    ...pourDisk(request, prepared),
    base: await fileOf(prepared.base),
  }),
};

async function prepareDeploymentIso(
  request: DeploymentIsoRequest,
  tools: BuildTools,
): Promise<PreparedDeploymentIso> {
  const { engine } = tools;
  const disk = await collectDisk(request, tools);
  const { release } = disk.collected.images;
  const base = fileOf(disk.collected.base);
  const { layout, embedArea } = await engine.run(layOutInstallationIso, {
    base,
    scan: engine.run(scanBase, { base }),
    architecture: release.arch,
    ignition: new Secret(await renderIgnition(request, tools, disk.layout)),
    release: describeRelease(release),
    disk: disk.layout,
    ...withoutUndefined({ epoch: request.epoch }),
  });
  const settled = await settleDisk(
    { request, tools, disk },
    { product: DEPLOYMENT_ISO.name, layout },
  );
  return { ...settled, disk: disk.layout, embedArea };
}

async function renderIgnition(
  request: DeploymentIsoRequest,
  tools: BuildTools,
  layout: DiskLayout,
): Promise<string> {
  const { sshKey } = request.config;
  const { password } = saltPassword(request, tools);
  const config = renderDeploymentIgnition({
    ...request.deployment,
    places: listPlaces(layout),
    sshKeys: linesOf(sshKey) ?? [],
    ...(password && {
      passwordHash: await password.then(({ text, salt }) => hashCorePassword(text.reveal(), salt)),
    }),
  });
  return formatValidIgnition(config, 'Ignition config of the deployment ISO');
}

function listPlaces({ size, bootEnd, partitions }: DiskLayout): DeployedPlaces {
  const { root, recovery, data } = partitions;
  return {
    imageBlocks: size / BLOCK_SIZE,
    bootEnd: bootEnd / BLOCK_SIZE,
    rootStart: root.first,
    recoveryStart: recovery.first,
    dataStart: data.first,
    dataEnd: data.last + 1,
  };
}
