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
import { checkImagePolicy } from './2-select/check-image-policy.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutUpgradeIso } from './4-lay-out/lay-out-upgrade-iso.ts';
import type { IsoProduct } from './build.ts';
import { resolvePayload, resolveVerified, selectPayload } from './payload.ts';
import {
  claimSideFiles,
  writeSideFiles,
  renderSideFiles,
  describeUpgradeIso,
  summarizeUpgradePlan,
  type UpgradeFacts,
  type UpgradeIsoPlan,
} from './report/upgrade-iso.ts';
import type { PreparedUpgradeIso, UpgradeIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The upgrade ISO as a product: it connects the steps that decide its bytes and the files next to it. */

export const UPGRADE_ISO: IsoProduct<
  UpgradeIsoRequest,
  PreparedUpgradeIso,
  UpgradeFacts,
  UpgradeIsoPlan
> = {
  name: 'upgrade-iso',
  prepare: prepareUpgradeIso,
  describe: describeUpgradeIso,
  summarize: (_request, prepared) => summarizeUpgradePlan(prepared),
  listBlobs: (_request, { plan }) => plan.blobs,
  pour: ({ config }, { plan }) =>
    Promise.resolve({ blobs: plan.blobs, mode: 0o644, lanes: config.build.concurrency }),
  beside: {
    claim: (request, { sideFiles }) => claimSideFiles(sideFiles, request),
    write: (request, { sideFiles }) => writeSideFiles(sideFiles, request),
  },
};

async function prepareUpgradeIso(
  request: UpgradeIsoRequest,
  tools: BuildTools,
): Promise<PreparedUpgradeIso> {
  const { engine, resolved, registriesConf } = tools;
  const { config, epoch, from, acknowledged } = request;
  const { channel } = config.ocpRelease;
  resolved.require({ release: { channel }, ...(from !== undefined && { path: { from } }) });
  const { maxSize } = config.build;
  const places = await tools.takeOver();
  const release = await resolvePayload(request, tools);
  const path = await findPath(request, tools, release);
  const passed = await resolvePassed(request, tools, { release, path });
  const { catalogs, plan } = await selectPayload(config, tools, { release, passed });
  const releases = [...passed, release];
  const found = { product: UPGRADE_ISO.name, channel, plan, catalogs, releases, path };
  const gates = await planGates(request, tools, found);
  const imagePolicy = engine.run(checkImagePolicy, { release, plan });
  const layout = engine.run(layOutUpgradeIso, {
    release,
    passed,
    path,
    plan,
    catalogs,
    ...withoutUndefined({ epoch, places }),
  });
  const space = engine.run(checkIsoSize, {
    layout,
    plan,
    ...roomOf(request),
    ...withoutUndefined({ maxSize }),
  });
  const settled = await resolved.settle({ ...found, layout: await layout });
  const known = { ...found, release, gates, acknowledged, registriesConf };
  return {
    ...known,
    ...settled,
    layout: await layout,
    imagePolicy: await imagePolicy,
    space: await space,
    sideFiles: renderSideFiles(request, known),
  };
}

/** Finds the path from the cluster's version, as far as that is known, to the release of the medium. */
async function findPath(
  { from, config, graphUrl }: UpgradeIsoRequest,
  { engine, resolved }: BuildTools,
  release: Release,
): Promise<UpgradePath> {
  const { version, reference, arch } = release;
  const held = resolved.locked?.path;
  if (held || from === undefined) {
    const target = { version, image: formatReference(reference) };
    const { hops, ...start } = held ?? { hops: [] };
    return { ...start, hops: [...hops.slice(0, -1), { risks: [], ...hops.at(-1), ...target }] };
  }
  const { channel } = config.ocpRelease;
  const wanted = { from, release, channel, arch, ...withoutUndefined({ graphUrl }) };
  const path = await engine.run(planUpgradePath, wanted);
  resolved.note(noteOfPath(from, version, channel), digestOfPath(path));
  return path;
}

/** Resolves the releases between, each by the digest that the graph names. */
const resolvePassed = (
  { config, signatures }: UpgradeIsoRequest,
  tools: BuildTools,
  { release: { arch }, path }: { readonly release: Release; readonly path: UpgradePath },
): Promise<readonly Release[]> =>
  Promise.all(
    path.hops.slice(0, -1).map(({ version, image }) => {
      const { channel } = config.ocpRelease;
      return resolveVerified({ url: image, version, channel, arch }, tools, { signatures });
    }),
  );

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
