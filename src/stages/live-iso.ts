import { describeCatalogs } from '../media/index-catalogs.ts';
import { fileOf } from '../base/disk/file-digests.ts';
import { objectOrEmpty, withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { readSshKeys } from '../keys/index.ts';
import type { HostNetwork } from '../nmstate/index.ts';
import { findFirstAddress, WITHOUT_RENDEZVOUS } from '../openshift/agent/rendezvous.ts';
import { readOnlyResource } from '../openshift/agent/resources.ts';
import { requireUsable } from '../openshift/agent/unusable.ts';
import type { CustomValues } from '../openshift/agent/values.ts';
import { OVERRIDE_PATHS } from '../openshift/installer/overrides.ts';
import { toRpmName } from '../openshift/release/bundle.ts';
import { roomOf } from '../outputs/place.ts';
import { fetchBaseIso, scanBase, takeBaseIso } from './1-resolve/fetch-base-iso.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutLiveIso } from './4-lay-out/lay-out-live-iso.ts';
import { buildIso } from './build.ts';
import { renderIgnition } from './ignition.ts';
import { selectImages } from './live-content.ts';
import type { LiveIsoImages } from './payload.ts';
import { describeLiveIso, type LiveIsoReport } from './report/live-iso.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './request.ts';
import { nameField } from './resolved/record.ts';
import { makeLock, findPlaces, requireLocked, requireLockedInputs } from './resolved/use.ts';
import { settleTags } from './resolved/moved-tags.ts';
import { digestContents, requirePlanned } from './resolved/saved-plan.ts';
import type { BuildTools } from './tools.ts';

/*
 * The live ISO as a product: it connects the steps that decide its bytes, and hands them to
 * `buildIso`.
 */

/** Builds a sealed ISO from a configuration. */
export const buildLiveIso = (request: LiveIsoRequest, tools: BuildTools): Promise<LiveIsoReport> =>
  buildIso(request, tools, {
    prepare: prepareLiveIso,
    describe: describeLiveIso,
    pour: async (request, { base, plan }) => ({
      blobs: plan.blobs,
      base: await fileOf(base),
      mode: listConfidential(request).length > 0 ? 0o600 : 0o644,
      lanes: request.config.build.concurrency,
    }),
  });

/** Decides every byte of the ISO from a configuration: which stage feeds which. */
export async function prepareLiveIso(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<PreparedLiveIso> {
  requireLockedInputs(request, tools, {
    [nameField('release', 'channel')]: request.config.ocpRelease.channel,
  });
  const { engine } = tools;
  const { config, epoch } = request;
  const { ignitionArea, maxSize } = config.build;
  const values = sealValues(request); // before a stage starts, since it may refuse
  const places = await findPlaces(request, tools);
  const images = selectImages(request, tools);
  const { release, catalogs, plan, imagePolicy, complete } = images;
  const base = findBase(request, tools, images);
  const { bootstrap, unconfigured, installer } = renderIgnition(request, tools, images);
  const layout = engine.run(layOutLiveIso, {
    base: fileOf(base),
    scan: engine.run(scanBase, { base: fileOf(base) }),
    release,
    plan,
    catalogs: catalogs.then(describeCatalogs),
    ...(complete && { missing: complete.then((absent) => absent.map(({ image }) => image)) }),
    bootstrap: bootstrap.then(({ ignition }) => ignition),
    unconfigured,
    appendKargs: config.enableFips ? ['fips=1'] : [],
    ...withoutUndefined({ epoch, places, values, ignitionArea }),
  });
  const space = engine.run(checkIsoSize, {
    layout,
    plan,
    ...roomOf(request),
    isLocal: config.mirrorPath !== undefined,
    ...withoutUndefined({ maxSize }),
  });
  const { registriesConf } = tools;
  const made = { plan: await plan, catalogs: await catalogs, base: await base, registriesConf };
  const contents = digestContents(made);
  const warnings = [...(await bootstrap).warnings, ...warnOfHosts(request)];
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

/** Finds the live ISO to build on. */
const findBase = (
  { baseIso }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, reserved }: LiveIsoImages,
) =>
  baseIso === undefined
    ? engine.run(fetchBaseIso, { release }, reserved)
    : engine.run(takeBaseIso, { given: baseIso }, reserved);

/**
 * Seals the values of the request that belong to a site: the same bytes are on the medium when
 * they are added later.
 */
function sealValues(request: LiveIsoRequest): Secret | undefined {
  const values = listValues(request);
  return Object.keys(values).length === 0 ? undefined : new Secret(JSON.stringify(values));
}

function listValues({ config, ignition, hosts, overrides }: LiveIsoRequest): CustomValues {
  const { kernelArguments, embed } = config.build;
  const forAgents = ignition === 'installer' ? readForAgents(hosts, overrides.infraEnv) : {};
  const { sshKey } = config;
  return {
    ...withoutUndefined({
      sshKeys: sshKey === undefined ? undefined : readSshKeys(sshKey).keys.map(({ line }) => line),
      pullSecret: embed.pullSecret?.reveal(),
      kargs: kernelArguments.length === 0 ? undefined : { append: kernelArguments },
    }),
    ...forAgents,
  };
}

const warnOfHosts = ({ hosts = [] }: LiveIsoRequest): readonly string[] =>
  hosts.length === 0 || findFirstAddress(hosts) !== undefined ? [] : [WITHOUT_RENDEZVOUS];

/** Reads the values that only the agent-based installer has a place for. */
function readForAgents(hosts: readonly HostNetwork[] = [], infraEnv?: string): CustomValues {
  const networks = hosts.length > 0 ? { hosts } : {};
  if (infraEnv === undefined) return networks;
  const resource = readOnlyResource(infraEnv, OVERRIDE_PATHS.infraEnv, 'InfraEnv');
  requireUsable(resource);
  const { value, spec } = resource;
  const { sshAuthorizedKey, proxy, cpuArchitecture } = spec;
  const isNamed = typeof cpuArchitecture === 'string';
  const named = isNamed ? { cpuArchitecture: toRpmName(cpuArchitecture) } : {};
  return {
    ...networks,
    ...(typeof sshAuthorizedKey === 'string' && { sshKeys: [sshAuthorizedKey] }),
    ...(proxy !== undefined && { proxy: objectOrEmpty(proxy) }),
    infraEnv: { metadata: objectOrEmpty(value['metadata']), spec: { ...spec, ...named } },
  };
}

/** The settings that put secrets on the ISO, which others must not read. */
export const listConfidential = ({ config }: LiveIsoRequest): readonly string[] => [
  ...(config.userCorePass === undefined ? [] : ['userCorePass']),
  ...(config.build.embed.pullSecret === undefined ? [] : ['build.embed.pullSecret']),
];
