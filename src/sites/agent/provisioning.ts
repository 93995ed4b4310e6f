import type { DocumentProblem } from '../../base/errors.ts';
import {
  type Cidr,
  contains,
  formatAddress,
  formatNetwork,
  overlaps,
  parseAddress,
  parseCidr,
} from '../../base/ip-address.ts';
import { findRepeated } from '../../base/lists.ts';
import { type ReportProblem, invalid, required, unsupported } from '../../shape/report.ts';
import { isAddressOrDomain } from '../rules/images.ts';
import { resolveNetworks } from '../rules/networks.ts';
import type { WrittenAgentInstall, WrittenBaremetal } from './documents.ts';

/*
 * Owns the network over which hosts are provisioned after the installation, and their management controllers:
 * defaults and rules (installer: pkg/types/baremetal/defaults, pkg/types/baremetal/validation).
 */

const NETWORKS = ['Disabled', 'Managed', 'Unmanaged'];
const DEFAULT_NETWORK = '172.22.0.0/24';

export type Provisioning = {
  readonly network: string;
  /** As written, or the default; absent without one. */
  readonly cidr?: string;
  readonly clusterIp: string;
  readonly bootstrapIp: string;
  /** First and last address; empty without one. */
  readonly range: string;
};

/** Fills in the installer's defaults: addresses of the network by their number. */
export function resolveProvisioning(
  written: WrittenBaremetal,
  machine: readonly Cidr[],
): Provisioning {
  const network = orElse(written.provisioningNetwork, 'Managed');
  const {
    clusterProvisioningIP: clusterIp = '',
    bootstrapProvisioningIP: bootstrapIp = '',
    provisioningDHCPRange: range = '',
  } = written;
  if (network === 'Disabled') {
    const cidr = findNetwork(clusterIp, machine) ?? written.provisioningNetworkCIDR;
    return { network, clusterIp, bootstrapIp, range, ...(cidr && { cidr }) };
  }
  const cidr = orElse(written.provisioningNetworkCIDR, DEFAULT_NETWORK);
  const known = parseCidr(cidr);
  return {
    network,
    cidr,
    clusterIp: orElse(clusterIp, addressOf(known, 3n)),
    bootstrapIp: orElse(bootstrapIp, addressOf(known, 2n)),
    range: orElse(range, network === 'Managed' ? rangeOf(known) : ''),
  };
}

function findNetwork(text: string, machine: readonly Cidr[]): string | undefined {
  const address = parseAddress(text);
  const own = machine.findLast((each) => address && contains(each, address));
  return own && formatNetwork(own);
}

const orElse = (text = '', other: string): string => (text === '' ? other : text);

/** Empty if the network is unknown or too small. */
const addressOf = (network: Cidr | undefined, number: bigint): string =>
  !network || network.first + number > network.last
    ? ''
    : formatAddress({ family: network.family, value: network.first + number });

function rangeOf(network: Cidr | undefined): string {
  const first = addressOf(network, 10n);
  if (!network || first === '') return '';
  return `${first},${formatAddress({ family: network.family, value: network.last - 1n })}`;
}

const PATH = 'platform.baremetal';

export function checkProvisioning(
  report: ReportProblem,
  { platform, networking }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const baremetal = platform?.baremetal;
  if (!baremetal) return [];
  const machine = resolveNetworks(networking).machine.flatMap(({ cidr }) => (cidr ? [cidr] : []));
  const resolved = resolveProvisioning(baremetal, machine);
  const isManaged = listControllers(baremetal).some(({ address = '' }) => address !== '');
  return [
    ...checkWords(report, baremetal, resolved),
    ...(isManaged ? checkNetwork(report, resolved, machine) : []),
    ...(isManaged ? checkControllers(report, baremetal, resolved) : []),
  ];
}

const listControllers = ({ hosts = [] }: WrittenBaremetal) => hosts.map((host) => host?.bmc ?? {});

function checkWords(
  report: ReportProblem,
  written: WrittenBaremetal,
  { network, cidr = '' }: Provisioning,
): readonly DocumentProblem[] {
  const addresses = ['bootstrapProvisioningIP', 'clusterProvisioningIP'] as const;
  const { additionalNTPServers = [] } = written;
  return [
    ...(NETWORKS.includes(network)
      ? []
      : [report(`${PATH}.provisioningNetwork`, unsupported(network, NETWORKS))]),
    ...addresses.flatMap((member) => {
      const text = written[member] ?? '';
      return text === '' || parseAddress(text)
        ? []
        : [report(`${PATH}.${member}`, invalid(text, `"${text}" is not a valid IP`))];
    }),
    ...(cidr === '' || parseCidr(cidr)
      ? []
      : [report(CIDR, invalid(cidr, `invalid CIDR address: ${cidr}`))]),
    ...additionalNTPServers.flatMap((server, index) =>
      isAddressOrDomain(server)
        ? []
        : [
            report(
              `${PATH}.additionalNTPServers[${index}]`,
              invalid(server, 'NTP server is not a valid IP or domain name'),
            ),
          ],
    ),
  ];
}

const CIDR = `${PATH}.provisioningNetworkCIDR`;
const CLUSTER_IP = `${PATH}.clusterProvisioningIP`;

