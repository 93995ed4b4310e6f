import { createHash } from 'node:crypto';
import { append } from '../base/lists.ts';
import { type Network, type Route, readNetwork } from './read.ts';
import type { Interface, InterfaceType } from './state.ts';
import {
  escapeText,
  type Keyfile,
  malformed,
  type Section,
  refuse,
  formatKeyfile,
} from './values.ts';

type Family = 4 | 6;
type Entry = readonly [string, string];
type Settings = NonNullable<Interface['ipv6']> &
  Pick<NonNullable<Interface['ipv4']>, 'dhcp-client-id'>;
type Paths = Pick<Network, 'routes' | 'resolver'>;

/** The bond or bridge that each port belongs to, by the name of the port. */
type Controllers = ReadonlyMap<string, Interface>;

const FOREVER = '2147483647';
const DEFAULT_DESTINATIONS = ['0.0.0.0/0', '::/0'];
const MAIN_TABLE = 254;

/** NetworkManager's name of each supported type; nmstate supports more. */
const TYPES: Readonly<Record<InterfaceType, string>> = {
  'ethernet': '802-3-ethernet',
  'vlan': 'vlan',
  'bond': 'bond',
  'linux-bridge': 'bridge',
};

/**
 * Renders the profiles that nmstate 2.2 makes of a configuration with ethernet, VLAN, bond and
 * bridge interfaces. Sections and keys are in nmstate's order; UUIDs are derived from type and name as
 * nmstate does.
 *
 * @throws ConfigError `nmstate.unsupported` if only nmstate itself can write the profiles;
 * `nmstate.malformed`
 */
export function renderKeyfiles(networkConfig: string): readonly Keyfile[] {
  const { interfaces: listed, routes, resolver } = readNetwork(networkConfig);
  const controllers = listControllers(listed);
  const interfaces = listInterfaces(listed, controllers);
  const addresses = planAddresses(
    interfaces.filter(({ name }) => !controllers.has(name)),
    { routes, resolver },
  );
  const files = interfaces.map((each) => ({
    name: `${each.name}.nmconnection`,
    content: formatKeyfile([
      describeConnection(each, controllers.get(each.name)),
      ...describeController(each),
      ...(addresses.get(each.name) ?? []),
      ...describeEthernet(each),
      ...describeVlan(each),
      ...describeUser(each),
    ]),
  }));
  if (files.length > 0) return files;
  throw malformed('nmstate generated an empty NetworkManager config file content');
}

function listControllers(listed: readonly Interface[]): Controllers {
  const controllers = new Map<string, Interface>();
  for (const each of listed) {
    for (const port of portsOf(each)) {
      const { name = each.name } = controllers.get(port) ?? {};
      if (name !== each.name || port === each.name) {
        throw refuse(placeOf(each), `"${port}" cannot be a port of it and of ${name}`);
      }
      controllers.set(port, each);
    }
  }
  return controllers;
}

/**
 * Lists controllers before their ports, by name; ports that only a controller names are ethernet.
 */
function listInterfaces(
  listed: readonly Interface[],
  controllers: Controllers,
): readonly Interface[] {
  const names = new Set<string>();
  for (const each of listed) {
    if (names.has(each.name)) throw refuse(placeOf(each), 'another interface has the same name');
    names.add(each.name);
    const hasAddresses = each.ipv4?.enabled === true || each.ipv6?.enabled === true;
    if (!hasAddresses || !controllers.has(each.name)) continue;
    const why = 'it is attached to a controller where IP is not allowed';
    throw refuse(placeOf(each), `cannot have IP enabled as ${why}`);
  }
  const all: Interface[] = [...listed];
  const implied = [...controllers.keys()].filter((name) => !names.has(name));
  append(
    all,
    implied.map((name): Interface => ({ name, type: 'ethernet' })),
  );
  return all.toSorted(
    (a, b) =>
      Number(controllers.has(a.name)) - Number(controllers.has(b.name)) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

const placeOf = ({ name }: Interface) => ({ owner: `interface "${name}"`, path: '' });

/** Ports, under any of their member names. */
function portsOf({ 'link-aggregation': bond, bridge }: Interface): readonly string[] {
  const bonded = [bond?.port, bond?.ports, bond?.slaves].map((names = []) => names);
  const bridged = [bridge?.port, bridge?.ports].map((ports = []) => ports);
  return [...bonded.flat(), ...bridged.flat().map(({ name }) => name)];
}

/** The sections `ipv4` and `ipv6` of each interface, by its name. */
function planAddresses(
  interfaces: readonly Interface[],
  { routes, resolver }: Paths,
): ReadonlyMap<string, readonly Section[]> {
  for (const route of routes) requireRoute(route, interfaces);
  const names = planNames(interfaces, { routes, resolver });
  return new Map(
    interfaces.map((each) => [
      each.name,
      ([4, 6] as const).map((family) => ({
        name: `ipv${family}`,
        entries: [
          ...describeFamily(each, family),
          ...(names.get(`${each.name} ${family}`) ?? []),
          ...describeRoutes(
            each.name,
            routes.filter((route) => familyOf(route) === family),
          ),
        ].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))),
      })),
    ]),
  );
}

