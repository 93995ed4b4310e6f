import { append } from '../../base/lists.ts';
import { objectOrEmpty } from '../../base/members.ts';
import { malformed, type Section } from './keyfile-text.ts';

type Members = Readonly<Record<string, unknown>>;

export type Route = {
  readonly 'destination'?: string;
  readonly 'next-hop-address'?: string;
  readonly 'next-hop-interface'?: string;
  readonly 'metric'?: number;
  readonly 'table-id'?: number;
};

export type Resolver = {
  readonly server?: readonly string[];
  readonly search?: readonly string[];
};

type Addressed = { readonly name: string; readonly value: Members };
type Family = 4 | 6;
type Entry = readonly [string, string];

const FOREVER = '2147483647';
const DEFAULT_DESTINATIONS = ['0.0.0.0/0', '::/0'];
const MAIN_TABLE = 254;

/** The sections `ipv4` and `ipv6` of each interface, by its name. */
export function planAddresses(
  interfaces: readonly Addressed[],
  { routes, resolver }: { readonly routes: readonly Route[]; readonly resolver: Resolver },
): ReadonlyMap<string, readonly Section[]> {
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

const familyOf = ({ destination = '' }: Route): Family => (destination.includes(':') ? 6 : 4);

const settingsOf = ({ value }: Addressed, family: Family): Members =>
  objectOrEmpty(value[`ipv${family}`]);

function describeFamily(each: Addressed, family: Family): readonly Entry[] {
  const settings = settingsOf(each, family);
  const addresses = (Array.isArray(settings['address']) ? settings['address'] : []).map(
    objectOrEmpty,
  );
  const entries: Entry[] = [
    ['dhcp-timeout', FOREVER],
    ['method', methodOf(settings, family, addresses.length > 0)],
  ];
  if (family === 6 && each.value['ipv6'] !== undefined) entries.push(['addr-gen-mode', '0']);
  if (settings['enabled'] !== true) return entries;
  if (settings['dhcp'] === true) append(entries, describeDhcp(settings, family));
  for (const [index, address] of addresses.entries()) {
    entries.push([
      `address${index}`,
      `${String(address['ip'])}/${String(address['prefix-length'])}`,
    ]);
  }
  return entries;
}

function methodOf(settings: Members, family: Family, hasAddresses: boolean): string {
  const { enabled, dhcp, autoconf } = settings;
  if (enabled !== true) return 'disabled';
  if (dhcp === true) return family === 6 && autoconf === false ? 'dhcp' : 'auto';
  if (family === 6 && autoconf === true) {
    throw malformed('NotImplementedError: Autoconf without DHCP is not supported yet');
  }
  if (hasAddresses) return 'manual';
  return family === 6 ? 'link-local' : 'disabled';
}

function describeDhcp(settings: Members, family: Family): readonly Entry[] {
  const ignores = (key: string): string => String(settings[key] === false);
  return [
    ...((family === 4
      ? [['dhcp-client-id', 'mac']]
      : [
          ['dhcp-duid', 'll'],
          ['dhcp-iaid', 'mac'],
          ['ra-timeout', FOREVER],
        ]) as readonly Entry[]),
    ['dhcp-send-hostname', 'true'],
    ['ignore-auto-dns', ignores('auto-dns')],
    ['ignore-auto-routes', ignores('auto-routes')],
    ['never-default', ignores('auto-gateway')],
  ];
}

/** Default routes first, the others in their order. */
function describeRoutes(name: string, routes: readonly Route[]): readonly Entry[] {
  const own = routes.filter((route) => route['next-hop-interface'] === name);
  const ordered = [...own.filter(isDefault), ...own.filter((route) => !isDefault(route))];
  return ordered.flatMap((route, index): readonly Entry[] => {
    const { destination = '', metric = 0, 'table-id': table } = route;
    const gateway = route['next-hop-address'] ?? '';
    return [
      [`route${index}`, `${destination},${gateway},${Math.max(metric, 0)}`],
      [`route${index}_options`, `table=${table === undefined || table < 1 ? MAIN_TABLE : table}`],
    ];
  });
}

const isDefault = ({ destination = '' }: Route): boolean =>
  DEFAULT_DESTINATIONS.includes(destination);

/** The name servers of a family go to the interface with its default route, or else one that it is enabled on. */
function planNames(
  interfaces: readonly Addressed[],
  { routes, resolver }: { readonly routes: readonly Route[]; readonly resolver: Resolver },
): ReadonlyMap<string, readonly Entry[]> {
  const { server: servers = [] } = resolver;
  const first: Family = servers[0]?.includes(':') ? 6 : 4;
  return new Map(
    ([4, 6] as const).flatMap((family) => {
      const entries = describeNames(resolver, family, family === first);
      if (entries.length === 0) return [];
      const target = chooseInterface(interfaces, routes, family);
      if (target !== undefined) return [[`${target} ${family}`, entries] as const];
      throw malformed(`no interface can have the IPv${family} name servers`);
    }),
  );
}

function describeNames(
  { server = [], search = [] }: Resolver,
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

function chooseInterface(
  interfaces: readonly Addressed[],
  routes: readonly Route[],
  family: Family,
): string | undefined {
  const usable = interfaces.filter((each) => settingsOf(each, family)['enabled'] === true);
  const routed = routes.find((route) => isDefault(route) && familyOf(route) === family);
  const target =
    usable.find(({ name }) => name === routed?.['next-hop-interface']) ??
    usable.find((each) => settingsOf(each, family)['dhcp'] === true) ??
    usable[0];
  return target?.name;
}
