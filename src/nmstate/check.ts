import type { DocumentProblem } from '../base/errors.ts';
import { parseAddress, type Family, contains, parseCidr, type Cidr } from '../base/ip-address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { countEdits } from '../base/text/words.ts';
import { type Report, invalid, unsupported } from '../shape/report.ts';
import type { Plain } from '../shape/shape.ts';
import {
  readInterfaces,
  type NetworkInterface,
  checkInterface,
  checkPorts,
  checkRouteRules,
  checkRoutes,
  listPorts,
} from './rules.ts';
import {
  FOREIGN,
  type Kind,
  ADDRESS,
  BOND_OPTIONS,
  DOCUMENT,
  FAMILY,
  HOSTNAME,
  INTERFACE,
  RESOLVER,
  RESOLVER_CONFIG,
  ROUTE,
  ROUTE_RULE,
  ROUTE_RULES,
  ROUTES,
  SECTIONS,
  type Words,
} from './state.ts';
import { flagOf, isMapping, numberOf, textOf, type FreeMap, listOf, mapOf } from './values.ts';

/*
 * The checks of nmstate documents. A parsed document and a way to report come in; problems and
 * warnings leave. This room must not know which product a network is for, and it imports only
 * base and shape.
 */

/**
 * Checks the form of an nmstate document as far as it is known here: errors for which nmstate
 * would refuse interfaces, addresses, routes and name servers, and settings that no kernel could
 * apply. nmstate itself checks more.
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
      // Members that cannot be read have already been reported.
    ].filter(({ path }) => !told.has(path)),
  ];
}

/**
 * Warns about settings that nmstate accepts but that seldom work on a node; for a document without
 * errors of form.
 */
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

/** Reports members that nmstate cannot read, and misspelt ones. */
const checkMembers = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
  listPlaces(network).flatMap((place) => [
    ...listUnknown(place)
      .filter(({ isCertain }) => isCertain)
      .map(({ path, name, near }) =>
        report(path, `unknown field "${name}"`, {
          hideValue: true,
          hint: near === undefined ? FOREIGN.get(name) : `did you mean "${near}"?`,
        }),
      ),
    ...Object.entries(place.value).flatMap(([name, value]) => {
      const kind = Object.hasOwn(place.words, name) ? place.words[name] : undefined;
      if (kind === undefined) return [];
      return explainKind(kind, value).map((why) => report(`${place.path}.${name}`, why));
    }),
  ]);

type Unknown = {
  readonly path: string;
  readonly name: string;
  /** The word that was probably meant. */
  readonly near?: string;
  /**
   * True for a misspelt word or a word of another tool; false for a word that a later nmstate may
   * know.
   */
  readonly isCertain: boolean;
};

function listUnknown({ path, value, words }: Place): readonly Unknown[] {
  const known = Object.keys(words);
  const isClosed = path === 'networkConfig' || path.startsWith('networkConfig.dns-resolver');
  return Object.keys(value)
    .filter((name) => !Object.hasOwn(words, name))
    .map((name) => {
      const near = known.find((word) => isSlip(name, word));
      const isCertain = isClosed || near !== undefined || FOREIGN.has(name);
      return { path: `${path}.${name}`, name, isCertain, ...withoutUndefined({ near }) };
    });
}

/**
 * True if a word is a spelling variant of another one, or differs by one letter that is wrong,
 * missing or added.
 */
function isSlip(written: string, word: string): boolean {
  const [a, b] = [plain(written), plain(word)];
  return a === b || (Math.max(a.length, b.length) >= 4 && countEdits(a, b) <= 1);
}

const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '');

function explainKind(kind: Kind, value: Plain): readonly string[] {
  if (typeof kind !== 'string') {
    const text = textOf(value);
    return value === null || (text !== undefined && kind.includes(text))
      ? []
      : [unsupported(text ?? 'this', kind)];
  }
  const why = EXPLAIN[kind](value);
  return why === undefined ? [] : [why];
}

const EXPLAIN: Readonly<
  Record<Exclude<Kind, readonly string[]>, (value: Plain) => string | undefined>
