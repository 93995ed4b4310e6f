import type { AgentCluster, AgentHost, FencingCredential } from './agent-cluster.ts';
import { formatGoYaml } from './go-yaml.ts';
import type { NamedText } from './cluster-manifests.ts';

/*
 * Owns the files by which the rendezvous host configures the others: role, disk and management controller
 * (assisted-service: cmd/agentbasedinstaller/host_config.go).
 */

const HOST_CONFIG = '/etc/assisted/hostconfig/';

/** The file beside the folders of the hosts. */
export const FENCING_CREDENTIALS = 'fencing-credentials.yaml';

/** The folder of a host without a name, by its place in the list. */
export const folderOf = (index: number): string => `host-${index}`;

/** By absolute path. A host has a folder with its name, else with its number. */
export const renderHostConfigs = ({ hosts, fencing }: AgentCluster): readonly NamedText[] => [
  ...hosts.flatMap((host, index) =>
    describeHost(host).map(({ name, text }) => ({
      name: `${HOST_CONFIG}${host.hostname ?? folderOf(index)}/${name}`,
      text,
    })),
  ),
  ...(fencing.length === 0
    ? []
    : [{ name: `${HOST_CONFIG}${FENCING_CREDENTIALS}`, text: formatFencing(fencing) }]),
];

function describeHost({ interfaces, rootDeviceHints, role }: AgentHost): readonly NamedText[] {
  const addresses = interfaces.map(({ macAddress }) => `${macAddress.toLowerCase()}\n`);
  return [
    { name: 'mac_addresses', text: addresses.join('') },
    ...(rootDeviceHints === undefined
      ? []
      : [{ name: 'root-device-hints.yaml', text: formatGoYaml(rootDeviceHints) }]),
    ...(role === undefined ? [] : [{ name: 'role', text: role }]),
  ];
}

/** The service reads the name of a host under another key than install-config has. */
const formatFencing = (credentials: readonly FencingCredential[]): string =>
  formatGoYaml({
    credentials: credentials.map(({ hostName: hostname, ...others }) => ({ hostname, ...others })),
  });
