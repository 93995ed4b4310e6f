import type { FileInput } from '../base/disk/file-digests.ts';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { planInstallerArgs, planInstallerInputs } from '../openshift/installer/installer.ts';
import {
  checkInfraEnv,
  chooseNodeRegistriesConf,
  OVERRIDE_PATHS,
} from '../openshift/installer/overrides.ts';
import { toNodeRelease, type ClusterSettings } from '../openshift/node/cluster.ts';
import type { RegistryCarrier } from '../openshift/node/registry.ts';
import { formatNodeRegistriesConf } from '../openshift/node/mirror-sets.ts';
import { IMAGE_POLICY_VARIABLE } from '../openshift/release/image-policy.ts';
import { skipsLocalRegistry } from '../openshift/release/manifests.ts';
import { signaturesOf } from '../openshift/release/signature.ts';
import { fetchInstaller, identifyInstaller } from './1-resolve/fetch-installer.ts';
import {
  drawPasswordSalt,
  renderBootstrap,
  type RenderedBootstrap,
} from './3-render/render-bootstrap.ts';
import { renderUnconfigured } from './3-render/render-unconfigured.ts';
import { runInstaller } from './3-render/run-installer.ts';
import type { LiveIsoImages } from './payload.ts';
import type { LiveIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The two Ignition configs of a live ISO: this file connects the steps that render them. */

/** Content of a live ISO, and what its Ignition configs wait for. */
type Rendered = LiveIsoImages & {
  /** registries.conf of the nodes. */
  readonly registriesConf: string;
  /** Resolved when there is room for what is fetched. */
  readonly reserved: Promise<unknown>;
  /** Default: `iso`. */
  readonly registryOn?: RegistryCarrier;
  /** Further kernel arguments of the recovery entry. */
  readonly menuKargs?: readonly string[];
};

/** Renders both Ignition configs of the medium, as JSON text. */
export function renderIgnition(
  request: LiveIsoRequest,
  tools: BuildTools,
  content: Rendered,
): {
  readonly bootstrap: Promise<RenderedBootstrap>;
  readonly unconfigured: Promise<string>;
  /** Present if the request asks for the configuration of an installer. */
  readonly installer?: Promise<FileInput>;
} {
  const { config, manifests, disableImagePolicy } = request;
  const { stopLocalRegistry, enableInteractiveFlow: interactive, skipLocalRegistry } = config;
  const { release, plan, catalogs, registryImage, workspace, registriesConf } = content;
  const { registryOn, menuKargs } = content;
  const bootstrap = tools.engine.run(renderBootstrap, {
    release,
    plan,
    catalogs,
    registryImage,
    manifests,
    stopLocalRegistry,
    registriesConf,
    skipLocalRegistry: skipsLocalRegistry(release, {
      interactive,
      ...withoutUndefined({ skipLocalRegistry }),
    }),
    registryData: config.build.registryData,
    ...clusterSettingsOf(request),
    signatures: signaturesOf(release),
    ...withoutUndefined({ disableImagePolicy, workspace, registryOn, menuKargs }),
    ...saltPassword(request, tools),
  });
  return { bootstrap, ...renderForUser(request, tools, content) };
}

export const clusterSettingsOf = ({ config }: LiveIsoRequest): ClusterSettings => ({
  interactive: config.enableInteractiveFlow,
  enableDefaultSources: config.enableDefaultSources,
  createPinnedImageSets: config.createPinnedImageSets,
  useDefaultSourceNames: config.useDefaultSourceNames,
});

/** registries.conf, rendered or given. Checks that the files next to the configuration fit the medium. */
export function chooseRegistriesConf(
  { config, overrides, ignition }: LiveIsoRequest,
  { emit }: BuildTools,
  { release: { arch }, plan }: LiveIsoImages,
): string {
  const { registriesConf: override, infraEnv } = overrides;
  const { sshKey, enableInteractiveFlow: interactive } = config;
  if (infraEnv !== undefined) {
    const isRead = ignition === 'installer';
    checkInfraEnv(infraEnv, { arch, isRead, ...withoutUndefined({ sshKey }) });
  }
  const rendered = formatNodeRegistriesConf(plan.mirrors, { interactive });
  const sources = plan.images.flatMap(({ source, origin }) => [source, origin]);
  const chosen = chooseNodeRegistriesConf(rendered, override, sources);
  if (chosen !== rendered) {
    const message = `${OVERRIDE_PATHS.registriesConf} replaces the rendered registries.conf`;
    emit({ type: 'warning', message });
  }
  return chosen;
}

export function saltPassword(
  { config: { userCorePass: text } }: LiveIsoRequest,
  { engine }: BuildTools,
) {
  if (!text) return {};
  const salt = engine.run(drawPasswordSalt, { password: text });
  return { password: salt.then((salt) => ({ text, salt })) };
}

/** Renders the user's configuration without values of a site, by the installer if the request asks for it. */
function renderForUser(
  request: LiveIsoRequest,
  { engine }: BuildTools,
  { release, registriesConf, reserved }: Rendered,
): { readonly unconfigured: Promise<string>; readonly installer?: Promise<FileInput> } {
  const { config, ignition, disableImagePolicy } = request;
  const { enableInteractiveFlow: interactive, enableFips: fips } = config;
  const forNode = { interactive, registriesConf, release: toNodeRelease(release) };
  if (ignition !== 'installer') {
    return { unconfigured: engine.run(renderUnconfigured, forNode) };
  }
  const { arch, version } = release;
  const installer =
    config.build.installer === undefined
      ? engine.run(fetchInstaller, { release, machine: MACHINE, fips }, reserved)
      : engine.run(identifyInstaller, { path: config.build.installer });
  const installed = engine.run(runInstaller, {
    installer,
    args: planInstallerArgs(version, interactive),
    files: planInstallerInputs({ arch, registriesConf }).map(({ path, text }) => ({
      path,
      text: new Secret(text),
    })),
    ...(disableImagePolicy === true && { environment: { [IMAGE_POLICY_VARIABLE]: 'true' } }),
  });
  return { installer, unconfigured: engine.run(renderUnconfigured, { ...forNode, installed }) };
}

/** Go's name of the architecture that this program runs on. */
const MACHINE =
  new Map([
    ['x64', 'amd64'],
    ['ppc64', 'ppc64le'],
  ]).get(process.arch) ?? process.arch;
