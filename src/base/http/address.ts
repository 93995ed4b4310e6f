import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { domainToASCII } from 'node:url';
import { RegistryError } from '../errors.ts';
import type { Redaction } from '../text/redact.ts';
import { decodeUserInfo, formatBasic, type UserInfo } from './basic.ts';

/** The reach of an IP address. A host on a narrower network must not be asked on behalf of a wider one. */
export type AddressKind = 'public' | 'private' | 'link-local' | 'loopback';

const createList = (...ranges: readonly (readonly [string, number])[]): BlockList => {
  const list = new BlockList();
  for (const [network, prefix] of ranges) {
    list.addSubnet(network, prefix, network.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
};

/** RFC 1122 3.2.1.3: 0.0.0.0/8 is this host; Linux connects to loopback there, as for `::`. */
const LOOPBACK = createList(['127.0.0.0', 8], ['0.0.0.0', 8], ['::1', 128], ['::', 128]);
/** RFC 3927, RFC 4291 2.5.6. */
const LINK_LOCAL = createList(['169.254.0.0', 16], ['fe80::', 10]);
/** RFC 1918, RFC 6598, RFC 4193, RFC 3879. */
const PRIVATE = createList(
  ...([
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['100.64.0.0', 10],
    ['fc00::', 7],
    ['fec0::', 10],
  ] as const),
);

/** The kind of an IP address; an IPv4 address inside an IPv6 one (RFC 4291 2.5.5.2, RFC 6052) counts. */
export function kindOfAddress(address: string): AddressKind {
  const inner = embeddedIPv4(address);
  const family = isIP(inner) === 6 ? 'ipv6' : 'ipv4';
  if (LOOPBACK.check(inner, family)) return 'loopback';
  if (LINK_LOCAL.check(inner, family)) return 'link-local';
  return PRIVATE.check(inner, family) ? 'private' : 'public';
}

/** Reads an embedded IPv4 address. URL writes such addresses in hexadecimal: `::ffff:7f00:1`. */
function embeddedIPv4(address: string): string {
  const bare = address.replace(/%.*$/, ''); // RFC 4007 11: a zone
  if (isIP(bare) !== 6) return bare;
  const { hostname } = new URL(`http://[${bare}]/`);
  const [, high = '', low = ''] =
    /^\[(?:::ffff:(?:0:)?|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname) ?? [];
  if (high === '') return bare;
  const value = parseInt(high, 16) * 0x1_0000 + parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
}

/** The kind of a URL's host if it is an IP address or `localhost`; undefined for other names. */
export function kindOfHost(hostname: string): AddressKind | undefined {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return kindOfAddress(host);
  return host === 'localhost' ? 'loopback' : undefined;
}

/**
 * True if a host of kind `by` may name a host of kind `named` for us to ask: every host may name
 * public hosts and hosts of its own kind, and every host that is not public may name private ones.
 */
export const mayName = (by: AddressKind, named: AddressKind): boolean =>
  named === 'public' || named === by || (named === 'private' && by !== 'public');

const BY_WIDTH: readonly AddressKind[] = ['public', 'private', 'link-local', 'loopback'];

/** The kind, among those of a host's addresses, that may name the fewest hosts; public without addresses. */
export const widestKind = (addresses: readonly string[]): AddressKind => {
  const kinds = addresses.map(kindOfAddress);
  return BY_WIDTH.find((kind) => kinds.includes(kind)) ?? 'public';
};

/** User name and password of a URL, decoded, if it has them; both are masked from now on. */
export function readUserInfo(url: URL, redaction: Redaction): UserInfo | undefined {
  const decoded = decodeLogin(url);
  if (decoded === undefined) return undefined;
  redaction.addLogin(url.username, url.password);
  redaction.addLogin(decoded.username, decoded.password);
  if (decoded.encoding) redaction.add(formatBasic(decoded).replace(/^Basic /, ''));
  return decoded;
}

/** User name and password of a URL that `readUserInfo` has read: they are masked already. */
export const decodeLogin = ({ username, password }: URL): UserInfo | undefined =>
  username === '' && password === ''
    ? undefined
    : decodeUserInfo(decodeBytes(username), decodeBytes(password));

/**
 * True if a bare `#`, `/` or `?` in a password ended an address before its host, which is in the rest: the
 * user would be asked as a host.
 */
export const isCutOff = ({ username, pathname, search, hash }: URL): boolean =>
  username === '' && `${pathname}${search}${hash}`.includes('@');

/** Decodes percent-encoding as curl does: a bare `%` stays. Parts of a URL have ASCII characters alone. */
const decodeBytes = (text: string): Buffer =>
  Buffer.from(
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, byte: string) =>
      String.fromCharCode(Number.parseInt(byte, 16)),
    ),
    'latin1',
  );

/** Writes a bare `%` of percent-encoding, which curl takes as it is, as `%25`. */
export const encodeBarePercents = (text: string): string =>
  text.replaceAll(/%(?![0-9a-f]{2})/gi, '%25');

/** Returns all addresses of a name; errors are those of the system's own look-up. */
export type Lookup = (
  hostname: string,
  report: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export const lookupAll: Lookup = (hostname, report) => {
  systemLookup(hostname, { all: true }, report);
};

/** Checks names when a connection is made: their addresses may change at any time. */
export const guardLookup = (lookup: Lookup, namedBy: AddressKind): LookupFunction =>
  passLookup((hostname, report) => {
    lookup(hostname, (error, addresses) => {
      const refused = addresses.find(({ address }) => !mayName(namedBy, kindOfAddress(address)));
      if (error || !refused) report(error, addresses);
      else report(refuseAddress(hostname, refused.address, namedBy), []);
    });
  });

/** Adapts a look-up to the form that Node's connections need. */
export const passLookup =
  (lookup: Lookup): LookupFunction =>
  (hostname, { all = false }, report) => {
    lookup(hostname, (error, addresses) => {
      if (error || all) report(error, addresses);
      else report(null, addresses[0]?.address ?? '', addresses[0]?.family);
    });
  };

/** Checks a host name. An address in place of a name is never looked up. */
export function checkName(hostname: string, namedBy: AddressKind | undefined): void {
  const kind = kindOfHost(hostname);
  if (namedBy === undefined || kind === undefined || mayName(namedBy, kind)) return;
  throw refuseAddress(hostname, hostname, namedBy);
}

function refuseAddress(host: string, address: string, namedBy: AddressKind): RegistryError {
  const kind = kindOfHost(address) ?? kindOfAddress(address);
  return new RegistryError(
    'registry.address',
    `${host} has a ${kind} address, which a host with a ${namedBy} address may not name`,
    {
      expected: `a ${namedBy} address`,
      found: address,
      hint: 'configure the registry to name a host that other machines can reach',
    },
  );
}

/** True if a URL is requested through a proxy. */
export type ProxyRule = (url: URL) => boolean;

type Host = { readonly name: string; readonly port: string };
type Matcher = (host: Host) => boolean;

/**
 * Parses NO_PROXY as Go's golang.org/x/net/http/httpproxy does, and so skopeo, podman and oc: names
 * with their subdomains, `.name` and `*.name` for the subdomains alone, addresses, CIDRs, each name
 * or address with or without a port, and `*` for all. `localhost` and loopback addresses are never
 * requested through a proxy.
 */
export function parseNoProxy(text: string): ProxyRule {
  const entries = text
    .toLowerCase()
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const matchers = entries.map(parseEntry);
  return (url) => {
    const host = hostOf(url);
    return !isLoopbackHost(host.name) && !matchers.some((matches) => matches(host));
  };
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

const hostOf = ({ hostname, port, protocol }: URL): Host => ({
  name: hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, ''),
  port: port === '' ? (DEFAULT_PORTS[protocol] ?? '') : port,
});

export function isLoopbackHost(name: string): boolean {
  return name === 'localhost' || isInside(name, LOOPBACK_PROXY);
}

const LOOPBACK_PROXY = new BlockList();
LOOPBACK_PROXY.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK_PROXY.addAddress('::1', 'ipv6');

const ALL: Matcher = () => true;
const NONE: Matcher = () => false;

function parseEntry(entry: string): Matcher {
  if (entry === '*') return ALL;
  const network = parseNetwork(entry);
  if (network) return ({ name }) => isInside(name, network);
  const { name, port } = splitPort(entry);
  const isPort = (host: Host): boolean => port === '' || port === host.port;
  if (name === '') return NONE;
  if (isIP(name) !== 0) {
    const address = new BlockList();
    address.addAddress(name, familyOf(name));
    return (host) => isInside(host.name, address) && isPort(host);
  }
  const suffix = name.replace(/^\*(?=\.)/, '');
  if (suffix.startsWith('.')) {
    const below = `.${toAscii(suffix.slice(1))}`;
    return (host) => host.name.endsWith(below) && isPort(host);
  }
  const exact = toAscii(suffix);
  return (host) => (host.name === exact || host.name.endsWith(`.${exact}`)) && isPort(host);
}

/** Splits `[IPv6]:port` or `name:port`; an IPv6 address alone has colons and no port. */
function splitPort(entry: string): Host {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(entry) ?? [];
  return port === undefined ? { name: entry, port: '' } : { name: bracketed ?? plain ?? '', port };
}

export function parseNetwork(entry: string): BlockList | undefined {
  const [, network = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
  const family = isIP(network);
  if (family === 0 || Number(bits) > (family === 4 ? 32 : 128)) return undefined;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), familyOf(network));
  return list;
}

/** BlockList compares an IPv4 address inside an IPv6 one (`::ffff:10.0.0.1`) as IPv4, as Go does. */
export const isInside = (name: string, list: BlockList): boolean =>
  isIP(name) !== 0 && list.check(name, familyOf(name));

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** The form of a host name in a URL; a name without such a form stays as it is, and matches no host. */
const toAscii = (name: string): string => domainToASCII(name) || name;
