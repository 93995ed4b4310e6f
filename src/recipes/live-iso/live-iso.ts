import { withoutUndefined } from '../../base/members.ts';
import { lockOutput } from '../../base/disk/lock.ts';
import { checkSize } from '../../stages/lay-out/check-size.ts';
import { fetchBaseIso } from '../../stages/system/fetch-base-iso.ts';
import { layOutLiveIso } from '../../stages/lay-out/lay-out-live-iso.ts';
import { placeOf } from '../../media/output/claim-iso.ts';
import { pourIso } from '../../stages/pour/pour-iso.ts';
import { scanBase } from '../../stages/system/scan-base.ts';
import { takeBaseIso } from '../../stages/system/take-base-iso.ts';
import type { BuildTools } from '../build-tools.ts';
import { fileOf } from '../../base/disk/file-input.ts';
import { settleTags } from '../moved-tags.ts';
import { digestContents, requirePlanned } from '../saved-plan.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './live-iso-request.ts';
import { describeLiveIso, type LiveIsoReport } from './live-iso-summary.ts';
import { selectImages, type LiveIsoImages } from './live-iso-images.ts';
import { renderIgnition } from './live-iso-ignition.ts';

/** From a configuration to every byte of the ISO: what feeds what. */
export async function prepareLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<PreparedLiveIso> {
  const { engine } = tools;
  const { config, output, epoch } = request;
  const { maxSize } = config.build;
  const images = selectImages(request, tools);
  const { release, catalogs, plan, imagePolicy } = images;
  const base = findBase(request, tools, images);
  const { bootstrap, unconfigured } = renderIgnition(request, tools, images);
  const layout = engine.run(layOutLiveIso, {
    base: fileOf(base),
    scan: engine.run(scanBase, { base: fileOf(base) }),
    release,
    plan,
    bootstrap: bootstrap.then(({ ignition }) => ignition),
    unconfigured,
    appendKargs: [...(config.enableFips ? ['fips=1'] : []), ...config.build.kernelArguments],
    ...withoutUndefined({ epoch }),
  });
  const space = engine.run(checkSize, {
    layout,
    plan,
    output,
    isLocal: config.mirrorPath !== undefined,
    ...withoutUndefined({ maxSize }),
  });
  const { registriesConf } = tools;
  const made = { plan: await plan, catalogs: await catalogs, base: await base, registriesConf };
  const contents = digestContents(made);
  const { warnings } = await bootstrap;
  const prepared = { ...made, contents, warnings, release: await release, layout: await layout };
  if (request.saved) requirePlanned(request.saved, prepared);
  const tags = await settleTags(request, tools, release);
  return { ...prepared, space: await space, imagePolicy: await imagePolicy, tags };
}

/** The live ISO to build on. */
const findBase = (
  { baseIso }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, reserved }: LiveIsoImages,
) =>
  baseIso === undefined
    ? engine.run(fetchBaseIso, { release }, reserved)
    : engine.run(takeBaseIso, { given: baseIso }, reserved);

/** From a configuration to a sealed ISO. Two builds of one output exclude each other. */
export async function buildLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<LiveIsoReport> {
  const unlock = await lockOutput(`${request.output}.lock`);
  try {
    const prepared = await prepareLiveIso(request, tools);
    const report = describeLiveIso(request, prepared);
    const { layout, base, plan } = prepared;
    const poured = await tools.engine.run(pourIso, {
      layout,
      report,
      place: placeOf(request),
      blobs: plan.blobs,
      times: tools.engine.times(),
      base: fileOf(base),
      mode: isConfidential(request) ? 0o600 : 0o644,
      lanes: request.config.build.concurrency ?? 8,
    });
    return { ...report, ...poured };
  } finally {
    await unlock();
  }
}

/** Whether the ISO holds what other users of this machine must not read. */
const isConfidential = ({ config }: LiveIsoRequest): boolean =>
  config.userCorePass !== undefined || config.build.embed.pullSecret !== undefined;