const isOfFamily = (text: string, family: Family): boolean => text.includes(':') === (family === 6);

const familyOf = ({ destination }: Route): Family => (destination.includes(':') ? 6 : 4);

const settingsOf = (each: Interface, family: Family): Settings => each[`ipv${family}`] ?? {};

/**
 * Refuses a route that its interface cannot have: it would be left out silently otherwise.
 */
function requireRoute(route: Route, interfaces: readonly Interface[]): void {
  const { destination, 'next-hop-interface': out, 'next-hop-address': gateway } = route;
  const place = { path: `route to ${destination}` };
  const found = interfaces.find(({ name }) => name === out);
  if (!found) throw refuse(place, `next-hop-interface "${out}" is not an interface with addresses`);
  const family = familyOf(route);
  const { enabled, dhcp, address = [] } = settingsOf(found, family);
  if (enabled !== true) {
    throw refuse(place, `next-hop-interface "${out}" has been marked as IPv${family} disabled`);
  }
  if (dhcp !== true && address.length === 0) {
    throw refuse(place, `next-hop-interface "${out}" has no IPv${family} address`);
  }
  if (gateway === undefined || isOfFamily(gateway, family)) return;
  throw refuse(place, `next-hop-address ${gateway} is not an IPv${family} address`);
}

function describeFamily(each: Interface, family: Family): readonly Entry[] {
  const settings = settingsOf(each, family);
  const { enabled, dhcp, address: addresses = [] } = settings;
  const entries: Entry[] = [
    ['dhcp-timeout', FOREVER],
    ['method', methodOf(settings, family)],
  ];
  if (family === 6 && each.ipv6 !== undefined) {
    const isPrivate = each.ipv6['addr-gen-mode'] === 'stable-privacy';
    entries.push(['addr-gen-mode', isPrivate ? '1' : '0']);
  }
  if (enabled !== true) return entries;
  if (dhcp === true) append(entries, describeDhcp(settings, family));
  for (const [index, address] of addresses.entries()) entries.push([`address${index}`, address]);
  return entries;
}

function methodOf({ enabled, dhcp, autoconf, address = [] }: Settings, family: Family): string {
  if (enabled !== true) return 'disabled';
  if (dhcp === true) return family === 6 && autoconf !== true ? 'dhcp' : 'auto';
  if (family === 6 && autoconf === true) {
    throw malformed('NotImplementedError: Autoconf without DHCP is not supported yet');
  }
  if (address.length > 0) return 'manual';
  return family === 6 ? 'link-local' : 'disabled';
}

/** NetworkManager's words for those of nmstate; other values, such as hexadecimal octets, are equal. */
const CLIENT_IDS = new Map([
  ['ll', 'mac'],
  ['LL', 'mac'],
  ['iaid+duid', 'duid'],
  ['IAID+DUID', 'duid'],
]);

function describeDhcp(settings: Settings, family: Family): readonly Entry[] {
  const { 'dhcp-client-id': client = 'll', 'dhcp-duid': duid = 'll' } = settings;
  const { 'auto-route-metric': metric, 'auto-route-table-id': table } = settings;
  const ignores = (key: 'auto-dns' | 'auto-routes' | 'auto-gateway'): string =>
    String(settings[key] === false);
  const entries: Entry[] = [
    ['dhcp-send-hostname', String(settings['dhcp-send-hostname'] !== false)],
    ['ignore-auto-dns', ignores('auto-dns')],
    ['ignore-auto-routes', ignores('auto-routes')],
    ['never-default', ignores('auto-gateway')],
  ];
  if (metric !== undefined) entries.push(['route-metric', String(metric)]);
  if (table !== undefined) entries.push(['route-table', String(table)]);
  if (family === 4) {
    entries.push(['dhcp-client-id', escapeText(CLIENT_IDS.get(client) ?? client)]);
    return entries;
  }
  const known = /^(?:llt|ll|en|uuid)$/i.test(duid) ? duid.toLowerCase() : duid;
  append(entries, [
    ['dhcp-duid', escapeText(known)],
    ['dhcp-iaid', 'mac'],
    ['ra-timeout', FOREVER],
  ]);
  return entries;
}

/** Default routes first, the others in their order. */
function describeRoutes(name: string, routes: readonly Route[]): readonly Entry[] {
  const own = routes.filter((route) => route['next-hop-interface'] === name);
  const ordered = [...own.filter(isDefault), ...own.filter((route) => !isDefault(route))];
  return ordered.flatMap((route, index): readonly Entry[] => {
    const { destination, metric = 0, 'table-id': table = 0, weight } = route;
    const gateway = route['next-hop-address'] ?? '';
    const options = `table=${table === 0 ? MAIN_TABLE : table}`;
    return [
      [`route${index}`, `${destination},${gateway},${Math.max(metric, 0)}`],
      [`route${index}_options`, weight === undefined ? options : `${options},weight=${weight}`],
    ];
  });
}

