import { textFile, type File, type Unit } from '../../../ignition/config.ts';
import { renderRegistryRun, UPGRADE_REGISTRY_PORT, type RegistryImage } from '../node-registry.ts';
import { renderScript, renderText, renderUnit } from '../templates.ts';

/**
 * What an installed host needs to be upgraded from an ISO with a label `upgrade_...`: as soon as one is
 * attached, it is served at port 5001 by the image of the host's own registry, with a certificate that
 * stays, and what it has is added to the copy at `/var/lib/appliance-registry`. A cluster that was
 * installed without it gets it only by a MachineConfig.
 */
export function renderUpgradeHost(image: RegistryImage): {
  readonly files: readonly File[];
  readonly units: readonly Unit[];
} {
  const port = String(UPGRADE_REGISTRY_PORT);
  const run = renderRegistryRun(image, {
    name: 'registry_upgrade',
    data: '${REGISTRY_UPGRADE}',
    certs: '/etc/appliance-registry/certs-upgrade',
    port,
  });
  return {
    files: [
      renderScript('mount-upgrade-iso.sh'),
      renderScript('setup-local-registry-upgrade.sh', { port }),
      renderScript('copy-upgrade-registry.sh'),
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
    ],
  };
}
