import { textFile, type File, type Unit } from '../../../ignition/config.ts';
import { formatMachineConfig, ROLES } from '../manifests/extra-manifests.ts';
import {
  nodeRegistryDomain,
  renderRegistryRun,
  renderRegistryScripts,
  UPGRADE_REGISTRY_PORT,
} from '../node-registry.ts';
import { renderScript, renderText, renderUnit } from '../templates.ts';

type Pieces = { readonly files: readonly File[]; readonly units: readonly Unit[] };

/**
 * What an installed host needs, beside its own registry, to be upgraded from an ISO with a label
 * `upgrade_...`: as soon as one is attached, it is served at port 5001 by the image of the host's own
 * registry, with a certificate that stays, and what it has is added to the copy at
 * `/var/lib/appliance-registry`. How that image is started is found out on the host. A MachineConfig of
 * openshift/appliance finds the unit `start-cluster-upgrade@.service` that it enables.
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
      renderScript('upgrade-cluster.sh'),
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

/** A unit that upgrades the cluster; enabled, it starts with each boot until the upgrade is done. */
export const renderClusterUpgrade = (
  name: string,
  holes: Readonly<Record<'version' | 'command', string>>,
): Unit => ({ name, contents: renderText('units/upgrade-cluster.service', holes) });

/**
 * `upgrade-hosts.yaml`: a MachineConfig for each role that brings the same, and the scripts that it
 * shares with the own registry, to hosts that were installed without or by another builder's media.
 * Those run their own registry by an image that podman has, named in `/etc/assisted/registry.env`.
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
