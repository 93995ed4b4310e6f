import { withoutUndefined } from '../../base/members.ts';
import { withLock } from '../../base/disk/lock.ts';
import { diskOf, lockPathOf } from '../../media/object/object-place.ts';
import { checkSize } from '../../stages/lay-out/check-size.ts';
import { fetchBaseIso } from '../../stages/system/fetch-base-iso.ts';
import { describeCatalogs } from '../../media/index/index-catalogs.ts';
import { layOutLiveIso } from '../../stages/lay-out/lay-out-live-iso.ts';
import { scanBase } from '../../stages/system/scan-base.ts';
import { takeBaseIso } from '../../stages/system/take-base-iso.ts';
import type { BuildTools } from '../build-tools.ts';
import type { Lock } from '../lock/lock-file.ts';
import {
  claimLock,
  findPlaces,
  makeLock,
  requireLocked,
  requireLockedConfig,
  writeLock,
} from '../lock/use-lock.ts';
import { pourAndSeal } from '../pour-and-seal.ts';
import { fileOf } from '../../base/disk/file-input.ts';
import { describeAsked, findUnchanged, rememberFinished } from '../unchanged-iso.ts';
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
  requireLockedConfig(request, tools);
  const { engine } = tools;
  const { config, device, epoch, isThere } = request;
  const { maxSize } = config.build;
  const places = await findPlaces(request, tools);
  const images = selectImages(request, tools);
  const { release, catalogs, plan, imagePolicy } = images;
  const base = findBase(request, tools, images);
  const { bootstrap, unconfigured, installer } = renderIgnition(request, tools, images);
  const layout = engine.run(layOutLiveIso, {
    base: fileOf(base),
    scan: engine.run(scanBase, { base: fileOf(base) }),
    release,
    plan,
    catalogs: catalogs.then(describeCatalogs),
    bootstrap: bootstrap.then(({ ignition }) => ignition),
    unconfigured,
    appendKargs: [...(config.enableFips ? ['fips=1'] : []), ...config.build.kernelArguments],
    ...withoutUndefined({ epoch, places }),
  });
  const space = engine.run(checkSize, {
    layout,
    plan,
    ...diskOf(request),
    isLocal: config.mirrorPath !== undefined,
    ...withoutUndefined({ maxSize, isThere, device }),
  });
  const { registriesConf } = tools;
  const made = { plan: await plan, catalogs: await catalogs, base: await base, registriesConf };
  const contents = digestContents(made);
  const { warnings } = await bootstrap;
  const prepared = { ...made, contents, warnings, release: await release, layout: await layout };
  const settled = { ...prepared, tags: await settleTags(request, tools, release) };
  const lock = makeLock(
    {
      product: 'live-iso',
      channel: config.ocpRelease.channel,
      ...settled,
      ...(installer && { installer: await installer }),
    },
    tools,
  );
  requireLocked(request.lock, lock);
  if (request.saved) requirePlanned(request.saved, prepared);
  return { ...settled, space: await space, imagePolicy: await imagePolicy, lock };
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
  return withLock(lockPathOf(request), async () => {
    await claimLock(request);
    const asked = await describeAsked(request, tools);
    const unchanged = await findUnchanged<LiveIsoReport>({ asked, request }, tools);
    if (unchanged) return unchanged;
    const prepared = await prepareLiveIso(request, tools);
    const report = describeLiveIso(request, prepared);
    const { layout, base, plan } = prepared;
    const made = await pourAndSeal(request, tools, {
      layout,
      report,
      blobs: plan.blobs,
      base: await fileOf(base),
      mode: isConfidential(request) ? 0o600 : 0o644,
      lanes: request.config.build.concurrency ?? 8,
    });
    await writeLock(request, prepared.lock, tools);
    await rememberFinished({ asked, request, tags: prepared.tags }, tools);
    return made;
  });
}

/** From a configuration to a lock, without an ISO. */
export async function lockLiveIso(request: LiveIsoRequest, tools: BuildTools): Promise<Lock> {
  await claimLock(request);
  const { lock } = await prepareLiveIso(request, tools);
  await writeLock(request, lock, tools);
  return lock;
}

/** Whether the ISO holds what other users of this machine must not read. */
const isConfidential = ({ config }: LiveIsoRequest): boolean =>
  config.userCorePass !== undefined || config.build.embed.pullSecret !== undefined;
