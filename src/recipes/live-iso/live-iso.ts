import { withoutUndefined } from '../../base/lists.ts';
import { diskOf } from '../../outputs/output.ts';
import { checkSize } from '../../stages/lay-out/check-size.ts';
import { fetchBaseIso } from '../../stages/system/fetch-base-iso.ts';
import { describeCatalogs } from '../../media/media-index.ts';
import { layOutLiveIso } from '../../stages/lay-out/lay-out-live-iso.ts';
import { scanBase } from '../../stages/system/scan-base.ts';
import { takeBaseIso } from '../../stages/system/take-base-iso.ts';
import { buildIso } from '../build-iso.ts';
import type { BuildTools } from '../build-tools.ts';
import { makeLock } from '../lock/make-lock.ts';
import { nameField } from '../lock/mismatch.ts';
import { findPlaces, requireLocked, requireLockedInputs } from '../lock/use-lock.ts';
import { fileOf } from '../../base/disk/file-digests.ts';
import { settleTags } from '../moved-tags.ts';
import { digestContents, requirePlanned } from '../saved-plan.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './live-iso-request.ts';
import { describeLiveIso, type LiveIsoReport } from './live-iso-summary.ts';
import { selectImages, type LiveIsoImages } from './live-iso-images.ts';
import { renderIgnition } from './live-iso-ignition.ts';
import { sealValues } from './live-iso-values.ts';

/** From a configuration to every byte of the ISO: what feeds what. */
export async function prepareLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<PreparedLiveIso> {
  requireLockedInputs(request, tools, {
    [nameField('release', 'channel')]: request.config.ocpRelease.channel,
  });
  const { engine } = tools;
  const { config, device, epoch, isThere } = request;
  const { ignitionArea, maxSize } = config.build;
  const values = sealValues(request); // before a stage starts, since it may refuse
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
    appendKargs: config.enableFips ? ['fips=1'] : [],
    ...withoutUndefined({ epoch, places, values, ignitionArea }),
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
      releases: [prepared.release],
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

/** From a configuration to a sealed ISO. */
export const buildLiveIso = (request: LiveIsoRequest, tools: BuildTools): Promise<LiveIsoReport> =>
  buildIso(request, tools, {
    prepare: prepareLiveIso,
    describe: describeLiveIso,
    pour: async (request, { base, plan }) => ({
      blobs: plan.blobs,
      base: await fileOf(base),
      mode: isConfidential(request) ? 0o600 : 0o644,
      lanes: request.config.build.concurrency ?? 8,
    }),
  });

/** Whether the ISO holds what other users of this machine must not read. */
const isConfidential = ({ config }: LiveIsoRequest): boolean =>
  config.userCorePass !== undefined || config.build.embed.pullSecret !== undefined;
