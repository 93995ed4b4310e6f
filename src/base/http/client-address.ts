import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { parseAddress } from '../ip-address.ts';
import { isInside, parseNetwork } from './address.ts';

/* Owns the answer to who a client is: its address, which a proxy in front hides. */

export type ClientAddresses = {
  /** The owner of a connection; undefined if a trusted proxy, or a process of this program by a socket file, made it. */
  readonly ofConnection: (socket: Socket) => string | undefined;
  /** The owner of a request: the last address in `X-Forwarded-For` that is not a trusted proxy. */
  readonly ofRequest: (request: IncomingMessage) => string;
  /** The address of a request itself, with all of its bits. */
  readonly clientOf: (request: IncomingMessage) => string;
};

export type TrustedPeers = {
  /** Addresses of trusted proxies. */
  readonly proxies?: readonly BlockList[];
  /** True if all connections come by a socket file, from processes of this program. */
  readonly isInner?: boolean;
};

/**
 * Creates a reader of client addresses. `X-Forwarded-For` of a connection that no trusted proxy made is what a client
 * wants it to be, and is not read. A connection that its client has reset has no address any more, like one by a socket
 * file: who accepts it says which of both it is.
 */
export function createClientAddresses({
  proxies = [],
  isInner = false,
}: TrustedPeers = {}): ClientAddresses {
  const isProxy = (address: string | undefined): boolean =>
    address === undefined ? isInner : proxies.some((list) => isInside(address, list));
  const ofConnection = ({ remoteAddress }: Socket): string | undefined =>
    isProxy(remoteAddress) ? undefined : nameOwner(remoteAddress ?? '');
  const clientOf = ({ socket, headers }: IncomingMessage): string => {
    const { remoteAddress = '' } = socket;
    if (!isProxy(socket.remoteAddress)) return remoteAddress;
    const forwarded = String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .map((text) => text.trim())
      .filter((text) => parseAddress(text) !== undefined);
    // A request of a proxy itself is that proxy's, which a socket file hides behind the name that a worker gave it.
    return (
      forwarded.findLast((text) => !isProxy(text)) ?? socket.remoteAddress ?? forwarded.at(-1) ?? ''
    );
  };
  return { ofConnection, clientOf, ofRequest: (request) => nameOwner(clientOf(request)) };
}

/** Reads an address, or a network. */
export const parseProxy = (text: string): BlockList | undefined =>
  parseNetwork(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);

/**
 * Names the owner of an address. A host with IPv6 chooses among all addresses of a network of 64 bits (RFC 4291 2.5.1), so
 * the network is the owner; an IPv4 address inside an IPv6 one is that IPv4 address.
 */
function nameOwner(text: string): string {
  const address = parseAddress(text.replace(/%.*$/, ''));
  if (address?.family !== 6) return text;
  if (address.value >> 32n === 0xffffn) {
    return [24n, 16n, 8n, 0n].map((shift) => String((address.value >> shift) & 0xffn)).join('.');
  }
  return `${(address.value >> 64n).toString(16)}::/64`;
}
