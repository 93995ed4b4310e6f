import type { DocumentProblem } from '../../base/errors.ts';
import { explainHostName } from '../../base/host-name.ts';
import { contains, overlaps } from '../../base/ip-address.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import {
  isDynamic,
  lacksDefaultRoute,
  listAllAddresses,
  type NetworkInterface,
  FAMILIES,
  readInterfaces,
} from '../../nmstate/index.ts';
import { type ReportProblem, invalid, required, unsupported } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';
import { checkNetworkConfig } from '../rules/network-config.ts';
import { checkAcrossHosts, type HostRules, type PlacedHost } from './across-hosts.ts';
import type { WrittenAgentHost } from './documents.ts';

/*
 * Owns the rules of hosts in agent-config.yaml: those of openshift-install, and those that assisted-service
 * applies when a host registers, with its ids, as far as files decide them.
 */

export function checkHosts(
  report: ReportProblem,
  hosts: readonly (WrittenAgentHost | undefined)[],
  rules: HostRules,
): readonly DocumentProblem[] {
  const all = hosts.map((written = {}, index) => ({ path: `hosts[${index}]`, written }));
  return [
    ...all.flatMap((host) => [
      ...checkHostInterfaces(report, host),
      ...checkHints(report, host),
      ...checkRole(report, host),
      ...checkName(report, host),
      ...checkHostNetwork(report, host, rules),
    ]),
    ...checkAcrossHosts(report, all, rules),
  ];
}

function checkHostInterfaces(
  report: ReportProblem,
  { path, written: { interfaces = [] } }: PlacedHost,
): readonly DocumentProblem[] {
  if (interfaces.length === 0) {
    const why = 'at least one interface must be defined for each node';
    return [report(`${path}.interfaces`, required(why))];
  }
  return interfaces.flatMap(({ macAddress = '' } = {}, index) => {
    const at = `${path}.interfaces[${index}].macAddress`;
    if (macAddress === '') {
      return [report(at, required('each interface must have a MAC address defined'))];
    }
    const why = explainMac(macAddress);
    return why === undefined ? [] : [report(at, invalid(macAddress, why))];
  });
}

/** The form that agents compare; the least bit of the first octet means a group (IEEE 802). */
function explainMac(text: string): string | undefined {
  if (!/^(?:[\da-f]{2}:){5}[\da-f]{2}$/i.test(text)) {
    const better = parseMacAddress(text);
    return `address ${text}: invalid MAC address${better === undefined ? '' : `; write ${better}`}`;
  }
  const isGroup = (Number.parseInt(text.slice(0, 2), 16) & 1) === 1;
  return isGroup ? 'expected unicast mac address, found multicast' : undefined;
}

function checkHints(
  report: ReportProblem,
  { path, written: { rootDeviceHints: hints } }: PlacedHost,
): readonly DocumentProblem[] {
  if (!hints) return [];
  const { deviceName = '', wwnWithExtension = '', wwnVendorExtension = '' } = hints;
  const at = `${path}.rootDeviceHints`;
  return [
    ...explainDevice(deviceName).map((why) => report(`${at}.deviceName`, invalid(deviceName, why))),
    ...(wwnWithExtension === ''
      ? []
      : [
          report(
            `${at}.wwnWithExtension`,
            'Forbidden: WWN extensions are not supported in root device hints',
          ),
        ]),
    ...(wwnVendorExtension === ''
      ? []
      : [
          report(
            `${at}.wwnVendorExtension`,
            'Forbidden: WWN vendor extensions are not supported in root device hints',
          ),
        ]),
  ];
}

