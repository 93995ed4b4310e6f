import type { InstallationSettings } from './installation-settings.ts';

/**
 * `/var/tmp/ibi-configuration.json`, which `lca-cli ibi` reads: compact JSON, members in its order,
 * without those that are empty, 0 or false.
 */
export function formatIbiConfiguration(settings: InstallationSettings): string {
  const { installationDisk, seedImage, seedVersion, coreosInstallerArgs } = settings;
  return JSON.stringify({
    extraPartitionLabel: settings.extraPartitionLabel || undefined,
    extraPartitionNumber: settings.extraPartitionNumber || undefined,
    extraPartitionStart: settings.extraPartitionStart || undefined,
    installationDisk,
    releaseRegistry: settings.releaseRegistry || undefined,
    seedImage,
    seedVersion,
    shutdown: settings.shutdown || undefined,
    skipDiskCleanup: settings.skipDiskCleanup || undefined,
    coreosInstallerArgs: coreosInstallerArgs.length > 0 ? coreosInstallerArgs : undefined,
  });
}
