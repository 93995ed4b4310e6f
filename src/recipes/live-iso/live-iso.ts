import { lockOutput } from '../../iso/pour/lock.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { checkMaxSize } from '../../stages/check-max-size.ts';
import { fetchBaseIso } from '../../stages/fetch-base-iso.ts';
import { layOutLiveIso } from '../../stages/lay-out-live-iso.ts';
import { createExtentOpener } from '../../stages/open-extents.ts';
import { readCached } from '../../stages/read-cached.ts';
import { openScannedBase, scanBase } from '../../stages/scan-base.ts';
import type { BuildTools } from '../build-tools.ts';
import { isKept } from '../kept.ts';
import { pourAndSeal } from '../pour-and-seal.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './live-iso-request.ts';
import { sealLiveIso, type LiveIsoReport } from './live-iso-summary.ts';
import { selectImages } from './live-iso-images.ts';
import { kargsOf, renderIgnition } from './live-iso-ignition.ts';
import { surveySpace } from './space.ts';

/** From a configuration to every byte of the ISO: what feeds what. */
export async function prepareLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<PreparedLiveIso> {
  const { release, registryImage, catalogs, plan, reserved } = selectImages(request, tools);
  const { base, scan } = prepareBase(request, tools, { release, reserved });
  const { bootstrap, unconfigured } = renderIgnition(request, tools, {
    ...{ release, plan, catalogs, registryImage, reserved },
  });
  const layout = tools.engine.stage({
    name: 'lay out ISO',
    inputs: { base, scan, release, plan, bootstrap, unconfigured },
    run: async ({ base, scan, ...parts }, { signal }) =>
      layOutLiveIso({
        ...parts,
        base: await openScannedBase(base.path, scan),
        readManifest: (manifest) => readCached(tools.cache, manifest, signal),
        appendKargs: kargsOf(request.config),
        epoch: request.epoch ?? Math.floor(Date.parse(parts.release.created) / 1000),
      }),
  });
  const prepared = {
    ...{ release: await release, plan: await plan, catalogs: await catalogs },
    ...{ base: await base, layout: await layout },
  };
  checkMaxSize(prepared.layout.size, request.config.build.maxSize, prepared.plan);
  return { ...prepared, space: await surveySpace(prepared, request, tools.cache) };
}

/** The live ISO to build on, and where every byte of it is. */
function prepareBase(
  request: LiveIsoRequest,
  tools: BuildTools,
  planned: { readonly release: Promise<Release>; readonly reserved: Promise<unknown> },
) {
  const { engine, client, cache, http, tls } = tools;
  const { config, workDir, baseIso } = request;
  const arch = config.ocpRelease.cpuArchitecture;
  const base = engine.stage({
    name: 'fetch base ISO',
    inputs: { release: planned.release, arch, workDir, given: baseIso },
    after: planned.reserved,
    isUsable: isKept,
    run: ({ given, ...input }, { signal, onProgress }) =>
      fetchBaseIso(
        { ...input, ...(given && { given }) },
        { client, cache, http, tls, signal, onProgress },
      ),
  });
  const scan = engine.stage({
    name: 'scan base ISO',
    inputs: { base },
    isUsable: () => true,
    run: ({ base }) => scanBase(base),
  });
  return { base, scan };
}

/** From a configuration to a sealed ISO. Two builds of one output exclude each other. */
export async function buildLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<LiveIsoReport> {
  const unlock = await lockOutput(`${request.output}.lock`);
  try {
    const prepared = await prepareLiveIso(request, tools);
    return await pourLiveIso(prepared, request, tools);
  } finally {
    await unlock();
  }
}

function pourLiveIso(
  prepared: PreparedLiveIso,
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<LiveIsoReport> {
  const { layout, base, plan } = prepared;
  const { client, cache } = tools;
  return pourAndSeal(tools.engine, {
    pour: {
      ...{ layout, output: request.output },
      mode: isConfidential(request) ? 0o600 : 0o644,
      openExtent: createExtentOpener({ base: base.path, blobs: plan.blobs, cache, client }),
      lanes: request.config.build.concurrency ?? 8,
    },
    seal: (poured, milliseconds) => sealLiveIso({ prepared, poured, milliseconds }, request, tools),
  });
}

/** Whether the ISO holds what other users of this machine must not read. */
const isConfidential = ({ config }: LiveIsoRequest): boolean =>
  config.userCorePass !== undefined || config.build.embed.pullSecret !== undefined;
