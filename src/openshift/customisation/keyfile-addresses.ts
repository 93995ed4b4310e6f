import { append } from '../../base/lists.ts';
import { escapeText, malformed, type Section } from './keyfile-text.ts';
import type { Interface } from './network-interfaces.ts';
import type { Network, Route } from './network-state.ts';
import { refuse } from './network-values.ts';

type Family = 4 | 6;
type Entry = readonly [string, string];
type Settings = NonNullable<Interface['ipv6']> &
  Pick<NonNullable<Interface['ipv4']>, 'dhcp-client-id'>;
type Paths = Pick<Network, 'routes' | 'resolver'>;

const FOREVER = '2147483647';
const DEFAULT_DESTINATIONS = ['0.0.0.0/0', '::/0'];
const MAIN_TABLE = 254;

/** The sections `ipv4` and `ipv6` of each interface, by its name. */
export function planAddresses(
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

/** A route that its interface cannot have would be left out without a word. */
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

/** nmstate's words for NetworkManager's; others, as octets in hexadecimal digits, are the same. */
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

/** The name servers of a family go to the interface with its default route, or else one that it is enabled on. */
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

/** Where link-local servers say their interface, it is that one. */
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
