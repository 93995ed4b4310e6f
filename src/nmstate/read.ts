import {
  type Cidr,
  createCidr,
  type IpAddress,
  parseAddress,
  widthOf,
} from '../base/ip-address.ts';
import { objectOrEmpty } from '../base/lists.ts';
import { decode, formatSteps } from '../shape/decode.ts';
import {
  FREE,
  LEFT_OUT,
  list,
  noted,
  optional,
  partial,
  record,
  refine,
  type Shape,
  TEXT,
  transform,
  type TypeOf,
} from '../shape/shape.ts';
import type { WrittenOf } from './document.ts';
import { label, name, U32 } from './members.ts';
import { isLongNamed, isTranslated, type NetworkInterface, readMembers } from './state.ts';
import {
  below,
  type NetworkFinding,
  foreign,
  foreignMembers,
  type NetworkFindings,
  integer,
  ip,
  type NetworkPlace,
  quote,
  readAlong,
  text,
  parsedText,
  unquoted,
  untranslated,
  word,
} from './values.ts';

/* This file owns the reading of a document into typed members. */

export type NetworkRoute = TypeOf<typeof ROUTE> & { readonly path: string };

export type NameServer = { readonly address: IpAddress; readonly zone?: string };

export type NetworkState = {
  /** Interfaces of every type and state whose name could be read. */
  readonly interfaces: readonly NetworkInterface[];
  /** The interfaces that are not absent, by name. */
  readonly byName: ReadonlyMap<string, NetworkInterface>;
  /** Routes that are not absent. */
  readonly routes: readonly NetworkRoute[];
  readonly rules: readonly RouteRule[];
  readonly servers: readonly NameServer[];
  readonly domains: readonly string[];
};

export type ReadNetwork = {
  readonly state: NetworkState;
  readonly problems: readonly NetworkFinding[];
  readonly untranslated: readonly NetworkFinding[];
};

/**
 * Reads a parsed document; members with problems are left out of the state. A document that Go read is read once as
 * long as it exists: rules look at its parts one by one.
 *
 * @param writtenOf absent for values that Go read
 */
export function readNetworkState(value: unknown, writtenOf?: WrittenOf): ReadNetwork {
  if (writtenOf || typeof value !== 'object' || value === null)
    return readState(value, writtenOf ?? (() => undefined));
  const read = known.get(value) ?? readState(value, () => undefined);
  known.set(value, read);
  return read;
}

const known = new WeakMap<object, ReadNetwork>();

function readState(value: unknown, writtenOf: WrittenOf): ReadNetwork {
  const found: NetworkFindings = { problems: [], untranslated: [] };
  const root: NetworkPlace = { path: [], found, writtenOf };
  const read = readAlong(NETWORK, value ?? {}, root) ?? {};
  const interfaces = readEach(read.interfaces, below(root, 'interfaces'));
  const { config } = read['dns-resolver'] ?? {};
  const there = interfaces.filter((each) => each.state !== 'absent').toReversed();
  const state = {
    interfaces,
    byName: new Map(there.map((each) => [each.name, each])),
    routes: readPresent(ROUTES, read.routes, below(root, 'routes', 'config')),
    rules: readPresent(RULES, read['route-rules'], below(root, 'route-rules', 'config')),
    servers: config?.server ?? [],
    domains: config?.search ?? [],
  };
  return { state, ...found };
}

/** The interfaces of a document that several rules look at; one with problems gives those that could be read. */
export const readInterfaces = (value: unknown): readonly NetworkInterface[] =>
  readNetworkState(value).state.interfaces;

const STATE = word(['up', 'down', 'absent', 'ignore'], ['unknown']);

const readEach = (
  values: readonly unknown[] = [],
  place: NetworkPlace,
): readonly NetworkInterface[] =>
  values.flatMap((value, at) => readInterface(value, below(place, at)) ?? []);

/** The members that tell how the others are read. */
const HEAD = record({ name: FREE, ...partial({ identifier: FREE, type: FREE }).members }, LEFT_OUT);

function readInterface(value: unknown, place: NetworkPlace): NetworkInterface | undefined {
  const head = readAlong(HEAD, value, place);
  if (!head) return undefined;
  const { name: written, identifier, type } = head;
  const shape = identifier === 'mac-address' || isLongNamed(type) ? label : name;
  const named = readAlong(shape, written, below(place, 'name'));
  if (named === undefined) return undefined;
  const inside = { ...place, owner: named };
  const about = readKind(objectOrEmpty(value), inside);
  // nmstate reads only the name of an interface that it removes.
  if (about?.state === 'absent') return { name: named, ...about };
  const members = about && readMembers(about.type, value, inside);
  return members && { ...members, ...about };
}

type KindOfInterface = Pick<NetworkInterface, 'path' | 'type' | 'state'>;

