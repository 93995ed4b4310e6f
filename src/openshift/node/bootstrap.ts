import { withoutUndefined } from '../../base/lists.ts';
import {
  decodeFileContent,
  type File,
  formatIgnition,
  IGNITION_VERSION,
  type IgnitionConfig,
  textFile,
  type Unit,
  type User,
} from '../../ignition/index.ts';
import { findInternalReleaseImage, INTERNAL_RELEASE_IMAGE } from '../release/manifests.ts';
import {
  formatClusterImageSet,
  planGeneratedManifests,
  planMirrorManifests,
  type GeneratedManifestsInput,
  type NodeRelease,
} from './cluster.ts';
import { renderInstallIgnition, RENDEZVOUS_PLACEHOLDER, type InstallInput } from './install.ts';
import { planExtraManifests, refuseDuplicates, type NodeManifest } from './manifests.ts';
import { formatNodeRegistriesConf } from './mirror-sets.ts';
import {
  NODE_REGISTRY_PORT,
  nodeRegistryDomain,
  renderNodeRegistry,
  renderDropIn,
  renderEnabledUnit,
  renderScript,
  renderUnit,
} from './registry.ts';
import { selectServed, type ServedManifests } from './served-kinds.ts';

export type BootstrapInput = GeneratedManifestsInput &
  InstallInput & {
    /** Default: it leads from the mirrors' sources to the node's registry. */
    readonly registriesConf?: string;
    /** True if the cluster accepts images of OpenShift without a signature. */
    readonly disableImagePolicy: boolean;
    /** Manifests for the cluster: the user's, then those of the mirror plan. */
    readonly extraManifests: readonly NodeManifest[];
  };

/** Path at which a medium carries the configuration, as the only file of a separate initrd. */
export const BOOTSTRAP_IGNITION_PATH = '/usr/lib/ignition/base.d/99-bootstrap.ign';

const EXTRA_MANIFESTS = '/etc/assisted/extra-manifests';

/**
 * The system configuration of a booted medium: the local registry, the extra manifests and the files that the
 * rendezvous host passes on. The user's configuration in the embed area is applied on top and wins if both
 * have a path, so this configuration replaces no file of the installer.
 *
 * Holds no pull secret. Holds the hash of core's password, if there is one.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`
 */
export function renderBootstrapIgnition(input: BootstrapInput): IgnitionConfig {
  const parts = [
    renderNodeRegistry({
      image: input.registryImage,
      interactive: input.interactive,
      stage: 'live',
      ...withoutUndefined({ registryOn: input.registryOn }),
    }),
    renderService(input),
    // A web interface takes the host names from a person, not from a configuration image.
    input.interactive ? { files: [], units: [] } : renderForConfigImages(),
    ...(input.registryOn === 'partition' ? [renderVirtualDevice()] : []),
    { files: renderMarkers(input), units: [] },
    { files: renderManifests(input), units: [] },
  ];
  return {
    ignition: { version: IGNITION_VERSION },
    passwd: { users: [renderCoreUser(input)] },
    storage: {
      directories: [
        { path: EXTRA_MANIFESTS, overwrite: true, user: { name: 'root' }, mode: 0o755 },
      ],
      files: parts.flatMap((part) => part.files),
    },
    systemd: { units: parts.flatMap((part) => part.units) },
  };
}

function renderService(input: BootstrapInput): {
  readonly files: readonly File[];
  readonly units: readonly Unit[];
} {
  const { release, interactive } = input;
  const install = formatIgnition(renderInstallIgnition(input));
  const cpuArchitecture = { cpu_architecture: release.arch, openshift_version: release.version };
  return {
    files: [
      renderScript('set-env-files.sh', {
        'registry': `${nodeRegistryDomain(interactive)}:${NODE_REGISTRY_PORT}`,
        'release-image': release.digestReference,
        'release-images': JSON.stringify([
          { ...cpuArchitecture, url: release.digestReference, version: release.version },
        ]),
        'disable-image-policy': input.disableImagePolicy ? 'yes' : 'no',
        'os-images': JSON.stringify([{ ...cpuArchitecture, url: 'n/a', version: 'n/a' }]),
      }),
      renderScript('update-hosts.sh', {
        interactive: interactive ? 'yes' : 'no',
        placeholder: RENDEZVOUS_PLACEHOLDER,
      }),
      renderScript('reconfigure-local-registry-iri-tls.sh'),
      textFile('/etc/assisted/install.ign', install, 0o600),
      textFile('/etc/assisted/cluster-image-set.yaml', formatClusterImageSet(release), 0o644),
      textFile(
        REGISTRIES_CONF,
        input.registriesConf ?? formatNodeRegistriesConf(input.mirrors, { interactive }),
        0o644,
      ),
    ],
    units: [
      renderEnabledUnit('pre-install-node-zero.service'),
      renderEnabledUnit('update-hosts.service'),
      renderEnabledUnit('watch-iri-tls-certs.path'),
      renderUnit('reconfigure-local-registry-iri-tls.service'),
    ],
  };
}

