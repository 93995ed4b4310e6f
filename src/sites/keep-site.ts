import { formatNetworkConfig } from './network/format-network-config.ts';
import { isMapping } from './network/free.ts';
import { readProxy } from './rules/install-config.ts';
import { listMachineNetworks } from './network/networks.ts';
import type { WrittenImageBasedConfig, WrittenInstallConfig } from './document/site-shapes.ts';
import type { ImageDigestSource, SiteImageBasedConfig, SiteInstallConfig } from './site.ts';

/** What of install-config.yaml goes to the node, without any default. */
export function keepInstallConfig(written: WrittenInstallConfig): SiteInstallConfig {
  const { metadata = {}, baseDomain = '', sshKey = '', pullSecret = '' } = written;
  const machine = listMachineNetworks(written.networking).map(({ text }) => text);
  const proxy = readProxy(written.proxy);
  return {
    clusterName: metadata.name ?? '',
    baseDomain,
    sshKey,
    pullSecret,
    ...(proxy && { proxy }),
    ...keepTrust(written),
    ...(machine.length > 0 && { machineNetworks: machine }),
    ...(written.imageDigestSources && {
      imageDigestSources: written.imageDigestSources.map(keepSource),
    }),
  };
}

const keepTrust = ({
  additionalTrustBundle,
  additionalTrustBundlePolicy,
}: WrittenInstallConfig): Pick<
  SiteInstallConfig,
  'additionalTrustBundle' | 'additionalTrustBundlePolicy'
> => ({
  ...(additionalTrustBundle && { additionalTrustBundle }),
  ...(additionalTrustBundlePolicy && { additionalTrustBundlePolicy }),
});

type WrittenSource = NonNullable<WrittenInstallConfig['imageDigestSources']>[number];

const keepSource = (written: WrittenSource): ImageDigestSource => {
  const { source = '', mirrors = [], sourcePolicy } = written ?? {};
  return {
    source,
    mirrors: mirrors.map((mirror = '') => mirror),
    ...(sourcePolicy && { sourcePolicy }),
  };
};

/** image-based-config.yaml, its network configuration in the normal form. */
export function keepImageBasedConfig(written: WrittenImageBasedConfig): SiteImageBasedConfig {
  const { additionalNTPSources = [], hostname = '', nodeLabels = {} } = written;
  const { networkConfig: network, releaseRegistry } = written;
  const { cluster_id: clusterId, infra_id: infraId } = written;
  const isGiven = isMapping(network) && Object.keys(network).length > 0;
  return {
    additionalNTPSources: additionalNTPSources.map((source = '') => source),
    hostname,
    ...(isGiven && { networkConfig: formatNetworkConfig(network) }),
    ...(releaseRegistry && { releaseRegistry }),
    ...(clusterId && { clusterId }),
    ...(infraId && { infraId }),
    nodeLabels,
  };
}
