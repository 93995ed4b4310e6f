import { createHash } from 'node:crypto';
import { type Family, formatAddress } from '../base/ip-address.ts';
import { append, groupBy } from '../base/lists.ts';
import { formatUuid, markUuid } from '../base/uuid.ts';
import {
  FAMILIES,
  isDynamic,
  isEnabled,
  isThere,
  listAddresses,
  listPorts,
  type NamesOfInterface,
  outOf,
  placeNames,
  settingsOf,
} from './addresses.ts';
import {
  type KeyfileEntry,
  escapeText,
  formatKeyfile,
  type Keyfile,
  type Section,
} from './keyfile.ts';
import type { NetworkState, NetworkRoute } from './read.ts';
import { describeRoutes } from './routes.ts';
import type { IpSettings } from './members.ts';
import type { NetworkInterface, TranslatedType } from './state.ts';

/* This file owns the profiles that nmstate 2.2 makes of a network without problems. */

/** The bond or bridge that each port belongs to, by the name of the port. */
type Controllers = ReadonlyMap<string, NetworkInterface>;

/** nmstate writes the section for each port of a bridge, with the options that it has. */
const BRIDGE_PORT: Section = { name: 'bridge-port', entries: [] };

const FOREVER = '2147483647';

/** NetworkManager's name of each translated type. */
const TYPES: Readonly<Record<TranslatedType | 'loopback', string>> = {
  'ethernet': '802-3-ethernet',
  'vlan': 'vlan',
  'bond': 'bond',
  'linux-bridge': 'bridge',
  'loopback': 'loopback',
};

/**
 * Renders the profiles that nmstate 2.2 makes of a network with ethernet, VLAN, bond and bridge interfaces.
 * Sections and keys are in nmstate's order; UUIDs are derived from type and name as nmstate does.
 */
export function renderProfiles(state: NetworkState): readonly Keyfile[] {
  const controllers = listControllers(state);
  const { placed } = placeNames(state);
  const routes = groupBy(state.routes, outOf);
  return listInterfaces(state, controllers).map((each) => ({
    name: `${each.name}.nmconnection`,
    content: formatKeyfile([
      describeConnection(each, controllers.get(each.name)),
      ...describeController(each),
      ...(controllers.get(each.name)?.type === 'linux-bridge' ? [BRIDGE_PORT] : []),
      ...(controllers.has(each.name)
        ? []
        : describeAddresses(each, routes.get(each.name) ?? [], placed)),
      ...describeEthernet(each),
      ...describeVlan(each, state),
      ...describeUser(each),
    ]),
  }));
}

const listControllers = ({ interfaces }: NetworkState): Controllers =>
  new Map(
    interfaces
      .filter(isThere)
      .flatMap((each) => listPorts(each).map(({ name }) => [name, each] as const)),
  );

/**
 * Lists controllers before their ports, by name. Ports that only a controller names are ethernet, and
 * the loopback exists if a route needs it.
 */
function listInterfaces(
  { interfaces, routes }: NetworkState,
  controllers: Controllers,
): readonly NetworkInterface[] {
  const names = new Set(interfaces.map(({ name }) => name));
  const implied = [...controllers.keys()].filter((name) => !names.has(name));
  const needsLoopback = routes.some((route) => outOf(route) === 'lo') && !names.has('lo');
  const all = [
    ...interfaces.filter(isThere),
    ...implied.map((name) => imply(name, 'ethernet')),
    ...(needsLoopback ? [LOOPBACK] : []),
  ];
  return all.toSorted(
    (a, b) =>
      Number(controllers.has(a.name)) - Number(controllers.has(b.name)) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

const imply = (name: string, type: string): NetworkInterface => ({
  name,
  type,
  path: '',
  state: 'up',
});

/** nmstate gives it the addresses that it always has. */
const LOOPBACK: NetworkInterface = {
  ...imply('lo', 'loopback'),
  ipv4: { enabled: true },
  ipv6: { enabled: true },
};
const LOOPBACK_ADDRESSES = { 4: ['127.0.0.1/8'], 6: ['::1/128'] } as const;

const describeAddresses = (
  each: NetworkInterface,
  routes: readonly NetworkRoute[],
  placed: readonly NamesOfInterface[],
): readonly Section[] =>
  FAMILIES.map((family) => {
    const own = routes.filter(({ destination }) => destination.family === family);
    const names = placed.find((names) => names.owner === each.name && names.family === family);
    const entries = [
      ...describeFamily(each, family),
      ...(names ? describeNames(names) : []),
      ...describeRoutes(own, family),
    ];
    return { name: `ipv${family}`, entries: sortEntries(entries) };
  });

const sortEntries = (entries: readonly KeyfileEntry[]): readonly KeyfileEntry[] =>
  entries.toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));

function describeFamily(each: NetworkInterface, family: Family): readonly KeyfileEntry[] {
  const addresses =
    each.type === 'loopback'
      ? LOOPBACK_ADDRESSES[family]
      : listAddresses(each, family).map(({ subnet }) => subnet.text);
  const entries: KeyfileEntry[] = [
    ['dhcp-timeout', FOREVER],
    ['method', methodOf(each, family, addresses)],
  ];
  if (family === 6 && each.ipv6 !== undefined) {
    entries.push(['addr-gen-mode', each.ipv6['addr-gen-mode'] === 'stable-privacy' ? '1' : '0']);
  }
  if (isDynamic(each, family)) append(entries, describeDhcp(settingsOf(each, family), family));
  for (const [index, address] of addresses.entries()) entries.push([`address${index}`, address]);
  return entries;
}

