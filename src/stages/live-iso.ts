import { describeCatalogs } from '../media/index-catalogs.ts';
import { fileOf } from '../base/disk/file-digests.ts';
import { ConfigError } from '../base/errors.ts';
import { objectOrEmpty, withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { HostNetwork } from '../nmstate/index.ts';
import { findFirstAddress, WITHOUT_RENDEZVOUS } from '../openshift/agent/rendezvous.ts';
import { readOnlyResource } from '../openshift/agent/resources.ts';
import { requireUsable } from '../openshift/agent/unusable.ts';
import type { CustomValues } from '../openshift/agent/values.ts';
import { OVERRIDE_PATHS } from '../openshift/installer/overrides.ts';
import { CONFIGURE } from '../openshift/mirror/server.ts';
import type { AbsentImage } from '../openshift/mirror/closure.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../openshift/node/registry.ts';
import { toRpmName } from '../openshift/release/bundle.ts';
import type { Release } from '../openshift/release/release.ts';
import { isMinorVersion } from '../openshift/release/version.ts';
import type { SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { roomOf } from '../outputs/place.ts';
import { formatReference, parseReference } from '../registry/index.ts';
import { fetchBaseIso, scanBase, takeBaseIso } from './1-resolve/fetch-base-iso.ts';
import { surveyWorkspace } from './1-resolve/survey-workspace.ts';
import { checkComplete } from './2-select/check-complete.ts';
import { checkSpace } from './2-select/check-space.ts';
import { checkSize } from './4-lay-out/check-size.ts';
import { layOutLiveIso } from './4-lay-out/lay-out-live-iso.ts';
import { buildIso } from './build.ts';
import { renderIgnition } from './ignition.ts';
import {
  type ClusterContent,
  findRelease,
  judgeImages,
  type LiveIsoImages,
  selectPayload,
  selectRegistryImage,
} from './payload.ts';
import { describeLiveIso, type LiveIsoReport } from './report/live-iso.ts';
import type { LiveIsoRequest, PreparedLiveIso } from './request.ts';
import { nameField } from './resolved/record.ts';
import {
  makeLock,
  findPlaces,
  requireLocked,
  requireLockedInputs,
  settleTags,
  digestContents,
  requirePlanned,
} from './resolved/use.ts';
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
      mode: isConfidential(request) ? 0o600 : 0o644,
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
  const space = engine.run(checkSize, {
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

/**
 * Selects the release and every image by digest; `reserved` resolves when there is room for them.
 */
function selectImages(request: LiveIsoRequest, tools: BuildTools): LiveIsoImages {
  const { config, disableImagePolicy } = request;
  const { maxSize } = config.build;
  const images = selectPlanned(request, tools);
  const complete = proveComplete(request, tools, images);
  const input = { plan: images.plan, ...roomOf(request), ...withoutUndefined({ maxSize }) };
  return {
    ...images,
    reserved: tools.engine.run(checkSpace, input, complete),
    imagePolicy: judgeImages(images, tools, disableImagePolicy),
    ...(complete && { complete }),
  };
}

/** The content of a live ISO as it is planned, without the checks of a medium. */
export function selectPlanned(
  request: LiveIsoRequest,
  tools: BuildTools,
): Omit<LiveIsoImages, 'reserved' | 'imagePolicy' | 'complete'> {
  const { config, graphUrl, saved, signatures } = request;
  const found = findContent(request, tools);
  const { release, workspace } = found;
  const { uri } = config.imageRegistry;
  const registryImage = release.then((release) =>
    selectRegistryImage(
      {
        release,
        uri,
        saved,
        configure: CONFIGURE,
        isOffline: workspace !== undefined,
        signatures,
        ...withoutUndefined({ graphUrl }),
      },
      tools,
    ),
  );
  registryImage.catch(() => undefined); // the stages that wait for it report its failure
  const server = registryImage.then(({ reference }) => reference);
  return {
    ...found,
    ...selectCarried(request, tools, { ...found, registryImage: server }),
    registryImage,
  };
}

/** The content that a cluster gets: a medium has the registry server, too. */
export function selectContent(request: LiveIsoRequest, tools: BuildTools): ClusterContent {
  const found = findContent(request, tools);
  return { ...found, ...selectCarried(request, tools, found) };
}

type FoundContent = Pick<ClusterContent, 'release' | 'workspace'>;

function findContent(request: LiveIsoRequest, tools: BuildTools): FoundContent {
  const { config } = request;
  const workspace = findWorkspace(config, tools.engine);
  if (!workspace) return { release: findRelease(request, tools) };
  const release = findRelease(request, tools, workspace).then((release) =>
    requireMinor(config.ocpRelease.version, release),
  );
  return { release, workspace };
}

const selectCarried = (
  { config }: LiveIsoRequest,
  tools: BuildTools,
  carried: Parameters<typeof selectPayload>[2],
): ReturnType<typeof selectPayload> =>
  selectPayload(carried.workspace ? nameCopies(config) : config, tools, carried);

function findWorkspace(
  { mirrorPath: directory, enableInteractiveFlow }: ApplianceConfig,
  engine: BuildTools['engine'],
): Promise<SurveyedWorkspace> | undefined {
  if (directory === undefined) return undefined;
  const registry = `${nodeRegistryDomain(enableInteractiveFlow)}:${NODE_REGISTRY_PORT}`;
  const workspace = engine.run(surveyWorkspace, { directory, registry });
  workspace.catch(() => undefined); // the stages that wait for it report its failure
  return workspace;
}

/** A workspace may be the rest of a partial mirror; registries have what the plan has read. */
function proveComplete(
  { allowIncomplete }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, plan, workspace }: ClusterContent,
): Promise<readonly AbsentImage[]> | undefined {
  if (workspace === undefined) return undefined;
  const arch = release.then(({ arch }) => arch);
  const complete = engine.run(checkComplete, { plan, workspace, arch, allowIncomplete });
  complete.catch(() => undefined); // the stages that wait for it report its failure
  return complete;
}

/** Renames images to their copies in the mirror, if the configuration gives them other names. */
function nameCopies(config: ApplianceConfig): ApplianceConfig {
  const { additionalImages, operators } = config;
  return {
    ...config,
    additionalImages: additionalImages.map(({ name, targetRepo, targetTag }) => ({
      name: nameCopy(name, targetRepo, targetTag),
    })),
    operators: operators.map(({ targetCatalog, targetTag, ...operator }) => ({
      ...operator,
      catalog: nameCopy(operator.catalog, targetCatalog, targetTag),
    })),
  };
}

function nameCopy(name: string, repository?: string, tag?: string): string {
  if (repository === undefined && tag === undefined) return name;
  const { digest, ...reference } = parseReference(name);
  return formatReference({
    ...reference,
    ...withoutUndefined({ repository }),
    ...(tag === undefined ? digest !== undefined && { digest } : { tag }),
  });
}

/**
 * Checks the minor version. A graph answers with the `X.Y` that was asked for; a mirror has only
 * what it has.
 */
function requireMinor(wanted: string, release: Release): Release {
  const { version } = release;
  if (!isMinorVersion(wanted) || version.startsWith(`${wanted}.`)) return release;
  throw new ConfigError(
    'release.version-mismatch',
    `the mirror has release ${version}, but the configuration asks for ${wanted}`,
    { expected: wanted, found: version, hint: 'correct ocpRelease.version' },
  );
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
      sshKeys: sshKey === undefined ? undefined : [sshKey.trim()],
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

/** True if the ISO holds secrets that other users of this machine must not read. */
const isConfidential = ({ config }: LiveIsoRequest): boolean =>
  config.userCorePass !== undefined || config.build.embed.pullSecret !== undefined;