> = {
  'any': () => undefined,
  'text': (value) => (value === null || typeof value === 'string' ? undefined : explainText(value)),
  'texts': (value) => (isTexts(value) ? undefined : 'this must be a list of strings'),
  'flag': (value) => (flagOf(value) === undefined ? 'this must be true or false' : undefined),
  'number': (value) =>
    (numberOf(value) ?? -1) >= 0
      ? undefined
      : explainValue(value, 'this must be a whole number of at least 0'),
  'integer': (value) =>
    numberOf(value) === undefined ? explainValue(value, 'this must be a whole number') : undefined,
  'list': (value) => (value === null ? undefined : explainList(value)),
  'map': (value) => (value === null ? undefined : explainMap(value)),
  'present list': (value) => explainList(value),
  'present map': (value) => explainMap(value),
};

const explainList = (value: Plain): string | undefined =>
  Array.isArray(value) ? undefined : 'this must be a list';

const explainMap = (value: Plain): string | undefined =>
  isMapping(value) ? undefined : 'this must be an object';

const isTexts = (value: Plain): boolean =>
  value === null ||
  (Array.isArray(value) && (value as readonly Plain[]).every((item) => typeof item === 'string'));

const explainText = (value: Plain): string =>
  typeof value === 'object'
    ? 'this must be a string'
    : invalid(String(value), 'this must be a string: put it in quotes');

/**
 * Adds the value to the reason, except the contents of a mapping or a list: they may be secret.
 */
function explainValue(value: Plain, why: string): string {
  const text = textOf(value);
  return text === undefined ? why : invalid(text, why);
}

/** A mapping of a document, and the words that it may have. */
type Place = { readonly path: string; readonly value: FreeMap; readonly words: Words };

/** Lists every mapping of an nmstate document whose words are known. */
function listPlaces(network: FreeMap): readonly Place[] {
  const root = { path: 'networkConfig', value: network, words: DOCUMENT };
  const resolver = enter(root, 'dns-resolver', RESOLVER);
  const routes = enter(root, 'routes', ROUTES);
  const rules = enter(root, 'route-rules', ROUTE_RULES);
  return [
    root,
    ...enter(root, 'hostname', HOSTNAME),
    ...resolver,
    ...resolver.flatMap((place) => enter(place, 'config', RESOLVER_CONFIG)),
    ...routes,
    ...routes.flatMap((place) => enterEach(place, 'config', ROUTE)),
    ...rules,
    ...rules.flatMap((place) => enterEach(place, 'config', ROUTE_RULE)),
    ...enterEach(root, 'interfaces', INTERFACE).flatMap(listInterfacePlaces),
  ];
}

/**
 * Lists the mappings of an interface; none if its state is `absent`, as nmstate then reads only its
 * name, type and state.
 */
function listInterfacePlaces({ path, value }: Place): readonly Place[] {
  if (value['state'] === 'absent') return [];
  // Without a running system, an interface without a type counts as an Ethernet interface.
  const type = textOf(value['type']) ?? 'ethernet';
  const { sections, words } = TYPES.get(type) ?? {};
  const whole = { path, value, words: words ?? {} };
  const families = ['ipv4', 'ipv6'].flatMap((name) => enter(whole, name, FAMILY));
  const own = Object.entries(sections ?? {}).flatMap(([name, below]) =>
    below ? enter(whole, name, below) : [],
  );
  return [
    // Members of interfaces of other types are unknown.
    ...(words ? [whole] : []),
    ...families,
    ...families.flatMap((place) => enterEach(place, 'address', ADDRESS)),
    ...own,
    ...(type === 'bond' ? own.flatMap((place) => enter(place, 'options', BOND_OPTIONS)) : []),
  ];
}

/** The known words of each type of interface. */
const TYPES = new Map(
  Object.entries(SECTIONS).map(([type, sections]) => {
    const names = Object.keys(sections).map((name) => [name, 'map'] as const);
    return [type, { sections, words: { ...INTERFACE, ...Object.fromEntries(names) } }];
  }),
);

function enter({ path, value }: Place, name: string, words: Words): readonly Place[] {
  const below = value[name];
  return isMapping(below) ? [{ path: `${path}.${name}`, value: below, words }] : [];
}

const enterEach = ({ path, value }: Place, name: string, words: Words): readonly Place[] =>
  listOf(value[name]).map((item, index) => ({
    path: `${path}.${name}[${index}]`,
    value: mapOf(item),
    words,
  }));

/**
 * Checks names: two interfaces may have the same name only if their types differ, like an OVS bridge
 * and its port.
 */
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

/** Checks that the document configures something: openshift-install refuses it otherwise. */
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

