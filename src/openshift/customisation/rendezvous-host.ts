import { isIP } from 'node:net';
import { ConfigError } from '../../base/errors.ts';

/** What the installer leaves for a person at the console to fill. */
const PLACEHOLDER = /\{\{-?\s*\.RendezvousIP\s*-?\}\}/g;
const BRACKETS = /\{\{-?\s*if \$isIPv6[^}]*\}\}.*?\{\{-?\s*end\s*-?\}\}/g;
const DIRECTIVE = /\{\{[^}]*\}\}/g;

/** The text of rendezvous-host.env for an address: of a template, or of a file that waits for one. */
export function renderRendezvousHost(template: string, address: string): string {
  const ip = normaliseAddress(address);
  const host = ip.includes(':') ? `[${ip}]` : ip;
  const [first = '', ...lines] = template.split('\n');
  const isDirective = /^#?\{\{/.test(first);
  const filled = (isDirective ? lines : [first, ...lines]).map((line) =>
    fillLine(line.replaceAll(BRACKETS, host), ip, host),
  );
  return [...(isDirective ? [first.replaceAll(DIRECTIVE, '')] : []), ...filled].join('\n');
}

/** Older installers leave out the brackets that an address of IPv6 needs inside a URL. */
const fillLine = (line: string, ip: string, host: string): string =>
  line.replaceAll(PLACEHOLDER, line.startsWith('NODE_ZERO_IP=') ? ip : host);

/** RFC 5952: the spelling that hosts compare with. */
function normaliseAddress(address: string): string {
  const version = address.includes('%') ? 0 : isIP(address);
  const ip = version === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
  if (version !== 0 && !OF_NO_HOST.test(ip)) return ip;
  throw new ConfigError('customize.rendezvous-ip', `invalid rendezvous IP: ${address}`, {
    expected: 'an IPv4 or IPv6 address of one host',
    found: address,
    hint: 'give an address that the rendezvous host has',
  });
}

/** Unspecified, loopback, multicast and broadcast: RFC 6890, RFC 5771, RFC 4291. */
const OF_NO_HOST = /^(?:0\.|127\.|(?:22[4-9]|2[3-5]\d)\.|::1?$|ff[0-9a-f]{2}:)/;
