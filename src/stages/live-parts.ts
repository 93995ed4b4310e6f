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
import { checkComplete } from './2-select/check-complete.ts';
import { checkImagePolicy } from './2-select/check-image-policy.ts';
import { checkSpace } from './2-select/check-space.ts';
import type { LiveIsoParts } from './4-lay-out/lay-out-live-iso.ts';
import { chooseRegistriesConf, renderIgnition } from './ignition.ts';
import { selectImages } from './live-content.ts';
import type { LiveIsoImages } from './payload.ts';
import type { LiveIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/*
 * The part of the pipeline that ends where a bootable medium of a cluster is laid out: the images, both Ignition
 * configs, the live ISO below them. Pages take it from here.
 */

/** The medium on which the booted system and installed hosts find the registry; absent: the ISO that was booted. */
type LiveOptions = Pick<Parameters<typeof renderIgnition>[2], 'registryOn' | 'menuKargs'>;

/** Selects, checks and renders everything; what needs no other step may still be running. */
export async function collectLiveParts(
  request: LiveIsoRequest,
  tools: BuildTools,
  options: LiveOptions = {},
) {
  const { engine, resolved } = tools;
  const { config, epoch } = request;
  const { ignitionArea } = config.build;
  const { channel } = config.ocpRelease;
  resolved.require({ release: { channel } });
  const values = valuesOf(request); // before a stage starts, since it may refuse
  const places = await tools.takeOver();
  const images = await selectImages(request, tools);
  const { release, catalogs, plan } = images;
  const registriesConf = chooseRegistriesConf(request, tools, images);
  const { missing, reserved, imagePolicy } = checkImages(request, tools, images);
  const base = request.baseIso
    ? engine.run(takeBaseIso, { given: request.baseIso }, reserved)
    : engine.run(fetchBaseIso, { release }, reserved);
  const content = { ...images, ...options, registriesConf, reserved };
  const { bootstrap, unconfigured, installer } = renderIgnition(request, tools, content);
  return {
    images,
    base,
    installer,
    imagePolicy,
    listWarnings: async () => [...(await bootstrap).warnings, ...warnOfHosts(request)],
    parts: {
      base: fileOf(base),
      scan: engine.run(scanBase, { base: fileOf(base) }),
      release,
      plan,
      catalogs,
      bootstrap,
      unconfigured,
      appendKargs: listFipsKargs(config),
      ...withoutUndefined({ missing, epoch, places, values, ignitionArea }),
    },
  };
}

/** Checks the selected images: a mirror has all of them, there is room for them, and nodes accept them. */
function checkImages(
  { config, allowIncomplete, disableImagePolicy, ...request }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, plan, workspace }: LiveIsoImages,
) {
  const { arch } = release;
  const { maxSize } = config.build;
  // A workspace may be the rest of a partial mirror; registries have what the plan has read.
  const missing =
    workspace && engine.run(checkComplete, { plan, workspace, arch, allowIncomplete });
  return {
    missing,
    /** Resolved when there is room for what is fetched, and a workspace has it. */
    reserved: engine.run(
      checkSpace,
      { plan, ...roomOf(request), ...withoutUndefined({ maxSize }) },
      missing,
    ),
    imagePolicy: engine.run(checkImagePolicy, {
      release,
      plan,
      ...withoutUndefined({ disableImagePolicy }),
    }),
  };
}

/**
 * The values of the request that belong to a site: the same bytes are on the medium when they are
 * added later. Those that may hold a secret are sealed.
 */
function valuesOf({ config, ignition, hosts, overrides }: LiveIsoRequest): LiveIsoParts['values'] {
  const { kernelArguments, embed } = config.build;
  const forAgents = ignition === 'installer' ? readForAgents(hosts, overrides.infraEnv) : {};
  const { sshKeys = linesOf(config.sshKey), ...hidden } = forAgents;
  const values = withoutUndefined({
    sshKeys,
    kargs: kernelArguments.length === 0 ? undefined : { append: kernelArguments },
    pullSecret: embed.pullSecret,
    forAgents: Object.keys(hidden).length === 0 ? undefined : new Secret(JSON.stringify(hidden)),
  });
  return Object.keys(values).length === 0 ? undefined : values;
}

export const listFipsKargs = ({ enableFips }: LiveIsoRequest['config']): readonly string[] =>
  enableFips ? ['fips=1'] : [];

export const linesOf = (sshKey: string | undefined): readonly string[] | undefined =>
  sshKey === undefined ? undefined : readSshKeys(sshKey).keys.map(({ line }) => line);

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