const isDefault = ({ destination }: Route): boolean => DEFAULT_DESTINATIONS.includes(destination);

/**
 * Plans the name servers of each family: they go to the interface with its default route, else to one
 * on which the family is enabled.
 */
function planNames(
  interfaces: readonly Interface[],
  { routes, resolver }: Paths,
): ReadonlyMap<string, readonly Entry[]> {
  const { server: servers = [] } = resolver;
  const first: Family = servers[0]?.includes(':') ? 6 : 4;
  return new Map(
    ([4, 6] as const).flatMap((family) => {
      const entries = describeNames(resolver, family, family === first);
      if (entries.length === 0) return [];
      const target = chooseInterface(interfaces, { routes, resolver }, family);
      if (target !== undefined) return [[`${target} ${family}`, entries] as const];
      throw malformed(`no interface can have the IPv${family} name servers`);
    }),
  );
}

function describeNames(
  { server = [], search = [] }: Network['resolver'],
  family: Family,
  isFirst: boolean,
): readonly Entry[] {
  const servers = server.filter((each) => isOfFamily(each, family));
  const domains = isFirst ? search : [];
  if (servers.length + domains.length === 0) return [];
  return [
    ...(servers.length > 0 ? [['dns', servers.join(';')] as const] : []),
    ['dns-priority', isFirst ? '40' : '50'],
    ...(domains.length > 0 ? [['dns-search', domains.join(';')] as const] : []),
  ];
}

/** Chooses an interface for name servers: the zone of link-local servers, if they have one. */
function chooseInterface(
  interfaces: readonly Interface[],
  { routes, resolver: { server: servers = [] } }: Paths,
  family: Family,
): string | undefined {
  const usable = interfaces.filter((each) => settingsOf(each, family).enabled === true);
  const zones = servers.flatMap((each) => each.split('%').slice(1));
  const [zone, ...others] = new Set(family === 6 ? zones : []);
  if (zone !== undefined) {
    const hasIt = others.length === 0 && usable.some(({ name }) => name === zone);
    return hasIt ? zone : undefined;
  }
  const routed = routes.find((route) => isDefault(route) && familyOf(route) === family);
  const target =
    usable.find(({ name }) => name === routed?.['next-hop-interface']) ??
    usable.find((each) => settingsOf(each, family).dhcp === true) ??
    usable[0];
  return target?.name;
}

function describeConnection(
  { name, type, identifier }: Interface,
  controller: Interface | undefined,
): Section {
  const isController = type === 'bond' || type === 'linux-bridge';
  return {
    name: 'connection',
    entries: [
      ['autoconnect', 'true'],
      ['autoconnect-slaves', isController ? '1' : '-1'],
      ['id', name],
      ...(identifier === 'mac-address' ? [] : [['interface-name', name] as const]),
      ...(controller
        ? ([
            ['master', controller.name],
            ['slave-type', TYPES[controller.type]],
          ] as const)
        : []),
      ['type', TYPES[type]],
      ['uuid', formatUuid(`${type}://${name}`)],
    ],
  };
}

/** A UUID of version 5 in the namespace of URLs (RFC 9562 5.5). */
function formatUuid(text: string): string {
  const namespace = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex');
  const bytes = createHash('sha1').update(namespace).update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function describeController({
  type,
  bridge,
  'link-aggregation': bond,
}: Interface): readonly Section[] {
  if (type === 'bond') {
    return [{ name: 'bond', entries: sortEntries({ ...bond?.options, mode: bond?.mode }) }];
  }
  if (type !== 'linux-bridge') return [];
  const stp = bridge?.options?.stp?.enabled;
  return [{ name: 'bridge', entries: sortEntries({ stp, 'vlan-filtering': false }) }];
}

const sortEntries = (members: Readonly<Record<string, unknown>>): Section['entries'] =>
  Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, String(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

function describeEthernet({ identifier, mtu, 'mac-address': mac }: Interface): readonly Section[] {
  const key = identifier === 'mac-address' ? 'mac-address' : 'cloned-mac-address';
  const entries = sortEntries({ [key]: mac?.toUpperCase(), mtu });
  return entries.length === 0 ? [] : [{ name: 'ethernet', entries }];
}

function describeVlan({ vlan }: Interface): readonly Section[] {
  if (!vlan) return [];
  const { id, 'base-iface': parent } = vlan;
  return [{ name: 'vlan', entries: sortEntries({ flags: 1, id, parent }) }];
}

const describeUser = ({ description = '' }: Interface): readonly Section[] =>
  description === ''
    ? []
    : [{ name: 'user', entries: [['nmstate.interface.description', escapeText(description)]] }];
