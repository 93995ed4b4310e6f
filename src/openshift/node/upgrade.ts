import type { Digest } from '../../base/digest.ts';
import { type File, textFile, type Unit } from '../../ignition/index.ts';
import type { PlannedMirror } from '../mirror/mirrors.ts';
import type { RpmArchitecture } from '../release/bundle.ts';
import { ADMIN_GATE_PATTERN } from '../release/gates.ts';
import { renderCatalogResources, type ServedCatalog } from './catalogs.ts';
import { formatMachineConfig, ROLES } from './manifests.ts';
import { renderMirrorSets, renderRegistryMirror, renderSignatureConfigMap } from './mirror-sets.ts';
import {
  nodeRegistryDomain,
  renderRegistryRun,
  renderRegistryScripts,
  UPGRADE_REGISTRY_PORT,
  renderScript,
  renderText,
  renderUnit,
  NODE_REGISTRY_PORT,
} from './registry.ts';

type Pieces = { readonly files: readonly File[]; readonly units: readonly Unit[] };

/**
 * The files that a host needs, in addition to its own registry, to be upgraded from an ISO with a label
 * `upgrade_...`: as soon as one is attached, the image of the host's registry serves it at port 5001, with a
 * permanent certificate, and its contents are added to the copy at `/var/lib/appliance-registry`. A
 * MachineConfig of openshift/appliance finds the unit `start-cluster-upgrade@.service` that it enables.
 */
export function renderUpgradeHost(): Pieces {
  const port = String(UPGRADE_REGISTRY_PORT);
  const run = renderRegistryRun({
    name: 'registry_upgrade',
    data: '/media/upgrade/oc-mirror/install',
    certs: '/etc/appliance-registry/certs-upgrade',
    port,
    options: '$REGISTRY_RUN_OPTIONS',
    command: '$REGISTRY_COMMAND',
  });
  return {
    files: [
      renderScript('mount-upgrade-iso.sh'),
      renderScript('setup-local-registry-upgrade.sh', { port }),
      renderScript('copy-upgrade-registry.sh'),
      renderClusterScript(),
      renderScript('start-cluster-upgrade.sh'),
      textFile(
        '/etc/udev/rules.d/99-upgrade-iso.rules',
        renderText('files/99-upgrade-iso.rules'),
        0o600,
      ),
    ],
    units: [
      renderUnit('mount-upgrade-iso@.service'),
      renderUnit('start-local-registry-upgrade@.service', { run }),
      renderUnit('copy-upgrade-registry@.service'),
      renderClusterUpgrade('start-cluster-upgrade@.service', {
        version: '%i',
        command: 'start-cluster-upgrade.sh %i',
      }),
    ],
  };
}

const renderClusterScript = (): File =>
  renderScript('upgrade-cluster.sh', { gates: ADMIN_GATE_PATTERN });

/** Starts with each boot until the upgrade is done. */
const renderClusterUpgrade = (
  name: string,
  holes: Readonly<Record<'version' | 'command', string>>,
): Unit => ({ name, contents: renderText('units/upgrade-cluster.service', holes) });

/**
 * A MachineConfig for each role that brings the same files to hosts that were installed without media or by
 * another builder's media. Those run their own registry by an image that podman has, named in
 * `/etc/assisted/registry.env`.
 */
export function renderUpgradeHostMachineConfigs(): string {
  const { files, units } = renderUpgradeHost();
  const shared = renderRegistryScripts(nodeRegistryDomain(false));
  return ROLES.map((role) =>
    formatMachineConfig({
      name: `99-${role}-upgrade-hosts`,
      role,
      storage: { files: [...shared, ...files] },
      systemd: { units },
    }),
  ).join('---\n');
}

export type UpgradeResourcesInput = {
  /** The last release; names the objects, so that earlier ones stay. */
  readonly version: string;
  /** Intermediate releases too; the signatures of one may be empty. */
  readonly releases: readonly {
    readonly version: string;
    readonly digest: Digest;
    readonly signatures: readonly Uint8Array[];
  }[];
  readonly mirrors: readonly PlannedMirror[];
  readonly catalogs: readonly ServedCatalog[];
  readonly useDefaultSourceNames: boolean;
};

/**
 * `upgrade-VERSION.yaml`, for `oc apply` before an upgrade: the signatures of the releases, then the mirrors
 * and catalogs of the ISO's contents. Each mirror names the hosts' own registry and the registry of the
 * attached ISO, because the copy on the host may come later; so does the mirror of the hosts' own registry,
 * from which catalogs are read.
 *
 * @throws ConfigError `catalog.bad-name`, `catalog.same-name`
 */
