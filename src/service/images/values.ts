import { parseMacAddress } from '../../base/mac-address.ts';
import { readSshKeys } from '../../keys/index.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { mergeConfigs, parseIgnition } from '../../ignition/index.ts';
import { type HostNetwork, type NetworkTool, planHosts } from '../../nmstate/index.ts';
import type { GivenImage } from '../../media/customize/config-image.ts';
import type { CustomValues, ProxyValues } from '../../openshift/agent/values.ts';
import type { InfraEnv, StaticNetwork } from '../infra-envs/infra-env.ts';
import { listNtpSources } from '../infra-envs/rules.ts';

/**
 * Reads the values that assisted-service passes to the installer of an InfraEnv, and the trust bundle and
 * the override, which assisted-service only stores.
 */
export async function readValues(
  infraEnv: InfraEnv,
  {
    forAgents,
    networkTool,
  }: { readonly forAgents: boolean } & { readonly networkTool: NetworkTool | undefined },
): Promise<CustomValues> {
  const { ssh_authorized_key: keys, rendezvous_ip: rendezvousIp, proxy } = infraEnv;
  const { additional_trust_bundle: trustBundle } = infraEnv;
  const ntp = listNtpSources(infraEnv);
  const isExclusive = (infraEnv.ntp_sources ?? '') !== '';
  return {
    pullSecret: infraEnv.pull_secret.reveal(),
    hosts: await planNetworksOf(infraEnv, networkTool),
    ...withoutUndefined({ ignitionOverride: composeOverride(infraEnv) }),
    kargs: { append: (infraEnv.kernel_arguments ?? []).map(({ value }) => value) },
    ...(keys && { sshKeys: readSshKeys(keys).keys.map(({ line }) => line) }),
    ...(rendezvousIp && { rendezvousIp }),
    ...(trustBundle && { trustBundle }),
    ...(ntp.length > 0 && (isExclusive ? { exclusiveNtpSources: ntp } : { ntpSources: ntp })),
    ...(proxy && { proxy: toProxy(proxy) }),
    ...(forAgents && { infraEnv: describeInfraEnv(infraEnv) }),
  };
}

/** Plans the hosts that have a network; it was judged when the InfraEnv was stored. */
export const planNetworksOf = (
  infraEnv: Pick<InfraEnv, 'static_network_config'>,
  tool: NetworkTool | undefined,
): Promise<readonly HostNetwork[]> =>
  planHosts(listHosts(infraEnv), {
    tool,
    signal: new AbortController().signal,
    warn: () => undefined,
  });

/** Lists hosts, without those that have no network or no interface. */
export const listHosts = ({
  static_network_config: hosts = [],
}: Pick<InfraEnv, 'static_network_config'>): readonly HostNetwork[] =>
  hosts.map(toHost).filter(({ networkConfig, interfaces }) => {
    return networkConfig.trim() !== '' && interfaces.length > 0;
  });

const toProxy = (proxy: NonNullable<InfraEnv['proxy']>): ProxyValues =>
  withoutUndefined({
    httpProxy: proxy.http_proxy ?? undefined,
    httpsProxy: proxy.https_proxy ?? undefined,
    noProxy: proxy.no_proxy ?? undefined,
  });

/** The configuration image of a site, which configures the cluster in place of a person. */
export const readSiteImage = ({ config_image: text }: InfraEnv): GivenImage | undefined =>
  text === undefined ? undefined : { name: 'config_image', bytes: Buffer.from(text, 'base64') };

/** Tells the agent services that a user configures the cluster in the web interface. */
const SENTINEL = {
  ignition: { version: '3.2.0' },
  storage: {
    files: [
      {
        path: '/etc/assisted/interactive-ui',
        overwrite: true,
        user: { name: 'root' },
        contents: { source: 'data:,' },
        mode: 0o644,
      },
    ],
  },
};

function composeOverride(infraEnv: InfraEnv): string | undefined {
  const { ignition_config_override: override, config_image: image } = infraEnv;
  if (image !== undefined) return override;
  if (!override) return JSON.stringify(SENTINEL);
  return JSON.stringify(
    mergeConfigs(parseIgnition(override, 'ignition_config_override'), SENTINEL),
  );
}

const toHost = ({ network_yaml, mac_interface_map = [] }: StaticNetwork): HostNetwork => ({
  networkConfig: network_yaml ?? '',
  interfaces: mac_interface_map.flatMap(({ mac_address: macAddress, logical_nic_name: name }) =>
    !macAddress || !name ? [] : [{ macAddress: parseMacAddress(macAddress) ?? macAddress, name }],
  ),
});

function describeInfraEnv(infraEnv: InfraEnv): NonNullable<CustomValues['infraEnv']> {
  const { id, name, cpu_architecture: cpuArchitecture } = infraEnv;
  const labels = { 'agent-install.openshift.io/infraenv-id': id };
  const hasHosts = listHosts(infraEnv).length > 0;
  return {
    metadata: { name },
    spec: {
      cpuArchitecture,
      pullSecretRef: { name: 'pull-secret' },
      nmStateConfigLabelSelector: hasHosts ? { matchLabels: labels } : {},
    },
  };
}
