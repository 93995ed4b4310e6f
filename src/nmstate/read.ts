import {
  type Cidr,
  createCidr,
  type IpAddress,
  parseAddress,
  widthOf,
} from '../base/ip-address.ts';
import { isObject } from '../base/lists.ts';
import type { WrittenOf } from './document.ts';
import { label, name, U32 } from './members.ts';
import { isLongNamed, isTranslated, type NetworkInterface, readMembers } from './state.ts';
import {
  expected,
  type Finding,
  foreign,
  type NetworkFindings,
  integer,
  ip,
  join,
  type Kind,
  list,
  type Members,
  needNmstate,
  object,
  type Place,
  quote,
  reportAt,
  text,
  unquoted,
  untranslated,
  unused,
  word,
} from './values.ts';

/* This file owns the reading of a document into typed members. */

export type Route = Omit<Members<typeof ROUTE_MEMBERS, 'destination'>, 'state'> & {
  readonly path: string;
};

export type NameServer = { readonly address: IpAddress; readonly zone?: string };

export type NetworkState = {
  /** Interfaces of every type and state whose name could be read. */
  readonly interfaces: readonly NetworkInterface[];
  /** The interfaces that are not absent, by name. */
  readonly byName: ReadonlyMap<string, NetworkInterface>;
  /** Routes that are not absent. */
  readonly routes: readonly Route[];
  readonly rules: readonly RouteRule[];
  readonly servers: readonly NameServer[];
  readonly domains: readonly string[];
};

export type ReadNetwork = {
  readonly state: NetworkState;
  readonly problems: readonly Finding[];
  readonly untranslated: readonly Finding[];
};

/**
 * Reads a parsed document; members with problems are left out of the state.
 *
 * @param writtenOf absent for values that Go read
 */
export function readNetworkState(
  value: unknown,
  writtenOf: WrittenOf = () => undefined,
): ReadNetwork {
  const found: NetworkFindings = { problems: [], untranslated: [] };
  const read = NETWORK(value ?? {}, { path: '', found, writtenOf });
  return { state: createState(read ?? {}), ...found };
}

function createState(read: NonNullable<ReturnType<typeof NETWORK>>): NetworkState {
  const { interfaces = [], routes, 'route-rules': rules, 'dns-resolver': resolver } = read;
  const { server: servers = [], search: domains = [] } = resolver?.config ?? {};
  const there = interfaces.filter((each) => each.state !== 'absent').toReversed();
  return {
    interfaces,
    byName: new Map(there.map((each) => [each.name, each])),
    routes: dropAbsent(routes?.config),
    rules: dropAbsent(rules?.config),
    servers,
    domains,
  };
}

const dropAbsent = <T>(items: readonly (T | 'absent')[] = []): readonly T[] =>
  items.filter((each): each is T => each !== 'absent');

/** Only interfaces, for readers that compare sites; a document with problems gives those that could be read. */
export const readInterfaces = (value: unknown): readonly NetworkInterface[] =>
  readNetworkState(value).state.interfaces;

const STATE = word(['up', 'down', 'absent', 'ignore'], ['unknown']);

const networkInterface: Kind<NetworkInterface> = (value, place) => {
  if (!isObject(value)) return reportAt(place, expected(value, 'an object'));
  const named = readName(value, place);
  if (named === null) return null;
  const inside = { ...place, owner: named };
  const about = readKind(value, inside);
  // nmstate reads only the name of an interface that it removes.
  if (about?.state === 'absent') return { name: named, ...about };
  const members = about && readMembers(about.type, value, inside);
  return members && { ...members, ...about };
};

function readName(value: Readonly<Record<string, unknown>>, place: Place): string | null {
  const { name: written, identifier, type } = value;
  if ((written ?? '') === '') return reportAt(place, "missing field 'name'");
  const kind = identifier === 'mac-address' || isLongNamed(type) ? label : name;
  return kind(written, { ...place, path: join(place.path, 'name') });
}

type KindOfInterface = Pick<NetworkInterface, 'path' | 'type' | 'state'>;

/** Reads the type and the state. Without a running system, an unknown type is an Ethernet interface. */
function readKind(value: Readonly<Record<string, unknown>>, place: Place): KindOfInterface | null {
  const at = (member: string): Place => ({ ...place, path: join(place.path, member) });
  const state = STATE(value['state'] ?? 'up', at('state')) ?? 'up';
  const type = readType(value['type'] ?? 'ethernet', at('type'));
  if (type === null) return null;
  const isForeign = !isTranslated(type) && (state === 'up' || state === 'down');
  if (isForeign) needNmstate(at('type'), `is ${quote(type)}, which needs nmstate`);
  return { path: place.path, type: type === 'unknown' ? 'ethernet' : type, state };
}