function explainDevice(name: string): readonly string[] {
  if (name === '') return [];
  if (!name.startsWith('/dev/')) return ['Device Name of root device hint must be a /dev/ path'];
  const rest = name.slice('/dev/'.length).replace(/^disk\/by-path\//, '');
  return rest.includes('/')
    ? ['Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/']
    : [];
}

function checkRole(
  report: ReportProblem,
  { path, written: { role = '' } }: PlacedHost,
): readonly DocumentProblem[] {
  const known = ['master', 'worker', 'arbiter'];
  return role === '' || known.includes(role)
    ? []
    : [report(`${path}.role`, unsupported(role, known))];
}

function checkName(
  report: ReportProblem,
  { path, written: { hostname = '' } }: PlacedHost,
): readonly DocumentProblem[] {
  const why = hostname === '' ? undefined : explainHostName(hostname);
  if (why === undefined) return [];
  return [
    report(`${path}.hostname`, invalid(hostname, why), { code: 'validation.hostname-valid' }),
  ];
}

function checkHostNetwork(
  report: ReportProblem,
  { path, written: { networkConfig } }: PlacedHost,
  rules: HostRules,
): readonly DocumentProblem[] {
  if (networkConfig === undefined || networkConfig === null) return [];
  const below: ReportProblem = (place, problem, details) =>
    report(typeof place === 'string' ? `${path}.${place}` : place, problem, details);
  const form = checkNetworkConfig(below, networkConfig);
  if (form.length > 0) return form;
  const interfaces = readInterfaces(networkConfig).filter(({ state }) => state === 'up');
  return [
    ...checkBelonging(below, interfaces, rules),
    ...findOverlaps(below, interfaces),
    ...checkDefaultRoute(below, networkConfig),
  ];
}

/** Only where no address is dynamic: DHCP and router advertisements bring routes. */
const checkDefaultRoute = (report: ReportProblem, network: Plain): readonly DocumentProblem[] =>
  lacksDefaultRoute(network)
    ? [
        report('networkConfig', 'Host has not yet been configured with a default route.', {
          code: 'validation.has-default-route',
        }),
      ]
    : [];

/** A static address in the machine networks, unless it comes from DHCP. */
function checkBelonging(
  report: ReportProblem,
  interfaces: readonly NetworkInterface[],
  { machine, needsAllNetworks, isUserManaged }: HostRules,
): readonly DocumentProblem[] {
  const addresses = interfaces.flatMap(listAllAddresses);
  const dynamic = FAMILIES.filter((family) => interfaces.some((each) => isDynamic(each, family)));
  const lacking = machine.filter(
    (cidr) =>
      !dynamic.includes(cidr.family) && !addresses.some(({ subnet }) => contains(cidr, subnet)),
  );
  const isFine = needsAllNetworks ? lacking.length === 0 : lacking.length < machine.length;
  if (isUserManaged || machine.length === 0 || isFine || addresses.length === 0) return [];
  const why = needsAllNetworks
    ? 'Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed under machine networks'
    : 'Host does not belong to any machine network CIDR. Verify that the host belongs to at least one CIDR listed under machine networks';
  const nets = lacking.map(({ text }) => text).join(', ');
  return [
    report('networkConfig', `${why}: no address is in ${nets}`, {
      code: 'validation.belongs-to-machine-cidr',
    }),
  ];
}

/** Two interfaces of a host in one network: the kernel answers on either. */
function findOverlaps(
  report: ReportProblem,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const sorted = interfaces
    .flatMap((each) => listAllAddresses(each).map((address) => ({ name: each.name, ...address })))
    .toSorted(
      ({ subnet: a }, { subnet: b }) => a.family - b.family || (a.first < b.first ? -1 : 1),
    );
  // In this order, the network that reaches furthest is the one to compare with.
  let furthest = sorted[0];
  return sorted.slice(1).flatMap((one) => {
    const other = furthest;
    const reachesFurther =
      other?.subnet.family !== one.subnet.family || other.subnet.last < one.subnet.last;
    if (reachesFurther) furthest = one;
    if (!other || other.name === one.name || !overlaps(other.subnet, one.subnet)) return [];
    const why =
      `Address networks are overlapping: Address networks ${other.subnet.text} in interface ${other.name} ` +
      `and ${one.subnet.text} in interface ${one.name} overlap`;
    return [
      report(`networkConfig.${one.path}`, why, { code: 'validation.non-overlapping-subnets' }),
    ];
  });
}
