import type { DocumentProblem } from '../../base/errors.ts';
import type { Report } from '../../shape/report.ts';
import { invalid } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';
import { isMapping, listOf, mapOf, type FreeMap, flagOf, textOf } from './free.ts';
import { readInterfaces, type NetworkInterface } from './interfaces.ts';
import { checkInterface } from './nmstate/interface.ts';
import { checkMembers } from './nmstate/members.ts';
import { checkPorts } from './nmstate/ports.ts';
import { checkRouteRules, checkRoutes } from './nmstate/routes.ts';
import { parseAddress, type Family } from '../../base/ip-address.ts';

/**
 * The form of an nmstate document as far as it is known here: what nmstate would refuse of interfaces,
 * addresses, routes and name servers, and what no kernel could do. nmstate itself knows more.
 */
export function checkNetworkConfig(
  report: Report,
  network: Plain | undefined,
): readonly DocumentProblem[] {
  if (network === undefined || network === null) return [];
  if (!isMapping(network)) return [report('networkConfig', 'cannot unmarshal it into an object')];
  if (Object.keys(network).length === 0) return [];
  const interfaces = readInterfaces(network);
  const members = checkMembers(report, network);
  const told = new Set(members.map(({ path }) => path));
  return [
    ...members,
    ...[
      ...interfaces.flatMap((each) => checkInterface(report, each)),
      ...checkNames(report, interfaces),
      ...checkPorts(report, interfaces),
      ...checkRoutes(report, network, interfaces),
      ...checkRouteRules(report, network),
      ...checkResolver(report, network, interfaces),
      ...(members.length === 0 ? checkContent(report, network, interfaces) : []),
      // What cannot be read has been told of.
    ].filter(({ path }) => !told.has(path)),
  ];
}

/** Two interfaces may share a name only where their types differ, as an OVS bridge and its port do. */
function checkNames(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const seen = new Set<string>();
  return interfaces.flatMap(({ name, type, path, value }) => {
    const key = JSON.stringify([name, type]);
    if (name === '' || value['state'] === 'absent' || !seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [report(`${path}.name`, `Duplicate value: ${JSON.stringify(name)}`)];
  });
}

/** openshift-install takes no document that configures nothing. */
function checkContent(
  report: Report,
  network: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const isSomething = ({ value }: NetworkInterface): boolean =>
    value['state'] !== 'absent' && value['state'] !== 'ignore';
  const others = ['routes', 'route-rules']
    .flatMap((name) => listOf(mapOf(network[name])['config']))
    .filter((item) => mapOf(item)['state'] !== 'absent');
  if (interfaces.some(isSomething) || others.length > 0) return [];
  const why = 'Invalid value: nmstate generated an empty NetworkManager config file content';
  return [report('networkConfig', why)];
}

/** Name servers are addresses, and an interface of their family keeps them. */
function checkResolver(
  report: Report,
  network: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const { server } = mapOf(mapOf(network['dns-resolver'])['config']);
  const families = ([4, 6] as const).filter((family) =>
    interfaces.some((each) => isKeeper(each, family)),
  );
  return listOf(server).flatMap((item, index) => {
    const why = explainServer(textOf(item) ?? '', interfaces, families);
    return why === undefined
      ? []
      : [report(`networkConfig.dns-resolver.config.server[${index}]`, why)];
  });
}

function explainServer(
  text: string,
  interfaces: readonly NetworkInterface[],
  families: readonly Family[],
): string | undefined {
  // A link-local server may carry its interface as a zone (RFC 4007 11).
  const [, local = text, zone] = /^(fe80:[^%]*)%(.+)$/i.exec(text) ?? [];
  const address = parseAddress(local);
  if (!address) return invalid(text, 'a name server is an IP address');
  if (zone !== undefined) {
    return interfaces.some(({ name }) => name === zone)
      ? undefined
      : invalid(text, `no interface above has the name "${zone}"`);
  }
  return families.includes(address.family)
    ? undefined
    : invalid(text, `no interface has IPv${address.family}, and so nmstate cannot store it`);
}

/** Interfaces that the kernel does not have, or that nmstate stores no name server with. */
const OTHERS = ['ipsec', 'loopback', 'ovs-bridge'];

function isKeeper({ value, type }: NetworkInterface, family: Family): boolean {
  const settings = mapOf(value[`ipv${family}`]);
  const isOn = (name: string): boolean => flagOf(settings[name]) === true;
  if (!isOn('enabled') || value['state'] === 'absent' || OTHERS.includes(type)) return false;
  return isOn('dhcp') || isOn('autoconf') || listOf(settings['address']).length > 0;
}
