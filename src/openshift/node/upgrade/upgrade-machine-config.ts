import { textFile } from '../../../ignition/config.ts';
import type { RpmArchitecture } from '../../release/release-bundle.ts';
import { formatMachineConfig } from '../machine-config.ts';
import { renderScript } from '../templates.ts';
import { renderClusterUpgrade } from './upgrade-host.ts';

/** One update of the path that an upgrade ISO carries. */
export type UpgradeHop = {
  readonly version: string;
  /** `registry/repository@sha256:...`, as the update graph names it. */
  readonly releaseImage: string;
  /** Exactly these may be updated to it. */
  readonly fromVersions: readonly string[];
  /** Whether its signature is among the resources; without, the cluster must check none. */
  readonly isSigned: boolean;
};

export type UpgradeMachineConfigInput = {
  /** At least one, the last release at the end. */
  readonly hops: readonly UpgradeHop[];
  readonly arch: RpmArchitecture;
  /** Applied before the upgrade is requested: the text of {@link renderUpgradeResources}. */
  readonly resources: string;
};

/** The reference builder's name: two upgrades never wait on one cluster. */
const NAME = '99-start-cluster-upgrade';
const LABEL = 'appliance-upgrade';
const DIRECTORY = '/etc/assisted/upgrade';

/**
 * A MachineConfig that upgrades a cluster from upgrade ISOs attached to its hosts, and then deletes
 * itself; applying and deleting it reboots the control plane hosts one by one. The first control plane
 * node by name does the work. It refuses, and goes, when the cluster has had the last release or a later
 * one, when the cluster's version is not in `fromVersions`, and on hosts of another architecture. It
 * waits until every node can read the release from the ISO, and names those that cannot. Hosts of other
 * builders' media take it, too.
 */
export function renderUpgradeMachineConfig(input: UpgradeMachineConfigInput): string {
  const { hops, arch, resources } = input;
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
        renderScript('upgrade-cluster.sh'),
        textFile(`${DIRECTORY}/hops`, hops.map(formatHop).join(''), 0o644),
        textFile(`${DIRECTORY}/resources.yaml`, resources, 0o600),
      ],
    },
    systemd: { units: [{ ...unit, enabled: true }] },
  });
}

const formatHop = ({ version, releaseImage, fromVersions, isSigned }: UpgradeHop): string =>
  `${version} ${releaseImage} ${isSigned ? 'signed' : 'unsigned'} ${fromVersions.join(',')}\n`;
