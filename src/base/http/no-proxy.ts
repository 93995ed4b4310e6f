import { BlockList, isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** Whether a URL is asked through a proxy. */
export type ProxyRule = (url: URL) => boolean;

type Host = { readonly name: string; readonly port: string };
type Matcher = (host: Host) => boolean;

/**
 * NO_PROXY as Go's golang.org/x/net/http/httpproxy reads it, and so skopeo, podman and oc: names with
 * those below them, `.name` and `*.name` for those below alone, addresses, CIDRs, each name or address
 * with a port or without one, and `*` for all. `localhost` and loopback addresses are never asked
 * through a proxy.
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
  return name === 'localhost' || isInside(name, LOOPBACK);
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

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

/** `[IPv6]:port`, `name:port`; an IPv6 address alone has colons and no port. */
function splitPort(entry: string): Host {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(entry) ?? [];
  return port === undefined ? { name: entry, port: '' } : { name: bracketed ?? plain ?? '', port };
}

function parseNetwork(entry: string): BlockList | undefined {
  const [, network = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
  const family = isIP(network);
  if (family === 0 || Number(bits) > (family === 4 ? 32 : 128)) return undefined;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), familyOf(network));
  return list;
}

/** BlockList compares an IPv4 address inside an IPv6 one (`::ffff:10.0.0.1`) as IPv4, as Go does. */
const isInside = (name: string, list: BlockList): boolean =>
  isIP(name) !== 0 && list.check(name, familyOf(name));

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** A URL has its host in this form; what cannot be written so stays, and names no host. */
const toAscii = (name: string): string => domainToASCII(name) || name;
