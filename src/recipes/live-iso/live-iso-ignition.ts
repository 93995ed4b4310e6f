import type { TlsOptions } from '../../base/http.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected-catalog.ts';
import { planCatalogDestination } from '../../openshift/mirror/operator-set.ts';
import type { BootstrapInput } from '../../openshift/node/bootstrap-ignition.ts';
import { deriveSalt, hashCorePassword } from '../../openshift/node/core-password.ts';
import type { ServedCatalog } from '../../openshift/node/catalog-sources.ts';
import type {
  GeneratedManifestsInput,
  NodeRelease,
} from '../../openshift/node/generated-manifests.ts';
import type { MirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { formatNodeRegistriesConf } from '../../openshift/node/node-registries-conf.ts';
import type { RegistryImageChoice } from '../../openshift/mirror/registry-image.ts';
import { digestOfRelease, type Release } from '../../openshift/release/release-payload.ts';
import { formatReference } from '../../registry/reference.ts';
import { fetchInstaller } from '../../stages/fetch-installer.ts';
import {
  chooseSignatureStore,
  fetchReleaseSignatures,
} from '../../stages/fetch-release-signatures.ts';
import { renderBootstrap } from '../../stages/render-bootstrap.ts';
import { renderEmbedded, renderWithInstaller } from '../../stages/render-unconfigured.ts';
import type { BuildTools } from '../build-tools.ts';
import { isKept } from '../kept.ts';
import type { LiveIsoRequest } from './live-iso-request.ts';

type MadeForCluster = {
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  /** Base64. */
  readonly signatures: readonly string[];
};

type Planned = {
  readonly release: Promise<Release>;
  readonly plan: Promise<MirrorPlan>;
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly registryImage: Promise<RegistryImageChoice>;
  /** There is room for what is fetched. */
  readonly reserved: Promise<unknown>;
};

/** Both Ignition configs of the medium, as JSON text. */
export function renderIgnition(
  request: LiveIsoRequest,
  tools: BuildTools,
  planned: Planned,
): { readonly bootstrap: Promise<string>; readonly unconfigured: Promise<string> } {
  const bootstrap = tools.engine.stage({
    name: 'render bootstrap',
    inputs: {
      release: planned.release,
      plan: planned.plan,
      catalogs: planned.catalogs,
      registryImage: planned.registryImage,
      signatures: fetchSignatures(request, tools, planned),
      ...describeBootstrap(request, tools),
    },
    run: (made) => Promise.resolve(renderBootstrap(bootstrapInput(request, made))),
  });
  const unconfigured =
    request.ignition === 'embedded'
      ? renderOwn(request, tools, planned)
      : renderByInstaller(request, tools, planned);
  return { bootstrap, unconfigured };
}

/** They are looked up anew each time: a store may have got them since. */
export function fetchSignatures(
  { signatureStore }: LiveIsoRequest,
  { engine, http, tls }: BuildTools,
  { release }: Pick<Planned, 'release'>,
): Promise<string[]> {
  const known = release.then((release) => ({
    digest: digestOfRelease(release),
    store: chooseSignatureStore(formatReference(release.reference), signatureStore),
  }));
  known.catch(() => undefined); // the stage that waits for it tells
  return engine.stage({
    name: 'fetch release signatures',
    inputs: { known },
    run: ({ known: { digest, store } }, { signal, warn }) =>
      fetchReleaseSignatures(
        { digest, ...(store !== undefined && { store }) },
        { http, tls, signal, warn },
      ),
  });
}

/** Everything of the configuration that the bootstrap config shows, without secrets. */
const describeBootstrap = ({ config, manifests }: LiveIsoRequest, tools: BuildTools) => ({
  manifests,
  interactive: config.enableInteractiveFlow,
  enableDefaultSources: config.enableDefaultSources,
  createPinnedImageSets: config.createPinnedImageSets,
  stopLocalRegistry: config.stopLocalRegistry,
  skipLocalRegistry: config.skipLocalRegistry,
  useDefaultSourceNames: config.useDefaultSourceNames,
  sshKey: config.sshKey,
  password: tools.sealSecret(config.userCorePass?.reveal()),
});

function bootstrapInput(request: LiveIsoRequest, made: MadeForIgnition): BootstrapInput {
  const { config, manifests } = request;
  const { release, plan, registryImage } = made;
  const password = config.userCorePass?.reveal();
  const salt = deriveSalt(formatReference(release.reference));
  return {
    ...describeCluster(request, made),
    registryImage: {
      reference: formatReference(plan.registryImage?.source ?? registryImage.reference),
      useDistributionEntrypoint: registryImage.useDistributionEntrypoint,
    },
    stopLocalRegistry: config.stopLocalRegistry,
    skipLocalRegistry: config.skipLocalRegistry,
    extraManifests: manifests.extra,
    crs: manifests.crs,
    ...(config.sshKey !== undefined && { sshKey: config.sshKey }),
    ...(password !== undefined && { corePasswordHash: hashCorePassword(password, salt) }),
  };
}

type MadeForIgnition = MadeForCluster & { readonly registryImage: RegistryImageChoice };

/** What the cluster is told of the media: its mirrors, catalogs and release. No secret. */
export function describeCluster(
  { config }: LiveIsoRequest,
  { release, plan, catalogs, signatures }: MadeForCluster,
): Omit<GeneratedManifestsInput, 'corePasswordHash'> {
  return {
    release: toNodeRelease(release),
    mirrors: plan.mirrors,
    catalogs: describeCatalogs(catalogs),
    releaseSignatures: signatures.map((base64) => Buffer.from(base64, 'base64')),
    interactive: config.enableInteractiveFlow,
    enableDefaultSources: config.enableDefaultSources,
    createPinnedImageSets: config.createPinnedImageSets,
    pinnedImages: plan.images
      .filter(({ kind }) => kind !== 'signature' && kind !== 'catalog')
      .map(({ source }) => formatReference(source)),
    useDefaultSourceNames: config.useDefaultSourceNames,
  };
}

export const describeCatalogs = (catalogs: readonly SelectedCatalog[]): readonly ServedCatalog[] =>
  catalogs.map((catalog) => ({
    source: catalog.reference,
    destination: planCatalogDestination(catalog),
    digest: catalog.digest,
  }));

const toNodeRelease = ({ version, reference, arch }: Release): NodeRelease => ({
  version,
  arch,
  digestReference: formatReference(reference),
});

function renderOwn(
  request: LiveIsoRequest,
  tools: BuildTools,
  { release, plan }: Planned,
): Promise<string> {
  return tools.engine.stage({
    name: 'render unconfigured',
    inputs: { release, plan, ...describeUnconfigured(request, tools) },
    run: ({ release, plan }) =>
      Promise.resolve(renderEmbedded(unconfiguredInput(request, release, plan))),
  });
}

/**
 * The installer draws random ids and keys, so its result is kept: a build that continues, or is made
 * again, gives the same medium.
 */
function renderByInstaller(
  request: LiveIsoRequest,
  tools: BuildTools,
  { release, plan, reserved }: Planned,
): Promise<string> {
  const { client, cache, engine } = tools;
  const { config, workDir } = request;
  const given = config.build.installer;
  const installer =
    given === undefined
      ? engine.stage({
          name: 'fetch installer',
          inputs: { release, fips: config.enableFips, workDir },
          after: reserved,
          isUsable: isKept,
          run: (input, { signal, onProgress }) =>
            fetchInstaller(input, { client, cache, signal, onProgress }),
        })
      : Promise.resolve({ path: given });
  return engine.stage({
    name: 'run installer',
    inputs: { release, plan, installer, ...describeUnconfigured(request, tools) },
    isUsable: () => true,
    run: ({ release, plan, installer }, { signal }) =>
      renderWithInstaller(unconfiguredInput(request, release, plan), {
        ...{ installer: installer.path, workDir, signal },
      }),
  });
}

const describeUnconfigured = ({ config, nmstate }: LiveIsoRequest, tools: BuildTools) => ({
  interactive: config.enableInteractiveFlow,
  sshKey: config.sshKey,
  nmstate,
  hosts: tools.sealSecret(config.build.embed.pullSecret?.reveal()),
});

function unconfiguredInput(
  { config, nmstate }: LiveIsoRequest,
  release: Release,
  plan: MirrorPlan,
) {
  const interactive = config.enableInteractiveFlow;
  const pullSecret = config.build.embed.pullSecret?.reveal();
  return {
    release: toNodeRelease(release),
    interactive,
    registriesConf: formatNodeRegistriesConf(plan.mirrors, { interactive }),
    ...(config.sshKey !== undefined && { sshKey: config.sshKey }),
    ...(pullSecret !== undefined && { pullSecret }),
    ...(nmstate !== undefined && { nmstate }),
  };
}

/** How the update graph is reached. */
export const graphOf = ({ graphUrl }: LiveIsoRequest, tls: TlsOptions) => ({
  graphTls: tls,
  ...(graphUrl !== undefined && { graphUrl }),
});

/** Kernel arguments that the configuration asks for. */
export const kargsOf = (config: ApplianceConfig): readonly string[] => [
  ...(config.enableFips ? ['fips=1'] : []),
  ...config.build.kernelArguments,
];