export function renderUpgradeResources(input: UpgradeResourcesInput): string {
  const { version, mirrors, catalogs, useDefaultSourceNames } = input;
  const domain = nodeRegistryDomain(false);
  const own = `${domain}:${NODE_REGISTRY_PORT}`;
  const attached = `${domain}:${UPGRADE_REGISTRY_PORT}`;
  const suffix = nameOf(version);
  const manifests = [
    ...input.releases
      .filter(({ signatures }) => signatures.length > 0)
      .map((release) =>
        renderSignatureConfigMap({
          ...release,
          name: `release-signatures-${nameOf(release.version)}`,
        }),
      ),
    ...renderMirrorSets(mirrors, [own, attached], suffix),
    ...(catalogs.length === 0
      ? []
      : [renderRegistryMirror(`idms-catalog-${suffix}`, { source: own, mirror: attached })]),
    ...renderCatalogResources({ catalogs, registry: own, useDefaultSourceNames, pinned: true }),
  ];
  return manifests.map(({ text }) => text).join('---\n');
}

/** RFC 1123 subdomain: no build metadata (`+`), and a letter or digit at both ends of each part. */
const nameOf = (version: string): string =>
  version
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]/g, '-')
    .slice(0, 200)
    .split('.')
    .map((part) => part.replaceAll(/^-+|-+$/g, ''))
    .filter((part) => part !== '')
    .join('.');

/** Start of the volume label by which hosts recognize an upgrade ISO. */
export const UPGRADE_LABEL_PREFIX = 'upgrade_';

export type CarriedHop = {
  readonly version: string;
  /** `registry/repository@sha256:...`, as the update graph names it. */
  readonly releaseImage: string;
  /** Exactly these versions may be updated to it. */
  readonly fromVersions: readonly string[];
  /** True if its signature is among the resources; else the cluster must not require signatures. */
  readonly isSigned: boolean;
  /** True if a person has accepted every risk that the update graph names for it. */
  readonly isAccepted: boolean;
};

type UpgradeMachineConfigInput = {
  /** At least one hop, the last release at the end. */
  readonly hops: readonly CarriedHop[];
  readonly arch: RpmArchitecture;
  /** The text of {@link renderUpgradeResources}, applied first. */
  readonly resources: string;
  /** Keys of `admin-gates` that a person has acknowledged in advance. */
  readonly acknowledged: readonly string[];
};

/** The name that the reference builder uses: one cluster never has two waiting upgrades. */
const NAME = '99-start-cluster-upgrade';
const LABEL = 'appliance-upgrade';
const DIRECTORY = '/etc/assisted/upgrade';

/**
 * Upgrades a cluster from upgrade ISOs attached to its hosts, and then deletes itself; applying and deleting
 * it reboots the control plane hosts one by one. The first control plane node by name does the work. Refuses,
 * and deletes itself, when the cluster has had the last release or a later one, when its version is not in
 * `fromVersions`, and on hosts of another architecture. Waits until every node can read the release from the
 * ISO, and names the nodes that cannot; and until the cluster lets it through its gates, and names what is
 * missing. Hosts of other builders' media accept it, too.
 */
export function renderUpgradeMachineConfig(input: UpgradeMachineConfigInput): string {
  const { hops, arch, resources, acknowledged } = input;
  const version = hops.at(-1)?.version;
  if (version === undefined) throw new TypeError('an upgrade without releases');
  // The value of a label ends in a letter or digit (Kubernetes: labels and selectors).
  const label = version
    .replaceAll('+', '_')
    .slice(0, 63)
    .replace(/[^a-zA-Z0-9]+$/, '');
  const command = `upgrade-cluster.sh ${version} ${DIRECTORY} ${arch} ${LABEL}=${label}`;
  const unit = renderClusterUpgrade('upgrade-cluster.service', { version, command });
  return formatMachineConfig({
    name: NAME,
    role: 'master',
    labels: { [LABEL]: label },
    storage: {
      files: [
        renderClusterScript(),
        textFile(`${DIRECTORY}/hops`, hops.map(formatHop).join(''), 0o644),
        textFile(`${DIRECTORY}/resources.yaml`, resources, 0o600),
        ...(acknowledged.length === 0
          ? []
          : [textFile(`${DIRECTORY}/acknowledged`, `${acknowledged.join('\n')}\n`, 0o644)]),
      ],
    },
    systemd: { units: [{ ...unit, enabled: true }] },
  });
}

function formatHop({ version, releaseImage, fromVersions, ...hop }: CarriedHop): string {
  const words = [
    version,
    releaseImage,
    hop.isSigned ? 'signed' : 'unsigned',
    fromVersions.join(','),
  ];
  return `${[...words, ...(hop.isAccepted ? ['--allow-not-recommended'] : [])].join(' ')}\n`;
}