/**
 * Names of hosts come with the configuration image, and must exist when the hosts register. The image may be
 * on the medium itself, where the installer's rule of udev does not look.
 */
const renderForConfigImages = () => ({
  files: [renderScript('apply-hostnames.sh')],
  units: [
    renderDropIn('agent.service', '10-host-name.conf'),
    renderEnabledUnit('show-config-image.service'),
  ],
});

/** The device that keeps the installer from replacing the partitions that the host was booted from. */
const renderVirtualDevice = () => ({
  files: [renderScript('create-virtual-device.sh')],
  units: [renderEnabledUnit('create-virtual-device.service')],
});

/** Empty files whose presence is the message. */
function renderMarkers(input: BootstrapInput): File[] {
  return [
    ...(input.interactive ? ['interactive-ui', 'no-config-image'] : []),
    ...(input.corePasswordHash === undefined ? [] : ['appliance-override-password-set']),
  ].map((name) => textFile(`/etc/assisted/${name}`, '', 0o644));
}

const renderManifests = (input: BootstrapInput): File[] =>
  planClusterManifests(input).manifests.map(({ name, text }) =>
    textFile(`${EXTRA_MANIFESTS}/${name}`, text, 0o644),
  );

/**
 * Manifests of kinds that the release serves; warnings are about the others.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`
 */
export function planClusterManifests(
  input: GeneratedManifestsInput & Pick<BootstrapInput, 'extraManifests'>,
): ServedManifests {
  const { release, definitions, interactive } = input;
  const given = [...input.extraManifests, ...planMirrorManifests(input)];
  const sources = {
    given: planExtraManifests(given, input),
    generated: planGeneratedManifests(input),
    decided: [INTERNAL_RELEASE_IMAGE],
  };
  refuseDuplicates([...sources.given, ...sources.generated].map(({ name }) => name));
  const { manifests, warnings } = selectServed(sources, { ...release, definitions });
  const isPreview = findInternalReleaseImage(definitions)?.isPreview === true;
  return { manifests, warnings: [...warnings, ...(interactive && isPreview ? [PREVIEW] : [])] };
}

const PREVIEW =
  'InternalReleaseImage is a technology preview in this release: the cluster must be installed with ' +
  'featureSet TechPreviewNoUpgrade, and cannot be upgraded';

/** Keys of core are values of a site, which come with the user's configuration. */
const renderCoreUser = ({ corePasswordHash }: BootstrapInput): User => ({
  name: 'core',
  ...withoutUndefined({ passwordHash: corePasswordHash }),
});

/** Tells the agent services that a person at the web interface configures the cluster. */
const INTERACTIVE_SENTINEL = '/etc/assisted/interactive-ui';

/** Made by the installer for another registry; ours is in the bootstrap configuration. */
const REGISTRIES_CONF = '/etc/containers/registries.conf';

export function readRegistriesConf({ storage }: IgnitionConfig): string | undefined {
  const file = storage?.files?.find(({ path }) => path === REGISTRIES_CONF);
  return file && decodeFileContent(file)?.toString('utf8');
}

export type EmbeddedInput = {
  readonly release: NodeRelease;
  readonly interactive: boolean;
  readonly registriesConf: string;
};

/** The user's configuration on media that need no assisted installer; the same for every host and site. */
export function renderEmbeddedUnconfigured(input: EmbeddedInput): IgnitionConfig {
  const { release } = input;
  return {
    ignition: { version: IGNITION_VERSION },
    storage: {
      files: [
        textFile(
          '/etc/assisted/agent-installer.env',
          `RELEASE_IMAGE=${release.digestReference}\n`,
          0o600,
        ),
        textFile(REGISTRIES_CONF, input.registriesConf, 0o644),
        ...(input.interactive ? [renderSentinel()] : []),
      ],
    },
  };
}

/**
 * Drops the installer's registries.conf, which would win over ours; with the interactive flow, its sentinel
 * is present exactly once.
 */
export function adaptUnconfigured(
  config: IgnitionConfig,
  options: { readonly interactive: boolean },
): IgnitionConfig {
  const kept = (config.storage?.files ?? []).filter(
    ({ path }) => path !== REGISTRIES_CONF && path !== INTERACTIVE_SENTINEL,
  );
  const files = options.interactive ? [...kept, renderSentinel()] : kept;
  return { ...config, storage: { ...config.storage, files } };
}

const renderSentinel = (): File => textFile(INTERACTIVE_SENTINEL, '', 0o644);