/** Checks that name servers are addresses, and that an interface of their family can store them. */
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
  if (!address) return invalid(text, 'a name server must be an IP address');
  if (zone !== undefined) {
    return interfaces.some(({ name }) => name === zone)
      ? undefined
      : invalid(text, `no interface has the name "${zone}"`);
  }
  return families.includes(address.family)
    ? undefined
    : invalid(text, `no interface has IPv${address.family}, so nmstate cannot store it`);
}

/** Types of interfaces for which nmstate stores no name servers. */
const OTHERS = ['ipsec', 'loopback', 'ovs-bridge'];

function isKeeper({ value, type }: NetworkInterface, family: Family): boolean {
  const settings = mapOf(value[`ipv${family}`]);
  const isOn = (name: string): boolean => flagOf(settings[name]) === true;
  if (!isOn('enabled') || value['state'] === 'absent' || OTHERS.includes(type)) return false;
  return isOn('dhcp') || isOn('autoconf') || listOf(settings['address']).length > 0;
}

/** Warnings about members that no known nmstate reads; a newer one may. */
const warnOfMembers = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
  listPlaces(network).flatMap((place) =>
    listUnknown(place)
      .filter(({ isCertain }) => !isCertain)
      .map(({ path, name }) =>
        report(path, `nmstate 2.2 does not know the field "${name}"`, { hideValue: true }),
      ),
  );

const TYPES_WARNINGS = new Set([
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

function warnOfInterface(
  report: Report,
  { path, type, mac, value }: NetworkInterface,
): readonly DocumentProblem[] {
  const ipv6 = mapOf(value['ipv6']);
  const isAlone = flagOf(ipv6['autoconf']) === true && flagOf(ipv6['dhcp']) !== true;
  return [
    ...(isAlone && flagOf(ipv6['enabled']) === true
      ? [report(`${path}.ipv6.autoconf`, 'nmstate 2.2 accepts autoconf only together with dhcp')]
      : []),
    ...(type === '' || TYPES_WARNINGS.has(type)
      ? []
      : [report(`${path}.type`, `interfaces of type "${type}" are not checked here`)]),
    ...(mac !== undefined && /^(?:00:)+00$/.test(mac)
      ? [report(`${path}.mac-address`, 'no interface can have this MAC address')]
      : []),
  ];
}

/**
 * Warns about copied MAC addresses: without a running system, nmstate finds a MAC address only in the
 * document.
 */
function warnOfCopies(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const known = new Set(interfaces.filter(({ mac }) => mac !== undefined).map(({ name }) => name));
  return interfaces.flatMap(({ path, value }) => {
    const from = textOf(value['copy-mac-from']) ?? '';
    if (from === '' || known.has(from)) return [];
    const why = `nmstate 2.2 finds no MAC address for ${from}: write its mac-address`;
    return [report(`${path}.copy-mac-from`, why)];
  });
}

/**
 * Warns about missing base interfaces: without a running system, nmstate knows only interfaces that
 * the document defines.
 */
function warnOfBases(report: Report, network: Plain | undefined): readonly DocumentProblem[] {
  const all = readInterfaces(network);
  const defined = new Set(all.map(({ name }) => name));
  return all.flatMap((owner) =>
    listBases(owner)
      .filter(({ name }) => !defined.has(name))
      .map(({ name, path }) => {
        const problem = `${owner.type} ${owner.name} needs "${name}", which is not defined`;
        const hint = `add "${name}" to the interfaces`;
        return report(path, problem, { hint });
      }),
  );
}

/** Lists the interfaces that a VLAN or a bond needs. */
function listBases(owner: NetworkInterface): readonly Base[] {
  if (!owner.isUp) return [];
  if (owner.type === 'bond') return listPorts(owner);
  if (owner.type !== 'vlan') return [];
  const name = textOf(mapOf(owner.value['vlan'])['base-iface']) ?? '';
  return name === '' ? [] : [{ name, path: `${owner.path}.vlan.base-iface` }];
}

type Base = { readonly name: string; readonly path: string };

/**
 * Lists the families of static addresses; empty if any interface is dynamic, as DHCP and router
 * advertisements bring routes and name servers.
 */
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

/** Warns about a missing default route: the cluster network takes the interface of that route. */
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
  if (servers.length === 0) return [report(path, 'no name server is configured')];
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
