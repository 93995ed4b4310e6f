import type { DocumentProblem } from '../../base/errors.ts';
import { type Cidr, formatAddress, parseAddress } from '../../base/ip-address.ts';
import { type InterfaceAddress, listAllAddresses, readInterfaces } from '../../nmstate/index.ts';
import { FENCING_CREDENTIALS, folderOf } from '../../openshift/agent/host-configs.ts';
import { type ReportProblem, invalid } from '../../shape/report.ts';
import type { WrittenAgentHost } from './documents.ts';

/* Owns the rules of hosts of one cluster among each other: names, interfaces and addresses that two have. */

/** Facts of the cluster that the rules compare hosts with. */
export type HostRules = {
  readonly machine: readonly Cidr[];
  /** Virtual addresses of the cluster. */
  readonly vips: readonly string[];
  /** True if hosts need an address in every machine network; else in one of them. */
  readonly needsAllNetworks: boolean;
  /** True if the nodes balance their load themselves, or there is one: no rule about machine networks. */
  readonly isUserManaged: boolean;
};

export type PlacedHost = { readonly path: string; readonly written: WrittenAgentHost };

/** Facts that two hosts of a cluster share, or a host and the cluster. */
export const checkAcrossHosts = (
  report: ReportProblem,
  hosts: readonly PlacedHost[],
  rules: HostRules,
): readonly DocumentProblem[] => [
  ...findRepeatedNames(report, hosts),
  ...findTakenFolders(report, hosts),
  ...findRepeatedMacs(report, hosts),
  ...findCollisions(report, hosts, rules),
];

function findRepeatedNames(
  report: ReportProblem,
  hosts: readonly PlacedHost[],
): readonly DocumentProblem[] {
  const seen = new Set<string>();
  return hosts.flatMap(({ path, written: { hostname = '' } }) => {
    const isRepeated = hostname !== '' && seen.has(hostname);
    seen.add(hostname);
    const problem = `Hostname ${hostname} is not unique in cluster`;
    return isRepeated
      ? [report(`${path}.hostname`, problem, { code: 'validation.hostname-unique' })]
      : [];
  });
}

/** A host without a name has a folder with its number on the image, which is not another host's name. */
function findTakenFolders(
  report: ReportProblem,
  hosts: readonly PlacedHost[],
): readonly DocumentProblem[] {
  const folders = new Set(
    hosts.flatMap(({ written: { hostname = '' } }, index) =>
      hostname === '' ? [folderOf(index)] : [],
    ),
  );
  return hosts.flatMap(({ path, written: { hostname = '' } }) => {
    if (!folders.has(hostname) && hostname !== FENCING_CREDENTIALS) return [];
    const why = `the image has another ${folders.has(hostname) ? 'host' : 'file'} under this name`;
    return [report(`${path}.hostname`, invalid(hostname, why), { hint: 'choose another name' })];
  });
}

/** Agents compare addresses regardless of case, unlike openshift-install. */
function findRepeatedMacs(
  report: ReportProblem,
  hosts: readonly PlacedHost[],
): readonly DocumentProblem[] {
  const seen = new Set<string>();
  return hosts.flatMap(({ path, written: { interfaces = [] } }) =>
    interfaces.flatMap(({ macAddress = '' } = {}, index) => {
      const key = macAddress.toLowerCase();
      const isRepeated = key !== '' && seen.has(key);
      seen.add(key);
      return isRepeated
        ? [
            report(
              `${path}.interfaces[${index}].macAddress`,
              invalid(macAddress, 'duplicate MAC address found'),
            ),
          ]
        : [];
    }),
  );
}

type Owned = InterfaceAddress & { readonly host: string };

function findCollisions(
  report: ReportProblem,
  hosts: readonly PlacedHost[],
  { vips }: HostRules,
): readonly DocumentProblem[] {
  const virtual = new Set(vips.map(normalise));
  const seen = new Map<string, Owned>();
  return listStatic(hosts).flatMap((address) => {
    const text = formatAddress(address.subnet);
    const known = seen.get(text);
    if (!known) seen.set(text, address);
    const at = `${address.host}.networkConfig.${address.path}`;
    const code = 'validation.no-ip-collisions-in-network';
    const isVip = virtual.has(text);
    return [
      ...(isVip
        ? [report(at, `IP address ${text} is also a virtual address of the cluster`, { code })]
        : []),
      ...(known && known.host !== address.host
        ? [
            report(at, `Collisions detected: IP address ${text} is also that of ${known.host}`, {
              code,
            }),
          ]
        : []),
    ];
  });
}

const listStatic = (hosts: readonly PlacedHost[]): readonly Owned[] =>
  hosts.flatMap(({ path, written: { networkConfig } }) =>
    readInterfaces(networkConfig)
      .filter(({ state }) => state === 'up')
      .flatMap(listAllAddresses)
      .map((address) => ({ ...address, host: path })),
  );

function normalise(text: string): string {
  const address = parseAddress(text);
  return address ? formatAddress(address) : text;
}

/** The static addresses of each host, in the order of the hosts; normalised. */
export const listHostAddresses = (
  hosts: readonly (WrittenAgentHost | undefined)[],
): readonly (readonly string[])[] =>
  hosts.map((written = {}) =>
    listStatic([{ path: '', written }]).map(({ subnet }) => formatAddress(subnet)),
  );
