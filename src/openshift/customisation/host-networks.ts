import { ConfigError } from '../../base/errors.ts';
import { parse } from '../../shape/parse-text.ts';
import { textFile, type File } from '../../ignition/config.ts';
import { formatManifest } from '../node/manifests/extra-manifests.ts';
import type { HostNetwork, Keyfile } from './custom-values.ts';
import { normaliseKeyfile } from '../../nmstate/values.ts';
import { renderKeyfiles } from '../../nmstate/profiles.ts';

/** Where a host has its profiles on a medium, each host in a folder with its number. */
export const HOST_NETWORKS = '/etc/assisted/network/';

/** Hosts find their own profiles by the addresses of their interfaces. */
export function planHostNetworks(hosts: readonly HostNetwork[]): readonly File[] {
  requireDistinct(hosts);
  return sortHosts(hosts).flatMap((host, index) => {
    requireInterfaces(host, index);
    const directory = `${HOST_NETWORKS}host${index}`;
    const map = host.interfaces.map(({ macAddress, name }) => `${macAddress}=${name}`);
    return [
      ...profilesOf(host).map(({ name, content }) =>
        textFile(`${directory}/${name}`, content, 0o600),
      ),
      textFile(`${directory}/mac_interface.ini`, map.toSorted().join('\n'), 0o600),
    ];
  });
}

/** Of one host, as nmstate made them or as it would. */
export const profilesOf = ({ keyfiles, networkConfig }: HostNetwork): readonly Keyfile[] =>
  keyfiles?.map(normaliseKeyfile) ?? renderKeyfiles(networkConfig);

/** In the installer's order, which numbers the hosts: by configuration, then by addresses. */
function sortHosts(hosts: readonly HostNetwork[]): readonly HostNetwork[] {
  const keyOf = ({ networkConfig, interfaces }: HostNetwork): readonly string[] => [
    formatManifest(parse(networkConfig) as object),
    String(interfaces.length).padStart(6, '0'),
    ...interfaces.map(({ name, macAddress }) => `${name}=${macAddress}`).toSorted(),
  ];
  return hosts
    .map((host) => ({ host, key: keyOf(host).join('\0') }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ host }) => host);
}

/** A host would take the profiles of one of the two. */
function requireDistinct(hosts: readonly HostNetwork[]): void {
  const known = new Set<string>();
  for (const { interfaces } of hosts) {
    const macs = new Set(interfaces.map(({ macAddress }) => macAddress.toLowerCase()));
    for (const mac of macs) {
      if (!known.has(mac)) continue;
      throw new ConfigError('nmstate.interfaces', `${mac} is in the network of two hosts`, {
        hint: 'give the network of each host once',
      });
    }
    for (const mac of macs) known.add(mac);
  }
}

const MAC_ADDRESS = /^(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$/;

function requireInterfaces({ interfaces, source }: HostNetwork, index: number): void {
  const wrong = interfaces.find(({ macAddress }) => !MAC_ADDRESS.test(macAddress));
  if (wrong) {
    throw refuse(`MAC address ${wrong.macAddress} for host ${index} has another format`, {
      expected: 'XX:XX:XX:XX:XX:XX',
      found: wrong.macAddress,
    });
  }
  if (interfaces.length === 0 && source !== undefined) {
    throw new ConfigError(
      'nmstate.interfaces',
      `no interface in ${source} has a mac-address, by which a host finds its network`,
      { hint: 'add mac-address to the interfaces, or give an NMStateConfig' },
    );
  }
  if (interfaces.length === 0) {
    throw refuse(`at least one interface for host ${index} must be provided`);
  }
  const distinct = [
    new Set(interfaces.map(({ name }) => name)),
    new Set(interfaces.map(({ macAddress }) => macAddress.toLowerCase())),
  ];
  if (distinct.every(({ size }) => size === interfaces.length)) return;
  throw refuse(`MACs and interfaces for host ${index} must be unique`);
}

const refuse = (
  problem: string,
  values: { readonly expected?: string; readonly found?: string } = {},
): ConfigError =>
  new ConfigError('nmstate.interfaces', problem, {
    ...values,
    hint: 'correct spec.interfaces of the NMStateConfig',
  });