/** Reads the type and the state. Without a running system, an unknown type is an Ethernet interface. */
function readKind(
  value: Readonly<Record<string, unknown>>,
  place: NetworkPlace,
): KindOfInterface | undefined {
  const state = readAlong(STATE, value['state'] ?? 'up', below(place, 'state')) ?? 'up';
  const at = below(place, 'type');
  const type = readAlong(TYPE, value['type'] ?? 'ethernet', at);
  if (type === undefined) return undefined;
  if (!isTranslated(type) && (state === 'up' || state === 'down')) readAlong(OTHER_TYPE, type, at);
  return { path: formatSteps(place.path), type: type === 'unknown' ? 'ethernet' : type, state };
}

/** nmstate takes a type that it does not know for Ethernet, in capitals too; its own are small. */
const TYPE = transform(
  refine(text(/^[\p{L}\p{N}-]+$/u, 'the type of an interface'), (written) => {
    const type = written.toLowerCase();
    return type === written || type === 'ethernet' || !isTranslated(type)
      ? undefined
      : `${quote(written)} is not a type of nmstate; did you mean "${type}"?`;
  }),
  (written) => written.toLowerCase(),
);
const OTHER_TYPE = noted(TEXT, (type) => `is ${quote(type)}, which needs nmstate`);

/** Reads a network; an address alone is a network of one address. */
const destination: Shape<Cidr> = parsedText('an IP network', (written) => {
  const [address = '', length, ...more] = written.split('/');
  const found = parseAddress(address);
  if (!found || more.length > 0) return undefined;
  const width = widthOf(found.family);
  const prefix = length === undefined ? width : decode(integer(0, width), length).value;
  return prefix === undefined ? undefined : createCidr(found, prefix, written);
});

const ROUTE = record({
  destination,
  ...partial({
    'next-hop-address': ip,
    'next-hop-interface': unquoted(name),
    'metric': integer(-1, U32),
    'table-id': integer(0, U32),
    'weight': integer(1, 256),
    'route-type': word(['blackhole', 'unreachable', 'prohibit']),
    'source': untranslated(ip),
    'cwnd': untranslated(integer(1, U32)),
    'state': FREE,
  }).members,
  ...foreignMembers('initcwnd initrwnd mtu quickack advmss lock-mtu vrf-name'),
});

const ROUTE_RULE = partial(
  {
    'state': FREE,
    'family': word(['ipv4', 'ipv6']),
    'ip-from': destination,
    'ip-to': destination,
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
export type RouteRule = TypeOf<typeof ROUTE_RULE> & { readonly path: string };

/** The shape of items, and the states of those without effect. */
type Items<T> = { readonly shape: Shape<T>; readonly states: Shape };
const ROUTES = { shape: ROUTE, states: word(['absent', 'ignore']) };
const RULES = { shape: untranslated(ROUTE_RULE), states: word(['absent']) };

/** Reads the items that are not absent: no route exists before the first boot. */
const readPresent = <T>(
  { shape, states }: Items<T>,
  section: { readonly config?: readonly unknown[] } | undefined,
  place: NetworkPlace,
): readonly (T & { readonly path: string })[] =>
  (section?.config ?? []).flatMap((item, index) => {
    const at = below(place, index);
    const state = objectOrEmpty(item)['state'] ?? undefined;
    if (state !== undefined) readAlong(states, state, below(at, 'state'));
    const read = state === undefined ? readAlong(shape, item, at) : undefined;
    return read === undefined ? [] : [{ ...read, path: formatSteps(at.path) }];
  });

/** Reads a name server: a link-local address may have its interface as a zone (RFC 4007 11). */
const server: Shape<NameServer> = parsedText('the address of a name server', (written) => {
  const [found = '', zone, ...more] = written.split('%');
  const address = parseAddress(found);
  const isWrong = zone !== undefined && (address?.family !== 6 || zone === '');
  if (!address || isWrong || more.length > 0) return undefined;
  return zone === undefined ? { address } : { address, zone };
});

/** NetworkManager refuses the characters that separate domains (nm-setting-ip-config.c, verify). */
const DOMAIN = text(/^[^\s\p{Cc},;\\]+$/u, 'the name of a domain');

/** Interfaces, routes and rules are read one by one. */
const ITEMS = list(FREE);
const NETWORK = record({
  ...partial({
    'description': FREE,
    'hostname': record({ running: optional(FREE), ...foreignMembers('config') }),
    'interfaces': ITEMS,
    'routes': partial({ running: FREE, config: ITEMS }),
    'route-rules': partial({ config: ITEMS }),
    'dns-resolver': partial({
      running: FREE,
      config: partial({
        server: list(server),
        search: list(unquoted(DOMAIN)),
        options: list(foreign),
      }),
    }),
  }).members,
  ...foreignMembers('ovs-db ovn'),
});
