import { isIP } from 'node:net';
import { ConfigError } from '../../base/errors.ts';
import { isHostAddress } from '../../base/ip-address.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { decodeFileContent, type File } from '../../ignition/index.ts';
import { type HostNetwork, readNetworkText } from '../../nmstate/index.ts';
import { type CustomValues, HOST_NETWORKS } from './values.ts';

/* Owns the host that installs the cluster: which one it is, and the file that tells it so. */

export const RENDEZVOUS = '/etc/assisted/rendezvous-host.env';

/** The text that becomes that file when an address is known; older releases lack it. */
export const RENDEZVOUS_TEMPLATE = `${RENDEZVOUS}.template`;

/* Bounded, so that no text of another ISO takes the square of its length. */

/** The placeholder that the installer leaves for a person at the console to fill. */
const PLACEHOLDER = /\{\{-?\s*\.RendezvousIP\s*-?\}\}/g;
const BRACKETS = /\{\{-?\s*if \$isIPv6[^}]{0,200}\}\}.{0,200}?\{\{-?\s*end\s*-?\}\}/g;
const DIRECTIVE = /\{\{[^}]{0,200}\}\}/g;

/** @param template a template, or a file that waits for an address */
export function renderRendezvousHost(template: string, address: string): string {
  const ip = formatRendezvous(address);
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
export function formatRendezvous(address: string): string {
  const version = address.includes('%') ? 0 : isIP(address);
  const ip = version === 6 ? shortenAddress(address) : address;
  if (isHostAddress(ip)) return ip;
  throw new ConfigError('customize.rendezvous-ip', `invalid rendezvous IP: ${address}`, {
    expected: 'an IPv4 or IPv6 address of one host',
    found: address,
    hint: 'give an address that the rendezvous host has',
  });
}

/** An address of IPv4 that is written as one of IPv6 (RFC 4291, 2.5.5.2) is one of IPv4, as it is to Go. */
function shortenAddress(address: string): string {
  const ip = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(ip) ?? [];
  if (high === undefined || low === undefined) return ip;
  const words = [high, low].map((word) => Number.parseInt(word, 16));
  return words.flatMap((word) => [word >> 8, word & 0xff]).join('.');
}

/**
 * The rendezvous IP if none is given: the first static address of the first host that has one, hosts as given
 * (installer: `GetNodeZeroIP`).
 */
export function findFirstAddress(hosts: readonly HostNetwork[]): string | undefined {
  // Most networks without an address are not worth parsing: there may be thousands.
  for (const { networkConfig } of hosts.filter((host) => /\bip\b/.test(host.networkConfig))) {
    const { interfaces } = objectOrEmpty(readNetworkText(networkConfig).value);
    const [address] = listOf(interfaces).flatMap((each) =>
      ['ipv4', 'ipv6'].flatMap((family) => listAddresses(each, family)),
    );
    if (address !== undefined) return address;
  }
  return undefined;
}

/** Warning about networks that leave the choice of the rendezvous host to a person. */
export const WITHOUT_RENDEZVOUS =
  'no host has a static address, so no host becomes the rendezvous host: give a rendezvous IP, or choose the host at its console';

const listAddresses = (port: unknown, family: string): readonly string[] =>
  listOf(objectOrEmpty(objectOrEmpty(port)[family])['address'])
    .map((each) => objectOrEmpty(each)['ip'])
    .filter((ip): ip is string => typeof ip === 'string' && isIP(ip) !== 0);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * The given address, else the first one of the new networks, unless one is set that is not of the networks
 * that they replace.
 */
export function chooseRendezvous(
  present: readonly File[],
  { rendezvousIp, hosts = [] }: CustomValues,
): Pick<CustomValues, 'rendezvousIp'> {
  const address = rendezvousIp ?? findFirstAddress(hosts);
  if (address === undefined || rendezvousIp !== undefined)
    return withoutUndefined({ rendezvousIp });
  const set = readRendezvousIp(present);
  const isFree = set === undefined || findHost(present, set) !== undefined;
  return isFree ? { rendezvousIp: address } : {};
}

/** The address in rendezvous-host.env; undefined if it waits for one. */
export function readRendezvousIp(files: readonly File[]): string | undefined {
  const file = files.find(({ path }) => path === RENDEZVOUS);
  const text = file && decodeFileContent(file)?.toString('utf8');
  const [, address = ''] = /^NODE_ZERO_IP=(.*)$/m.exec(text ?? '') ?? [];
  return isIP(address) === 0 ? undefined : address;
}

/** The folder of the host whose profiles have an address: `host0`. */
export const findHost = (files: readonly File[], address: string): string | undefined =>
  files
    .filter(({ path }) => path.startsWith(HOST_NETWORKS))
    .find((file) => decodeFileContent(file)?.toString('utf8').includes(`=${address}/`))
    ?.path.slice(HOST_NETWORKS.length)
    .replace(/\/.*/, '');

export const isRendezvous = (path: string): boolean =>
  [RENDEZVOUS, RENDEZVOUS_TEMPLATE].includes(path);

export const findRendezvousTemplate = (files: ReadonlyMap<string, File>): File | undefined =>
  files.get(RENDEZVOUS_TEMPLATE) ?? files.get(RENDEZVOUS);