function checkNetwork(
  report: ReportProblem,
  provisioning: Provisioning,
  machine: readonly Cidr[],
): readonly DocumentProblem[] {
  if (provisioning.network === 'Disabled') return checkDisabled(report, provisioning, machine);
  const own = parseCidr(provisioning.cidr ?? '');
  if (!own) return [];
  return [
    ...explainNetwork(provisioning.network, own, machine).map((why) =>
      report(CIDR, invalid(own.text, why)),
    ),
    ...checkInside(own, provisioning.clusterIp).map((problem) => report(CLUSTER_IP, problem)),
    ...checkRange(report, provisioning, own),
    ...checkInside(own, provisioning.bootstrapIp).map((problem) =>
      report(`${PATH}.bootstrapProvisioningIP`, problem),
    ),
  ];
}

function checkDisabled(
  report: ReportProblem,
  { clusterIp }: Provisioning,
  machine: readonly Cidr[],
): readonly DocumentProblem[] {
  const address = parseAddress(clusterIp);
  if (!address || machine.some((cidr) => contains(cidr, address))) return [];
  const why =
    'provisioning network is disabled, IP expected to be in one of the machine networks: ' +
    machine.map(({ text }) => text).join(',');
  return [report(CLUSTER_IP, invalid(clusterIp, why))];
}

function explainNetwork(network: string, own: Cidr, machine: readonly Cidr[]): readonly string[] {
  const other = machine.find((cidr) => overlaps(cidr, own));
  const isLarge = network === 'Managed' && own.family === 6 && own.prefix < 64;
  return [
    ...(isLarge
      ? ['provisioningNetworkCIDR mask must be greater than or equal to 64 for IPv6 networks']
      : []),
    ...(other
      ? [`cannot overlap with machine network: ${other.text} overlaps with ${own.text}`]
      : []),
    ...(own.value === own.first
      ? []
      : [`provisioningNetworkCIDR has host bits set, expected ${formatNetwork(own)}`]),
  ];
}

function checkInside(own: Cidr, text: string): readonly string[] {
  const address = parseAddress(text);
  return !address || contains(own, address)
    ? []
    : [invalid(text, `"${text}" is not in the provisioning network`)];
}

function checkRange(
  report: ReportProblem,
  { range, clusterIp, bootstrapIp }: Provisioning,
  own: Cidr,
): readonly DocumentProblem[] {
  if (range === '') return [];
  const path = `${PATH}.provisioningDHCPRange`;
  const ends = range.split(',');
  const [first, last] = ends.map(parseAddress);
  if (ends.length !== 2) {
    const why = 'provisioning DHCP range should be in format: start_ip,end_ip';
    return [report(path, invalid(range, why))];
  }
  const wrong = ends.find((end) => !parseAddress(end));
  if (!first || !last)
    return [report(path, invalid(range, `${wrong}: "${wrong}" is not a valid IP`))];
  const outside = [first, last].find((address) => !contains(own, address));
  if (outside) {
    const why = `"${formatAddress(outside)}" is not in the provisioning network`;
    return [report(path, invalid(range, why))];
  }
  const isTaken = (text: string): boolean => {
    const address = parseAddress(text);
    return address !== undefined && first.value <= address.value && address.value <= last.value;
  };
  return Object.entries({ clusterProvisioningIP: clusterIp, bootstrapProvisioningIP: bootstrapIp })
    .filter(([, text]) => isTaken(text))
    .map(([member, text]) =>
      report(
        `${PATH}.${member}`,
        invalid(text, `"${text}" overlaps with the allocated DHCP range`),
      ),
    );
}

/** Kinds of controllers, with true for those that can boot a host over the provisioning network alone. */
const KINDS: Readonly<Record<string, boolean>> = {
  'ibmc': true,
  'idrac': true,
  'idrac-redfish': true,
  'idrac-virtualmedia': false,
  'ilo4': true,
  'ilo4-virtualmedia': false,
  'ilo5': true,
  'ilo5-redfish': true,
  'ilo5-virtualmedia': false,
  'ipmi': true,
  'irmc': true,
  'libvirt': true,
  'redfish': true,
  'redfish-virtualmedia': false,
};

function checkControllers(
  report: ReportProblem,
  written: WrittenBaremetal,
  { network }: Provisioning,
): readonly DocumentProblem[] {
  const controllers = listControllers(written);
  const pathOf = (index: number): string => `${PATH}.hosts[${index}].bmc`;
  const repeated = findRepeated(
    controllers.flatMap(({ address = '' }) => (address === '' ? [] : [address])),
  );
  return [
    ...controllers.flatMap((controller, index) => {
      const { address = '' } = controller;
      const why = network === 'Disabled' ? explainKind(address) : undefined;
      return [
        ...(why === undefined ? [] : [report(pathOf(index), invalid(address, why))]),
        ...(['username', 'password', 'address'] as const)
          .filter((member) => (controller[member] ?? '') === '')
          .map((member) =>
            report(
              `${pathOf(index)}.${member}`,
              required(`missing ${member.charAt(0).toUpperCase()}${member.slice(1)}`),
            ),
          ),
      ];
    }),
    ...repeated.map((address) => {
      const index = controllers.findLastIndex((controller) => controller.address === address);
      return report(`${pathOf(index)}.address`, `Duplicate value: "${address}"`);
    }),
  ];
}

function explainKind(address: string): string | undefined {
  if (address === '') return 'missing BMC address';
  const [, scheme = 'ipmi'] = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(address) ?? [];
  const kind = scheme.replace(/\+https?$/, '');
  const needsNetwork = KINDS[kind];
  if (needsNetwork === undefined) return `Unknown BMC type '${scheme}' for address ${address}`;
  return needsNetwork ? `driver ${kind} requires provisioning network` : undefined;
}