/** nmstate takes a type that it does not know for Ethernet, in capitals too; its own are small. */
const readType: Kind<string> = (value, place) => {
  const written = TYPE(value, place);
  const type = written?.toLowerCase() ?? null;
  if (type === written || type === null || type === 'ethernet' || !isTranslated(type)) return type;
  return reportAt(place, `${quote(written)} is not a type of nmstate`, {
    hint: `did you mean "${type}"?`,
  });
};

const TYPE = text(/^[\p{L}\p{N}-]+$/u, 'the type of an interface');

/** Reads a network; an address alone is a network of one address. */
const destination: Kind<Cidr> = (value, place) => {
  const [written = '', length, ...more] = typeof value === 'string' ? value.split('/') : [];
  const address = parseAddress(written);
  if (!address || more.length > 0) return reportAt(place, expected(value, 'an IP network'));
  const width = widthOf(address.family);
  const prefix = length === undefined ? width : integer(0, width)(length, place);
  return prefix === null ? null : createCidr(address, prefix, String(value));
};

const ROUTE_MEMBERS = {
  'state': unused,
  'destination': destination,
  'next-hop-address': ip,
  'next-hop-interface': unquoted(name),
  'metric': integer(-1, U32),
  'table-id': integer(0, U32),
  'weight': integer(1, 256),
  'route-type': word(['blackhole', 'unreachable', 'prohibit']),
  'source': untranslated(ip),
  'cwnd': untranslated(integer(1, U32)),
  'initcwnd': foreign,
  'initrwnd': foreign,
  'mtu': foreign,
  'quickack': foreign,
  'advmss': foreign,
  'lock-mtu': foreign,
  'vrf-name': foreign,
};
const ROUTE = object(ROUTE_MEMBERS, { required: ['destination'] });

/** Reads an item unless it is absent: no route exists before the first boot. */
const present =
  <T extends object>(
    kind: Kind<T>,
    states: readonly string[] = ['absent'],
  ): Kind<(T & { readonly path: string }) | 'absent'> =>
  (value, place) => {
    const state = isObject(value) ? (value['state'] ?? undefined) : undefined;
    if (state !== undefined) {
      word(states)(state, { ...place, path: `${place.path}.state` });
      return 'absent';
    }
    const read = kind(value, place);
    return read && { ...read, path: place.path };
  };

const network: Kind<Cidr> = destination;

const ROUTE_RULE = object(
  {
    'state': unused,
    'family': word(['ipv4', 'ipv6']),
    'ip-from': network,
    'ip-to': network,
    'priority': integer(-1, U32),
    'route-table': integer(0, U32),
    'fwmark': integer(0, U32),
    'fwmask': integer(0, U32),
    'action': word(['blackhole', 'unreachable', 'prohibit']),
    'iif': unquoted(name),
    'suppress-prefix-length': integer(0, U32),
  },
  { aliases: { suppress_prefixlength: 'suppress-prefix-length' } },
);
export type RouteRule = NonNullable<ReturnType<typeof ROUTE_RULE>> & { readonly path: string };

/** Reads a name server: a link-local address may have its interface as a zone (RFC 4007 11). */
const server: Kind<NameServer> = (value, place) => {
  const [written = '', zone, ...more] = typeof value === 'string' ? value.split('%') : [];
  const address = parseAddress(written);
  const isWrong = zone !== undefined && (address?.family !== 6 || zone === '');
  if (!address || isWrong || more.length > 0) {
    return reportAt(place, expected(value, 'the address of a name server'));
  }
  return zone === undefined ? { address } : { address, zone };
};

/** NetworkManager refuses the characters that separate domains (nm-setting-ip-config.c, verify). */
const DOMAIN = text(/^[^\s\p{Cc},;\\]+$/u, 'the name of a domain');

const NETWORK = object({
  'description': unused,
  'hostname': object({ running: unused, config: foreign }),
  'interfaces': list(networkInterface),
  'routes': object({ running: unused, config: list(present(ROUTE, ['absent', 'ignore'])) }),
  'route-rules': object({ config: list(present(untranslated(ROUTE_RULE))) }),
  'dns-resolver': object({
    running: unused,
    config: object({
      server: list(server),
      search: list(unquoted(DOMAIN)),
      options: list(foreign),
    }),
  }),
  'ovs-db': foreign,
  'ovn': foreign,
});
