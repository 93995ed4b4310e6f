import { fileOf } from '../base/disk/file-digests.ts';
import { withoutUndefined } from '../base/lists.ts';
import { roomOf } from '../outputs/place.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutLiveIso } from './4-lay-out/lay-out-live-iso.ts';
import type { IsoProduct } from './build.ts';
import { collectLiveParts } from './live-parts.ts';
import {
  describeLiveIso,
  summarizePlan,
  type LiveFacts,
  type LiveIsoPlan,
} from './report/live-iso.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The live ISO as a product: it connects the steps that decide its bytes. */

export const LIVE_ISO: IsoProduct<LiveIsoRequest, PreparedLiveIso, LiveFacts, LiveIsoPlan> = {
  name: 'live-iso',
  prepare: prepareLiveIso,
  describe: describeLiveIso,
  summarize: summarizePlan,
  listBlobs: ({ config }, { plan }) => (config.mirrorPath === undefined ? plan.blobs : []),
  pour: async (request, { base, plan }) => ({
    blobs: plan.blobs,
    base: await fileOf(base),
    mode: request.confidential.length > 0 ? 0o600 : 0o644,
    lanes: request.config.build.concurrency,
  }),
};

async function prepareLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<PreparedLiveIso> {
  const { engine, resolved } = tools;
  const { config } = request;
  const { channel } = config.ocpRelease;
  const { parts, images, listWarnings, ...collected } = await collectLiveParts(request, tools);
  const { release, catalogs, plan } = images;
  const layout = engine.run(layOutLiveIso, parts);
  const space = engine.run(checkIsoSize, {
    layout,
    plan,
    ...roomOf(request),
    ...withoutUndefined({ maxSize: config.build.maxSize }),
    isLocal: config.mirrorPath !== undefined,
  });
  const { installer } = collected;
  const found = {
    product: LIVE_ISO.name,
    channel,
    releases: [release],
    plan,
    catalogs,
    base: await collected.base,
    layout: await layout,
    ...(installer && { installer: await installer }),
  };
  return {
    ...found,
    ...(await resolved.settle(found)),
    release,
    warnings: await listWarnings(),
    space: await space,
    imagePolicy: await collected.imagePolicy,
    registriesConf: tools.registriesConf,
  };
}
