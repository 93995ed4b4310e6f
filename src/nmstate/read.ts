import { isIP } from 'node:net';
import { isObject } from '../base/lists.ts';
import { parse } from '../shape/parse-text.ts';
import { NAME, name, networkInterface, U32, type Interface } from './state.ts';
import {
  malformed,
  foreign,
  integer,
  ip,
  list,
  object,
  refuseValue,
  text,
  unused,
  word,
  type Kind,
  type Place,
} from './values.ts';

export type Route = ReturnType<typeof ROUTE>;

export type Network = {
  /** The interfaces with profiles. */
  readonly interfaces: readonly Interface[];
  readonly routes: readonly Route[];
  readonly resolver: { readonly server?: readonly string[]; readonly search?: readonly string[] };
};

/**
 * Reads a configuration into typed members.
 *
 * @throws ConfigError `nmstate.unsupported` if only nmstate itself can write the profiles; `nmstate.malformed`
 */
export function readNetwork(networkConfig: string): Network {
  const found: Place = { path: '', foreign: [] };
  const state = STATE_OF_NETWORK(parseState(networkConfig) ?? {}, found);
  const [first] = found.foreign;
  if (first) throw first;
  const isThere = <T>(each: T | undefined): each is T => each !== undefined;
  return {
    interfaces: (state.interfaces ?? []).filter(isThere),
    routes: (state.routes?.config ?? []).filter(isThere),
    resolver: state['dns-resolver']?.config ?? {},
  };
}

function parseState(networkConfig: string): unknown {
  try {
    return parse(networkConfig);
  } catch (cause) {
    throw malformed('it is not YAML', cause);
  }
}

const destination: Kind<string> = (value, place) => {
  const [found = '', length, ...more] = typeof value === 'string' ? value.split('/') : [];
  const most = isIP(found) === 4 ? 32 : 128;
  if (isIP(found) === 0 || found.includes('%') || more.length > 0) {
    throw refuseValue(place, value, 'an IP network: invalid IP address syntax');
  }
  const explain = (text: string): string =>
    `Invalid IPv${isIP(found)} network prefix length '${text}' in '${String(value)}', should be in the range of 0 to ${most}`;
  return `${found}/${integer(0, most, explain)(length ?? most, place)}`;
};

const ROUTE = object(
  {
    'state': unused,
    'destination': destination,
    'next-hop-address': ip,
    'next-hop-interface': name,
    'metric': integer(-1, U32),
    'table-id': integer(0, U32),
    'weight': integer(1, 256),
  },
  ['destination', 'next-hop-interface'],
);

/** Undefined for a route with `state: absent`: no route exists before the first boot. */
const route: Kind<Route | undefined> = (value, place) => {
  const state = isObject(value) ? (value['state'] ?? undefined) : undefined;
  if (state !== undefined) {
    word(['absent'])(state, { ...place, path: `${place.path}.state` });
    return undefined;
  }
  return ROUTE(value, place);
};

/** Reads a name server: a link-local address may have its interface as a zone (RFC 4007 11). */
const server: Kind<string> = (value, place) => {
  const [found = '', zone, ...more] = typeof value === 'string' ? value.split('%') : [];
  const isZoned = zone !== undefined;
  const isWrong = isZoned && (isIP(found) !== 6 || !NAME.test(zone));
  if (isIP(found) !== 0 && !isWrong && more.length === 0) return String(value);
  throw refuseValue(place, value, 'the address of a name server');
};

const DOMAIN = text(/^[^\s\p{Cc};\\]+$/u, 'the name of a domain');

const STATE_OF_NETWORK = object({
  'description': unused,
  'interfaces': list(networkInterface),
  'routes': object({ running: unused, config: list(route) }),
  'route-rules': object({ config: list(foreign) }),
  'dns-resolver': object({
    running: unused,
    config: object({ server: list(server), search: list(DOMAIN), options: list(foreign) }),
  }),
});
