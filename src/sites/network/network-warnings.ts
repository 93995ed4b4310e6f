import type { DocumentProblem } from '../../base/errors.ts';
import type { Report } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';
import { flagOf, listOf, mapOf, textOf } from './free.ts';
import { readInterfaces, type NetworkInterface } from './interfaces.ts';
import { warnOfMembers } from './nmstate/members.ts';
import { listPorts } from './nmstate/ports.ts';
import {
  contains,
  parseAddress,
  parseCidr,
  type Cidr,
  type Family,
} from '../../base/ip-address.ts';

const TYPES = new Set([
  'bond',
  'dummy',
  'ethernet',
  'hsr',
  'infiniband',
  'ipsec',
  'ipvlan',
  'linux-bridge',
  'loopback',
  'mac-vlan',
  'mac-vtap',
  'macsec',
  'ovs-bridge',
  'ovs-interface',
  'tun',
  'veth',
  'vlan',
  'vpn',
  'vrf',
  'vxlan',
  'wireguard',
  'xfrm',
]);

/** What nmstate takes and a node seldom works with; of a document whose form is right. */
export function warnOfNetworkConfig(
  report: Report,
  network: Plain | undefined,
): readonly DocumentProblem[] {
  const interfaces = readInterfaces(network).filter(({ isUp }) => isUp);
  if (interfaces.length === 0) return [];
  return [
    ...warnOfMembers(report, mapOf(network)),
    ...interfaces.flatMap((each) => warnOfInterface(report, each)),
    ...warnOfCopies(report, interfaces),
    ...warnOfBases(report, network),
    ...warnOfRoutes(report, network, interfaces),
    ...warnOfNameServers(report, network, interfaces),
  ];
}

function warnOfInterface(
  report: Report,
  { path, type, mac, value }: NetworkInterface,
): readonly DocumentProblem[] {
  const ipv6 = mapOf(value['ipv6']);
  const isAlone = flagOf(ipv6['autoconf']) === true && flagOf(ipv6['dhcp']) !== true;
  return [
    ...(isAlone && flagOf(ipv6['enabled']) === true
      ? [report(`${path}.ipv6.autoconf`, 'nmstate 2.2 takes autoconf together with dhcp only')]
      : []),
    ...(type === '' || TYPES.has(type)
      ? []
      : [report(`${path}.type`, `interfaces of type "${type}" are not checked here`)]),
    ...(mac !== undefined && /^(?:00:)+00$/.test(mac)
      ? [report(`${path}.mac-address`, 'no interface has this MAC address')]
      : []),
  ];
}

/** While nothing is running nmstate finds a MAC address only where it is written. */
function warnOfCopies(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const known = new Set(interfaces.filter(({ mac }) => mac !== undefined).map(({ name }) => name));
  return interfaces.flatMap(({ path, value }) => {
    const from = textOf(value['copy-mac-from']) ?? '';
    if (from === '' || known.has(from)) return [];
    const why = `nmstate 2.2 finds no MAC address of ${from}: write its mac-address`;
    return [report(`${path}.copy-mac-from`, why)];
  });
}

/** Nothing is running yet that nmstate could find an interface in which the document does not define. */
function warnOfBases(report: Report, network: Plain | undefined): readonly DocumentProblem[] {
  const all = readInterfaces(network);
  const defined = new Set(all.map(({ name }) => name));
  return all.flatMap((owner) =>
    listBases(owner)
      .filter(({ name }) => !defined.has(name))
      .map(({ name, path }) => {
        const problem = `${owner.type} ${owner.name} is over "${name}", which is not defined`;
        const hint = `add "${name}" to the interfaces`;
        return report(path, problem, { hint });
      }),
  );
}

/** What a VLAN or a bond needs to be there. */
function listBases(owner: NetworkInterface): readonly Base[] {
  if (!owner.isUp) return [];
  if (owner.type === 'bond') return listPorts(owner);
  if (owner.type !== 'vlan') return [];
  const name = textOf(mapOf(owner.value['vlan'])['base-iface']) ?? '';
  return name === '' ? [] : [{ name, path: `${owner.path}.vlan.base-iface` }];
}

type Base = { readonly name: string; readonly path: string };

/** Families that have addresses, none of which comes with routes and name servers of its own. */
const listStatic = (interfaces: readonly NetworkInterface[]): readonly Family[] =>
  interfaces.some(({ dynamic }) => dynamic.length > 0)
    ? []
    : ([4, 6] as const).filter((family) =>
        interfaces.some(({ addresses }) =>
          addresses.some(({ subnet }) => subnet.family === family),
        ),
      );

const listRoutes = (network: Plain | undefined): readonly Cidr[] =>
  listOf(mapOf(mapOf(network)['routes'])['config'])
    .map(mapOf)
    .filter((route) => route['state'] !== 'absent')
    .map((route) => parseCidr(textOf(route['destination']) ?? ''))
    .filter((cidr) => cidr !== undefined);

/** The cluster's own network takes the interface of the default route. */
function warnOfRoutes(
  report: Report,
  network: Plain | undefined,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const routes = listRoutes(network);
  return listStatic(interfaces)
    .filter((family) => !routes.some((route) => route.family === family && route.prefix === 0))
    .map((family) =>
      report('networkConfig.routes.config', `there is no default route for IPv${family}`),
    );
}

function warnOfNameServers(
  report: Report,
  network: Plain | undefined,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const families = listStatic(interfaces);
  if (families.length === 0) return [];
  const path = 'networkConfig.dns-resolver.config.server';
  const servers = listOf(mapOf(mapOf(mapOf(network)['dns-resolver'])['config'])['server']);
  if (servers.length === 0) return [report(path, 'no name server is given')];
  const reached = [
    ...listRoutes(network),
    ...interfaces.flatMap(({ addresses }) => addresses.map(({ subnet }) => subnet)),
  ];
  return servers.flatMap((item, index) => {
    const text = textOf(item) ?? '';
    const server = parseAddress(text);
    if (!server || reached.some((cidr) => contains(cidr, server))) return [];
    return [report(`${path}[${index}]`, `no route leads to the name server ${text}`)];
  });
}
