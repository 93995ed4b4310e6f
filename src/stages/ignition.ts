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

/** Renders both Ignition configs of the medium, as JSON text. */
export function renderIgnition(
  request: LiveIsoRequest,
  tools: BuildTools,
  images: LiveIsoImages,
): {
  readonly bootstrap: Promise<RenderedBootstrap>;
  readonly unconfigured: Promise<string>;
  /** Present if the request asks for the configuration of an installer. */
  readonly installer?: Promise<FileInput>;
} {
  const { config, manifests, disableImagePolicy } = request;
  const { stopLocalRegistry } = config;
  const { release, plan, catalogs, registryImage, workspace } = images;
  const registriesConf = followOverrides(request, tools, images);
  registriesConf.catch(() => undefined); // the stages that wait for it report its failure
  const bootstrap = tools.engine.run(renderBootstrap, {
    release,
    plan,
    catalogs,
    registryImage,
    manifests,
    stopLocalRegistry,
    registriesConf,
    skipLocalRegistry: decideLocalRegistry(request, images),
    registryData: config.build.registryData,
    ...clusterSettingsOf(request),
    signatures: release.then(signaturesOf),
    ...withoutUndefined({ disableImagePolicy }),
    ...saltPassword(request, tools),
    ...(workspace && { workspace }),
  });
  return { bootstrap, ...renderForUser(request, tools, { ...images, registriesConf }) };
}

export const clusterSettingsOf = ({ config }: LiveIsoRequest): ClusterSettings => ({
  interactive: config.enableInteractiveFlow,
  enableDefaultSources: config.enableDefaultSources,
  createPinnedImageSets: config.createPinnedImageSets,
  useDefaultSourceNames: config.useDefaultSourceNames,
});

/**
 * Returns the registries.conf of the nodes, rendered or from the user, after checking that the
 * files next to the configuration fit the medium.
 */
async function followOverrides(
  { config, overrides, ignition }: LiveIsoRequest,
  { emit }: BuildTools,
  images: LiveIsoImages,
): Promise<string> {
  const { registriesConf: override, infraEnv } = overrides;
  const { sshKey, enableInteractiveFlow: interactive } = config;
  const [{ arch }, plan] = await Promise.all([images.release, images.plan]);
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

function decideLocalRegistry(
  { config }: LiveIsoRequest,
  { release }: LiveIsoImages,
): Promise<boolean> {
  const { enableInteractiveFlow: interactive, skipLocalRegistry } = config;
  return release.then((release) =>
    skipsLocalRegistry(release, {
      interactive,
      ...withoutUndefined({ skipLocalRegistry }),
    }),
  );
}

function saltPassword({ config: { userCorePass: text } }: LiveIsoRequest, { engine }: BuildTools) {
  if (!text) return {};
  const salt = engine.run(drawPasswordSalt, { password: text });
  return { password: salt.then((salt) => ({ text, salt })) };
}

type WithRegistriesConf = LiveIsoImages & { readonly registriesConf: Promise<string> };

/**
 * Renders the configuration of the user without values of a site, by the installer if the request
 * asks for the installer's own.
 */
function renderForUser(
  request: LiveIsoRequest,
  tools: BuildTools,
  images: WithRegistriesConf,
): { readonly unconfigured: Promise<string>; readonly installer?: Promise<FileInput> } {
  const { enableInteractiveFlow: interactive } = request.config;
  const { release, registriesConf } = images;
  const settings = { interactive, registriesConf };
  const { engine } = tools;
  const forNode = { ...settings, release: release.then(toNodeRelease) };
  if (request.ignition !== 'installer') {
    return { unconfigured: engine.run(renderUnconfigured, forNode) };
  }
  const { disableImagePolicy } = request;
  const files = Promise.all([release, registriesConf]).then(([{ arch }, registriesConf]) =>
    planInstallerInputs({ arch, registriesConf }).map(({ path, text }) => ({
      path,
      text: new Secret(text),
    })),
  );
  const installer = findInstaller(request, tools, images);
  const installed = engine.run(runInstaller, {
    installer,
    args: release.then(({ version }) => planInstallerArgs(version, interactive)),
    files,
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

/** Finds the installer of this release, or the one that the user names. */
const findInstaller = (
  { config }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, reserved }: LiveIsoImages,
): Promise<FileInput> =>
  config.build.installer === undefined
    ? engine.run(fetchInstaller, { release, machine: MACHINE, fips: config.enableFips }, reserved)
    : engine.run(identifyInstaller, { path: config.build.installer });
