import { describeCatalogs } from '../media/index-catalogs.ts';
import { withoutUndefined } from '../base/lists.ts';
import { listGatedBundles } from '../openshift/catalog/selected.ts';
import { listGatedUpdates, requireGates } from '../openshift/release/gated-path.ts';
import { type Gate, listGates } from '../openshift/release/gates.ts';
import { leavesOverrides } from '../openshift/release/image-policy.ts';
import type { Release } from '../openshift/release/release.ts';
import { digestOfPath, noteOfPath, type UpgradePath } from '../openshift/release/upgrade-path.ts';
import { roomOf } from '../outputs/place.ts';
import { formatReference } from '../registry/index.ts';
import { planUpgradePath } from './1-resolve/plan-upgrade-path.ts';
import { readLeftGates } from './1-resolve/read-left-gates.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutUpgradeIso } from './4-lay-out/lay-out-upgrade-iso.ts';
import { buildIso } from './build.ts';
import { resolvePayload, judgeImages, resolveVerified, selectPayload } from './payload.ts';
import {
  claimSideFiles,
  writeSideFiles,
  renderSideFiles,
  describeUpgradeIso,
  type UpgradeIsoReport,
} from './report/upgrade-iso.ts';
import type { PreparedUpgradeIso, UpgradeIsoRequest } from './request.ts';
import { nameField } from './resolved/record.ts';
import {
  makeLock,
  findPlaces,
  heldBy,
  requireLocked,
  requireLockedInputs,
} from './resolved/use.ts';
import { settleTags } from './resolved/moved-tags.ts';
import { digestContents, requirePlanned } from './resolved/saved-plan.ts';
import type { BuildTools } from './tools.ts';

/*
 * The upgrade ISO as a product: it connects the steps that decide its bytes and the files next to
 * it, and hands them to `buildIso`.
 */

/** Builds the sealed ISO from a configuration, and then the files next to it. */
export const buildUpgradeIso = (
  request: UpgradeIsoRequest,
  tools: BuildTools,
): Promise<UpgradeIsoReport> =>
  buildIso(request, tools, {
    prepare: prepareUpgradeIso,
    describe: describeUpgradeIso,
    pour: ({ config }, { plan }) =>
      Promise.resolve({
        blobs: plan.blobs,
        mode: 0o644,
        lanes: config.build.concurrency,
      }),
    beside: {
      claim: (request, { sideFiles }) => claimSideFiles(sideFiles, request),
      write: (request, { sideFiles }) => writeSideFiles(sideFiles, request),
    },
  });

/** Decides every byte of the ISO and of the files next to it from a configuration. */
export async function prepareUpgradeIso(
  request: UpgradeIsoRequest,
  tools: BuildTools,
): Promise<PreparedUpgradeIso> {
  const { engine, registriesConf } = tools;
  const { config, epoch, saved } = request;
  const { channel } = config.ocpRelease;
  requireLockedInputs(request, tools, {
    [nameField('release', 'channel')]: channel,
    'path.from': request.from,
  });
  const { maxSize } = config.build;
  const places = await findPlaces(request, tools);
  const release = resolvePayload(request, tools);
  const path = findPath(request, tools, release);
  const passed = resolvePassed(request, tools, { release, path });
  const { catalogs, plan } = selectPayload(config, tools, { release, passed });
  const imagePolicy = judgeImages({ release, plan }, tools);
  passed.catch(() => undefined); // the stages that wait for it report its failure
  const layout = engine.run(layOutUpgradeIso, {
    release,
    passed,
    path,
    plan,
    catalogs: catalogs.then(describeCatalogs),
    ...withoutUndefined({ epoch, places }),
  });
  const space = engine.run(checkIsoSize, {
    layout,
    plan,
    ...roomOf(request),
    ...withoutUndefined({ maxSize }),
  });
  const made = { plan: await plan, catalogs: await catalogs, registriesConf };
  const contents = digestContents(made);
  const releases = [...(await passed), await release];
  const gates = await planGates(request, tools, {
    path: await path,
    releases,
    catalogs: made.catalogs,
  });
  const { acknowledged } = request;
  const known = { release: await release, path: await path, releases, gates, acknowledged };
  const prepared = { ...made, ...known, contents };
  const tags = await settleTags(request, tools, release);
  const settled = { ...prepared, layout: await layout, tags };
  const lock = makeLock({ product: 'upgrade-iso', channel, ...settled }, tools);
  requireLocked(request.lock, lock);
  if (saved) requirePlanned(saved, { contents });
  return {
    ...settled,
    lock,
    imagePolicy: await imagePolicy,
    space: await space,
    sideFiles: renderSideFiles(request, prepared),
  };
}

/**
 * Finds the path from the cluster's version, as far as that is known, to the release of the
 * medium.
 */
async function findPath(
  { from, config, graphUrl, lock }: UpgradeIsoRequest,
  { engine, tags }: BuildTools,
  release: Promise<Release>,
): Promise<UpgradePath> {
  const held = heldBy(lock)?.path;
  if (held || from === undefined) {
    const { version, reference } = await release;
    const target = { version, image: formatReference(reference) };
    const { hops, ...start } = held ?? { hops: [] };
    return { ...start, hops: [...hops.slice(0, -1), { risks: [], ...hops.at(-1), ...target }] };
  }
  const { channel } = config.ocpRelease;
  const path = await engine.run(planUpgradePath, {
    from,
    release,
    channel,
    arch: release.then(({ arch }) => arch),
    ...withoutUndefined({ graphUrl }),
  });
  tags.note(noteOfPath(from, (await release).version, channel), digestOfPath(path));
  return path;
}

/** Resolves the releases between, each by the digest that the graph names. */
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

/** Lists the gates on the path, and refuses acknowledgements that fit none. */
async function planGates(
  { config, acknowledged }: UpgradeIsoRequest,
  { engine }: BuildTools,
  carried: Pick<PreparedUpgradeIso, 'path' | 'releases' | 'catalogs'>,
): Promise<readonly Gate[]> {
  const { path, releases, catalogs } = carried;
  const arch = releases.at(-1)?.arch ?? 'x86_64';
  const { from: version, fromImage: image } = path;
  const left =
    version === undefined
      ? undefined
      : await engine.run(readLeftGates, { version, arch, ...withoutUndefined({ image }) });
  const updates = listGatedUpdates({ path, releases, ...withoutUndefined({ left }) });
  const gates = listGates({
    updates,
    arch,
    bundles: catalogs.flatMap(listGatedBundles),
    hasOverrides: leavesOverrides(version, config.build.disableImagePolicy),
  });
  requireGates(acknowledged, updates, gates);
  return gates;
}
