import { hexOf, type Digest } from '../../base/digest.ts';
import {
  IGNITION_VERSION,
  textFile,
  type File,
  type IgnitionConfig,
  type Unit,
} from '../../ignition/config.ts';
import {
  findInternalReleaseImage,
  findServedKind,
  PINNED_IMAGE_SET,
} from '../release/internal-release-image.ts';
import type { ResourceDefinition } from '../release/resource-definitions.ts';
import { planCustomResources, type Manifest } from './manifests/extra-manifests.ts';
import { planPinnedImageSets } from './manifests/generated-manifests.ts';
import {
  renderNodeRegistry,
  renderRegistryEnvironment,
  type NodeRegistry,
  type RegistryImage,
} from './node-registry.ts';
import { renderUpgradeHost } from './upgrade/upgrade-host.ts';
import { renderEnabledUnit, renderScript, renderText, renderUnit } from './templates.ts';

/** The registry's tree on the medium. */
export type RegistryTree = {
  /** Bytes of blobs and manifests. */
  readonly size: number;
  /** Over the name and the digest of every file. */
  readonly digest: Digest;
};

/** What an installed host needs to know. */
export type InstallInput = {
  readonly registryImage: RegistryImage;
  readonly interactive: boolean;
  /** Of the release's payload. */
  readonly definitions: readonly ResourceDefinition[];
  /** The cluster stops the registry once it is installed. */
  readonly stopLocalRegistry: boolean;
  /** No registry of ours on installed hosts: the cluster's own takes over. */
  readonly skipLocalRegistry: boolean;
  /** Whether hosts copy the registry to their disk, or read it from the medium for good. */
  readonly registryData: 'copy' | 'medium';
  readonly registryTree: RegistryTree;
  readonly createPinnedImageSets: boolean;
  /** References of the images to pin, as they are named before mirroring. */
  readonly pinnedImages: readonly string[];
  /** Custom resources that wait for their operators, as the user wrote them. */
  readonly crs: readonly Manifest[];
};

/** Replaced on the rendezvous host, which alone knows its address, by the file of this path there. */
export const RENDEZVOUS_PLACEHOLDER = 'placeholder-content-for-rendezvous-host.env';

/** Where the script that stops the registry looks whether there are any, too. */
const PINNED_IMAGE_SETS = '/etc/assisted/pinned-image-sets';
const CUSTOM_RESOURCES = '/etc/assisted/extra-manifests/post-installation';

/**
 * The configuration that every host applies at the first boot from its disk. It travels inside the
 * bootstrap configuration and reaches the hosts through the assisted service.
 */
export function renderInstallIgnition(input: InstallInput): IgnitionConfig {
  const parts = [
    renderCommon(),
    renderRegistry(input),
    renderRegistryCopy(input),
    renderUpgrade(input),
    renderPinnedImageSets(input),
    renderCustomResources(input.crs),
  ];
  return {
    ignition: { version: IGNITION_VERSION },
    storage: { files: parts.flatMap((part) => part.files) },
    systemd: { units: parts.flatMap((part) => part.units) },
  };
}

type Part = { readonly files: readonly File[]; readonly units: readonly Unit[] };

function renderCommon(): Part {
  return {
    files: [
      renderScript('set-installed-node-zero.sh'),
      textFile('/etc/assisted/rendezvous-host.env', RENDEZVOUS_PLACEHOLDER, 0o644),
      textFile('/etc/udev/rules.d/99-live-iso.rules', renderText('files/99-live-iso.rules'), 0o600),
    ],
    units: [
      renderEnabledUnit('set-installed-node-zero.service'),
      renderEnabledUnit('node-zero-installed.path'),
      renderUnit('node-zero-installed.target'),
      renderUnit('mount-live-iso@.service'),
    ],
  };
}

function renderRegistry(input: InstallInput): Part {
  const registry: NodeRegistry = {
    image: input.registryImage,
    interactive: input.interactive,
    stage: 'installed',
    internalReleaseImage:
      input.interactive && findInternalReleaseImage(input.definitions) !== undefined,
  };
  if (input.skipLocalRegistry) {
    return { files: [renderRegistryEnvironment(registry)], units: [] };
  }
  const { files, units } = renderNodeRegistry(registry);
  if (!input.stopLocalRegistry) return { files, units };
  return {
    files: [
      ...files,
      renderScript('stop-local-registry.sh'),
      renderScript('drop-registry-mirrors.sh'),
    ],
    units: [
      ...units,
      renderEnabledUnit('stop-local-registry.service'),
      renderEnabledUnit('drop-registry-mirrors.service'),
    ],
  };
}

/** What makes a host independent of the medium: also, on any medium, by the copy of the installer. */
function renderRegistryCopy({ skipLocalRegistry, registryData, registryTree }: InstallInput): Part {
  if (skipLocalRegistry) return { files: [], units: [] };
  const script = renderScript('copy-registry-data.sh', {
    'registry-data': registryData,
    'tree-size': String(registryTree.size),
    'tree-digest': hexOf(registryTree.digest),
  });
  return { files: [script], units: [renderEnabledUnit('copy-registry-data.service')] };
}

/** Clusters without the mirrors or the registry that these need cannot be upgraded from an ISO. */
function renderUpgrade(input: InstallInput): Part {
  const { interactive, skipLocalRegistry, stopLocalRegistry } = input;
  if (interactive || skipLocalRegistry || stopLocalRegistry) return { files: [], units: [] };
  return renderUpgradeHost();
}

/**
 * Again, besides those among the manifests of the installation: those do nothing in releases where
 * the sets are a technology preview. A release that never serves them gets the files alone: the
 * registry of a host that waits for its pinned images then runs for good.
 */
function renderPinnedImageSets(input: InstallInput): Part {
  const manifests = planPinnedImageSets(input);
  if (manifests.length === 0) return { files: [], units: [] };
  const files = manifests.map(({ name, text }) =>
    textFile(`${PINNED_IMAGE_SETS}/${name}`, text, 0o644),
  );
  if (findServedKind(input.definitions, PINNED_IMAGE_SET) === undefined) {
    return { files, units: [] };
  }
  return {
    files: [renderScript('create-pinned-image-sets.sh'), ...files],
    units: [renderEnabledUnit('create-pinned-image-sets.service')],
  };
}

/** The script gets the namespaces in an index, because no host has a program that reads YAML. */
function renderCustomResources(crs: readonly Manifest[]): Part {
  const resources = planCustomResources(crs);
  if (resources.length === 0) return { files: [], units: [] };
  const index = resources.map(({ name, namespace }) => `${namespace ?? '-'} ${name}\n`).join('');
  return {
    files: [
      renderScript('apply-operator-crs.sh'),
      textFile(`${CUSTOM_RESOURCES}/index`, index, 0o600),
      ...resources.map(({ name, text }) => textFile(`${CUSTOM_RESOURCES}/${name}`, text, 0o600)),
    ],
    units: [renderEnabledUnit('apply-operator-crs.service')],
  };
}
