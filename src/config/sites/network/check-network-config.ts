import type { ConfigProblem } from '../../document/problem.ts';
import { invalid, type Report } from '../document/report.ts';
import type { Free } from '../document/shape.ts';
import { isMapping, listOf, mapOf, textOf, type FreeMap } from './free.ts';
import { checkInterface, checkPorts } from './check-interface.ts';
import { parseAddress, parseCidr, type Family } from './ip-address.ts';
import { readInterfaces, type NetworkInterface } from './interfaces.ts';

const MEMBERS = [
  'description',
  'dns-resolver',
  'hostname',
  'interfaces',
  'ovn',
  'ovs-db',
  'route-rules',
  'routes',
];

/**
 * The form of an nmstate document as far as it is known here: what nmstate would refuse of interfaces,
 * addresses, routes and name servers. nmstate itself knows more.
 */
export function checkNetworkConfig(
  report: Report,
  network: Free | undefined,
): readonly ConfigProblem[] {
  if (network === undefined || network === null) return [];
  if (!isMapping(network)) return [report('networkConfig', 'cannot unmarshal it into an object')];
  const interfaces = readInterfaces(network);
  return [
    ...checkMembers(report, network),
    ...checkList(report, 'networkConfig.interfaces', network['interfaces']),
    ...interfaces.flatMap((each) => checkInterface(report, each)),
    ...checkNames(report, interfaces),
    ...checkPorts(report, interfaces),
    ...checkRoutes(report, mapOf(network['routes']), interfaces),
    ...checkResolver(report, mapOf(network['dns-resolver'])),
  ];
}

function checkMembers(report: Report, network: FreeMap): readonly ConfigProblem[] {
  return Object.keys(network)
    .filter((name) => !MEMBERS.includes(name))
    .map((name) => report(`networkConfig.${name}`, `unknown field "${name}"`, { hideValue: true }));
}

function checkList(
  report: Report,
  path: string,
  value: Free | undefined,
): readonly ConfigProblem[] {
  const isList = value === undefined || value === null || Array.isArray(value);
  return isList ? [] : [report(path, 'this must be a list')];
}

/** Two interfaces may share a name only where their types differ, as an OVS bridge and its port do. */
function checkNames(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly ConfigProblem[] {
  const seen = new Set<string>();
  return interfaces.flatMap(({ name, type, path }) => {
    const key = JSON.stringify([name, type]);
    if (name === '' || !seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [report(`${path}.name`, `Duplicate value: ${JSON.stringify(name)}`)];
  });
}

function checkRoutes(
  report: Report,
  routes: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly ConfigProblem[] {
  const path = 'networkConfig.routes.config';
  const names = new Set(interfaces.map(({ name }) => name));
  return [
    ...checkList(report, path, routes['config']),
    ...listOf(routes['config']).flatMap((item, index) =>
      checkRoute(report, `${path}[${index}]`, { route: mapOf(item), names }),
    ),
  ];
}

function checkRoute(
  report: Report,
  path: string,
  { route, names }: { readonly route: FreeMap; readonly names: ReadonlySet<string> },
): readonly ConfigProblem[] {
  if (route['state'] === 'absent') return [];
  const destination = textOf(route['destination']) ?? '';
  const network = parseCidr(destination) ?? parseAddress(destination);
  const via = textOf(route['next-hop-address']) ?? '';
  const out = textOf(route['next-hop-interface']) ?? '';
  const isBlackhole = route['route-type'] !== undefined;
  return [
    ...explain(report, `${path}.destination`, explainDestination(destination, network)),
    ...explain(report, `${path}.next-hop-address`, explainNextHop(via, network)),
    ...explain(report, `${path}.next-hop-interface`, explainOut(out, names, isBlackhole)),
  ];
}

function explainDestination(text: string, network: object | undefined): string | undefined {
  if (text === '') return 'Required value: a route needs a destination';
  return network ? undefined : invalid(text, 'this is no network');
}

function explainNextHop(
  text: string,
  network: { readonly family: Family } | undefined,
): string | undefined {
  if (text === '') return undefined;
  const hop = parseAddress(text);
  if (!hop) return invalid(text, 'this is no IP address');
  const fits = !network || network.family === hop.family;
  return fits ? undefined : invalid(text, 'this is of another family than the destination');
}

function explainOut(
  out: string,
  names: ReadonlySet<string>,
  isBlackhole: boolean,
): string | undefined {
  if (out === '') return isBlackhole ? undefined : 'Required value: a route needs an interface';
  return names.has(out) ? undefined : invalid(out, 'no interface above has this name');
}

const explain = (
  report: Report,
  path: string,
  problem: string | undefined,
): readonly ConfigProblem[] => (problem === undefined ? [] : [report(path, problem)]);

function checkResolver(report: Report, resolver: FreeMap): readonly ConfigProblem[] {
  const path = 'networkConfig.dns-resolver.config.server';
  const { server } = mapOf(resolver['config']);
  return [
    ...checkList(report, path, server),
    ...listOf(server).flatMap((item, index) => {
      const text = textOf(item) ?? '';
      // A link-local server may carry its interface as a zone (RFC 4007 11).
      return parseAddress(text.replace(/^(fe80:[^%]*)%[^%]+$/i, '$1'))
        ? []
        : [report(`${path}[${index}]`, invalid(text, 'a name server is an IP address'))];
    }),
  ];
}
