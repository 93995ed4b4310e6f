import type { DocumentProblem } from '../../base/errors.ts';
import { contains, overlaps, type Cidr } from '../../base/ip-address.ts';
import {
  FAMILIES,
  type InterfaceAddress,
  isDynamic,
  listAllAddresses,
  type NetworkInterface,
  readInterfaces,
} from '../../nmstate/index.ts';
import { type ReportProblem, invalid } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';

/* Owns the comparison of a node's addresses and routes with the networks of its cluster. */

export type ClusterNetworks = {
  /** Machine networks as written; empty if the user wrote no machine network. */
  readonly machine: readonly Cidr[];
  readonly service: readonly Cidr[];
  readonly cluster: readonly Cidr[];
};

/** The node looks for its addresses in the machine networks; without one it never becomes ready. */
export function checkPlausibility(
  report: ReportProblem,
  network: Plain | undefined,
  networks: ClusterNetworks,
): readonly DocumentProblem[] {
  const interfaces = readInterfaces(network).filter((each) => each.state === 'up');
  if (interfaces.length === 0) return [];
  const addresses = interfaces.flatMap(listAllAddresses);
  return [
    ...checkMachineNetworks(report, { interfaces, addresses }, networks.machine),
    ...checkOwnNetworks(report, addresses, networks),
  ];
}

const pathOf = ({ path }: Pick<InterfaceAddress, 'path'>): string => `networkConfig.${path}`;

type Given = {
  readonly interfaces: readonly NetworkInterface[];
  readonly addresses: readonly InterfaceAddress[];
};

/** Each machine network has an address of the node, or can get one from DHCP. */
function checkMachineNetworks(
  report: ReportProblem,
  { interfaces, addresses }: Given,
  machine: readonly Cidr[],
): readonly DocumentProblem[] {
  const dynamic = new Set(
    FAMILIES.filter((family) => interfaces.some((each) => isDynamic(each, family))),
  );
  return machine.flatMap((cidr) => {
    const mine = addresses.filter(({ subnet }) => subnet.family === cidr.family);
    if (dynamic.has(cidr.family) || mine.some(({ subnet }) => contains(cidr, subnet))) return [];
    const [first] = mine;
    if (!first) {
      const why = `no interface has an IPv${cidr.family} address for machine network ${cidr.text}`;
      return [report('networkConfig', why)];
    }
    return [
      report(pathOf(first), invalid(first.text, `no address is in machine network ${cidr.text}`)),
    ];
  });
}

/** Warns of addresses whose subnet is another one than the machine network that they are in. */
export function warnOfPrefixes(
  report: ReportProblem,
  network: Plain | undefined,
  { machine }: ClusterNetworks,
): readonly DocumentProblem[] {
  const addresses = readInterfaces(network).flatMap(listAllAddresses);
  return addresses.flatMap(({ path, text, subnet }) => {
    const around = machine.find((cidr) => cidr.family === subnet.family && contains(cidr, subnet));
    if (!around || around.prefix === subnet.prefix) return [];
    const why = `${subnet.text} has another prefix than machine network ${around.text}`;
    return [report(pathOf({ path }), invalid(text, why))];
  });
}

function checkOwnNetworks(
  report: ReportProblem,
  addresses: readonly InterfaceAddress[],
  { service, cluster }: ClusterNetworks,
): readonly DocumentProblem[] {
  return addresses.flatMap(({ path, text, subnet }) => [
    ...listOverlaps(subnet, service).map((other) =>
      report(
        pathOf({ path }),
        invalid(text, `its subnet must not overlap with service network ${other.text}`),
      ),
    ),
    ...listOverlaps(subnet, cluster).map((other) =>
      report(
        pathOf({ path }),
        invalid(text, `its subnet must not overlap with cluster network ${other.text}`),
      ),
    ),
  ]);
}

const listOverlaps = (subnet: Cidr, others: readonly Cidr[]): readonly Cidr[] =>
  others.filter((other) => overlaps(subnet, other));
