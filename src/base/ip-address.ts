import { isIPv4, isIPv6 } from 'node:net';

export type Family = 4 | 6;

/** An address as a number, most significant octet first. */
export type IpAddress = { readonly family: Family; readonly value: bigint };

export type Cidr = {
  readonly text: string;
  readonly family: Family;
  readonly prefix: number;
  /** The address as written, host bits included. */
  readonly value: bigint;
  readonly first: bigint;
  readonly last: bigint;
};

/** Parses an address without a zone, as Go's parser requires. */
export function parseAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, value: readOctets(text) };
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (!mapped) return { family: 6, value: readGroups(text) };
  const [, head = '', tail = ''] = mapped;
  const octets = readOctets(tail);
  const groups = `${(octets >> 16n).toString(16)}:${(octets & 0xffffn).toString(16)}`;
  return { family: 6, value: readGroups(`${head}${groups}`) };
}

/** Unspecified, loopback, multicast and broadcast (RFC 6890, RFC 5771, RFC 4291 2.4). */
export function isOfNoHost({ family, value }: IpAddress): boolean {
  if (family === 6 && value >> 32n === 0xffffn)
    return isOfNoHost({ family: 4, value: value & 0xffffffffn });
  if (family === 6) return value <= 1n || value >> 120n === 0xffn;
  const first = Number(value >> 24n);
  return value === 0n || first === 127 || (first >= 224 && first < 240) || value === 0xffffffffn;
}

export function isHostAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && !isOfNoHost(address);
}

const readOctets = (text: string): bigint =>
  BigInt(text.split('.').reduce((value, octet) => value * 256 + Number(octet), 0));

function readGroups(text: string): bigint {
  const [head = '', tail = ''] = text.split('::');
  const left = head.split(':').filter((group) => group !== '');
  const right = tail.split(':').filter((group) => group !== '');
  const middle = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const digits = [...left, ...middle, ...right].map((group) => group.padStart(4, '0')).join('');
  return BigInt(`0x${digits}`);
}

export const widthOf = (family: Family): number => (family === 4 ? 32 : 128);

/** `address/prefix`; undefined if the text is something else. */
export function parseCidr(text: string): Cidr | undefined {
  const [, address = '', digits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const ip = parseAddress(address);
  return ip && Number(digits) <= widthOf(ip.family)
    ? createCidr(ip, Number(digits), text)
    : undefined;
}

export function createCidr({ family, value }: IpAddress, prefix: number, text: string): Cidr {
  const hosts = (1n << BigInt(widthOf(family) - prefix)) - 1n;
  return { text, family, prefix, value, first: value & ~hosts, last: value | hosts };
}

export const contains = (network: Cidr, { family, value }: IpAddress): boolean =>
  network.family === family && network.first <= value && value <= network.last;

export const overlaps = (a: Cidr, b: Cidr): boolean =>
  a.family === b.family && a.first <= b.last && b.first <= a.last;

/** The network without host bits: `10.0.2.0/24` for `10.0.2.1/24`. */
export const formatNetwork = ({ family, first, prefix }: Cidr): string =>
  `${formatAddress({ family, value: first })}/${prefix}`;

/** IPv6 in the form of RFC 5952. */
export function formatAddress({ family, value }: IpAddress): string {
  if (family === 4) {
    return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.');
  }
  const digits = value.toString(16).padStart(32, '0');
  const groups = (digits.match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, ''));
  const runs = groups.join(':').match(/\b0(?::0)+\b/g) ?? [];
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '');
  if (longest === '') return groups.join(':');
  const [head, tail] = splitOnce(groups.join(':'), longest);
  return `${head.replace(/:$/, '')}::${tail.replace(/^:/, '')}`;
}

function splitOnce(text: string, run: string): readonly [string, string] {
  const at = new RegExp(`(?<![0-9a-f])${run}(?![0-9a-f])`).exec(text)?.index ?? 0;
  return [text.slice(0, at), text.slice(at + run.length)];
}
