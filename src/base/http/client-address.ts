import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { parseAddress } from '../ip-address.ts';
import { isInside } from './address.ts';

/* Owns the answer to who a client is: its address, which a proxy in front hides. */

export type ClientAddresses = {
  /** The owner of a connection; undefined if a trusted proxy, or this machine by a socket file, made it. */
  readonly ofConnection: (socket: Socket) => string | undefined;
  /** The owner of a request: the last address in `X-Forwarded-For` that is not a trusted proxy. */
  readonly ofRequest: (request: IncomingMessage) => string;
};

/**
 * Creates a reader of client addresses. `X-Forwarded-For` of a connection that no trusted proxy made is what a client
 * wants it to be, and is not read.
 *
 * @param proxies addresses of trusted proxies
 */
export function createClientAddresses(proxies: readonly BlockList[] = []): ClientAddresses {
  const isProxy = (address: string | undefined): boolean =>
    address === undefined || proxies.some((list) => isInside(address, list));
  const ofConnection = ({ remoteAddress }: Socket): string | undefined =>
    isProxy(remoteAddress) ? undefined : nameOwner(remoteAddress ?? '');
  return {
    ofConnection,
    ofRequest({ socket, headers }) {
      const direct = ofConnection(socket);
      if (direct !== undefined) return direct;
      const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
      const client = forwarded
        .map((text) => text.trim())
        .findLast((text) => parseAddress(text) !== undefined && !isProxy(text));
      return nameOwner(client ?? socket.remoteAddress ?? '');
    },
  };
}

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