function methodOf(each: NetworkInterface, family: Family, addresses: readonly string[]): string {
  if (!isEnabled(each, family)) return 'disabled';
  const { dhcp, autoconf } = settingsOf(each, family);
  if (dhcp === true) return family === 6 && autoconf !== true ? 'dhcp' : 'auto';
  if (addresses.length > 0) return 'manual';
  return family === 6 ? 'link-local' : 'disabled';
}

function describeDhcp(settings: IpSettings, family: Family): readonly KeyfileEntry[] {
  const { 'dhcp-client-id': client = 'mac', 'dhcp-duid': duid = 'll' } = settings;
  const { 'auto-route-metric': metric, 'auto-route-table-id': table } = settings;
  const ignores = (key: 'auto-dns' | 'auto-routes' | 'auto-gateway'): string =>
    String(settings[key] === false);
  const entries: KeyfileEntry[] = [
    ['dhcp-send-hostname', String(settings['dhcp-send-hostname'] !== false)],
    ['ignore-auto-dns', ignores('auto-dns')],
    ['ignore-auto-routes', ignores('auto-routes')],
    ['never-default', ignores('auto-gateway')],
  ];
  // Without router advertisements, nmstate drops the metric of their routes.
  const hasMetric = metric !== undefined && !(family === 6 && settings.autoconf === false);
  if (hasMetric) entries.push(['route-metric', String(metric)]);
  if (table !== undefined) entries.push(['route-table', String(table)]);
  const identify = (key: string, text: string): readonly KeyfileEntry[] =>
    text === '' ? [] : [[key, escapeText(text)]];
  if (family === 4) return [...entries, ...identify('dhcp-client-id', client)];
  return [
    ...entries,
    ...identify('dhcp-duid', duid),
    ['dhcp-iaid', 'mac'],
    ['ra-timeout', FOREVER],
  ];
}

const describeNames = ({
  servers,
  domains,
  isFirst,
}: NamesOfInterface): readonly KeyfileEntry[] => [
  ...(servers.length > 0
    ? [['dns', servers.map(({ address }) => formatAddress(address)).join(';')] as const]
    : []),
  ['dns-priority', isFirst ? '40' : '50'],
  ...(domains.length > 0 ? [['dns-search', domains.join(';')] as const] : []),
];

function describeConnection(
  { name, type, identifier }: NetworkInterface,
  controller: NetworkInterface | undefined,
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
            ['slave-type', typeOf(controller)],
          ] as const)
        : []),
      ['type', typeOf({ type })],
      ['uuid', nameUuid(type, name)],
    ],
  };
}

const typeOf = ({ type }: Pick<NetworkInterface, 'type'>): string =>
  TYPES[type as TranslatedType | 'loopback'];

/** A UUID of version 5 in the namespace of URLs (RFC 9562 5.5). */
function nameUuid(type: string, name: string): string {
  const namespace = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex');
  const text = `${type}://${name}`;
  const hash = createHash('sha1').update(namespace).update(text).digest();
  return formatUuid(markUuid(hash.subarray(0, 16), 5));
}

function describeController(each: NetworkInterface): readonly Section[] {
  const { type, bridge, 'link-aggregation': bond } = each;
  if (type === 'bond') {
    return [
      { name: 'bond', entries: formatMembers({ ...listBondOptions(each), mode: bond?.mode }) },
    ];
  }
  if (type !== 'linux-bridge') return [];
  const filters = bridge?.port === undefined ? undefined : false;
  const stp = bridge?.options?.stp?.enabled;
  return [{ name: 'bridge', entries: formatMembers({ stp, 'vlan-filtering': filters }) }];
}

/** The options of a bond as a profile has them; empty for an interface of another type. */
export function listBondOptions({
  'link-aggregation': bond,
}: NetworkInterface): Readonly<Record<string, string | number | undefined>> {
  const { all_slaves_active: active, ...options } = bond?.options ?? {};
  const { arp_ip_target: targets, arp_missed_max: missed } = options;
  return {
    ...options,
    ...(active && { all_slaves_active: Number(active === 'delivered') }),
    arp_ip_target: targets === '' ? undefined : targets,
    // The default, which NetworkManager before 1.42 does not know.
    arp_missed_max: missed === 2 ? undefined : missed,
  };
}

const formatMembers = (members: Readonly<Record<string, unknown>>): Section['entries'] =>
  sortEntries(
    Object.entries(members)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, String(value)] as const),
  );

/** True for a bond that takes the address of its active port. */
const followsPort = ({ 'link-aggregation': bond }: NetworkInterface): boolean =>
  bond?.mode === 'active-backup' && bond.options?.fail_over_mac === 'active';

function describeEthernet(each: NetworkInterface): readonly Section[] {
  const { identifier, mtu, 'mac-address': mac } = each;
  const key = identifier === 'mac-address' ? 'mac-address' : 'cloned-mac-address';
  const entries = formatMembers({ [key]: followsPort(each) ? undefined : mac, mtu });
  return entries.length === 0 ? [] : [{ name: 'ethernet', entries }];
}

/** The parent is named by its UUID if it has no fixed name. */
function describeVlan({ vlan }: NetworkInterface, { byName }: NetworkState): readonly Section[] {
  if (!vlan) return [];
  const { id, 'base-iface': base, protocol } = vlan;
  const parent = byName.get(base);
  const isNamed = parent?.identifier !== 'mac-address';
  const members = {
    id,
    flags: 1,
    parent: isNamed ? base : nameUuid(parent.type, base),
    protocol: protocol && '802.1Q',
  };
  return [{ name: 'vlan', entries: formatMembers(members) }];
}

const describeUser = ({ description = '' }: NetworkInterface): readonly Section[] =>
  description === ''
    ? []
    : [{ name: 'user', entries: [['nmstate.interface.description', escapeText(description)]] }];
