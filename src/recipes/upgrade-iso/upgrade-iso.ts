import { withoutUndefined } from '../../base/members.ts';
import { withLock } from '../../base/disk/lock.ts';
import { lockPathOf } from '../../media/object/object-place.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { formatReference } from '../../registry/reference.ts';
import { checkSize } from '../../stages/lay-out/check-size.ts';
import { describeCatalogs } from '../../media/index/index-catalogs.ts';
import { layOutUpgradeIso } from '../../stages/lay-out/lay-out-upgrade-iso.ts';
import { planUpgradePath } from '../../stages/content/plan-upgrade-path.ts';
import type { BuildTools } from '../build-tools.ts';
import { pourAndSeal } from '../pour-and-seal.ts';
import { settleTags } from '../moved-tags.ts';
import { digestContents, requirePlanned } from '../saved-plan.ts';
import { findRelease, selectPayload } from '../select-payload.ts';
import { claimSideFiles, writeSideFiles, renderSideFiles } from './side-files.ts';
import { resolveVerified } from '../verified-release.ts';
import type { PreparedUpgradeIso, UpgradeIsoRequest } from './upgrade-iso-request.ts';
import { describeUpgradeIso, type UpgradeIsoReport } from './upgrade-iso-summary.ts';

/** From a configuration to every byte of the ISO and of the files beside it. */
export async function prepareUpgradeIso(
  request: UpgradeIsoRequest,
  tools: BuildTools,
): Promise<PreparedUpgradeIso> {
  const { engine, registriesConf } = tools;
  const { config, output, epoch, saved } = request;
  const { maxSize } = config.build;
  const places = await tools.takeOver();
  const release = findRelease(request, tools);
  const path = findPath(request, tools, release);
  const passed = resolvePassed(request, tools, { release, path });
  const { catalogs, plan, imagePolicy } = selectPayload(config, tools, { release, passed });
  passed.catch(() => undefined); // the stages that wait tell
  const layout = engine.run(layOutUpgradeIso, {
    release,
    passed,
    path,
    plan,
    catalogs: catalogs.then(describeCatalogs),
    ...withoutUndefined({ epoch, places }),
  });
  const space = engine.run(checkSize, {
    layout,
    plan,
    output,
    ...withoutUndefined({ maxSize }),
  });
  const made = { plan: await plan, catalogs: await catalogs, registriesConf };
  const contents = digestContents(made);
  if (saved) requirePlanned(saved, { contents });
  const releases = [...(await passed), await release];
  const prepared = { ...made, contents, release: await release, path: await path, releases };
  const checked = { ...prepared, imagePolicy: await imagePolicy };
  return {
    ...checked,
    layout: await layout,
    space: await space,
    tags: await settleTags(request, tools, release),
    sideFiles: renderSideFiles(request, prepared),
  };
}

/** From where the cluster is, as far as that is known, to the release of the medium. */
async function findPath(
  { from, config, graphUrl }: UpgradeIsoRequest,
  { engine }: BuildTools,
  release: Promise<Release>,
): Promise<UpgradePath> {
  if (from === undefined) {
    const { version, reference } = await release;
    return { hops: [{ version, image: formatReference(reference), risks: [] }] };
  }
  const { channel } = config.ocpRelease;
  return engine.run(planUpgradePath, {
    from,
    release,
    channel,
    arch: release.then(({ arch }) => arch),
    ...withoutUndefined({ graphUrl }),
  });
}

/** The releases between, each by the digest that the graph names. */
async function resolvePassed(
  { config, signatures }: UpgradeIsoRequest,
  tools: BuildTools,
  { release, path }: { readonly release: Promise<Release>; readonly path: Promise<UpgradePath> },
): Promise<readonly Release[]> {
  const { channel } = config.ocpRelease;
  const { arch } = await release;
  const { hops } = await path;
  return Promise.all(
    hops
      .slice(0, -1)
      .map(({ version, image }) =>
        resolveVerified({ url: image, version, channel, arch }, tools, { signatures }),
      ),
  );
}

/**
 * From a configuration to the sealed ISO, and then the files beside it. Two builds of one output exclude
 * each other.
 */
export async function buildUpgradeIso(
  request: UpgradeIsoRequest,
  tools: BuildTools,
): Promise<UpgradeIsoReport> {
  return withLock(lockPathOf(request), async () => {
    const prepared = await prepareUpgradeIso(request, tools);
    await claimSideFiles(prepared.sideFiles, request);
    const report = describeUpgradeIso(request, prepared);
    const { layout, plan } = prepared;
    const made = await pourAndSeal(request, tools, {
      layout,
      report,
      blobs: plan.blobs,
      mode: 0o644,
      lanes: request.config.build.concurrency ?? 8,
    });
    await writeSideFiles(prepared.sideFiles, request);
    return made;
  });
}
