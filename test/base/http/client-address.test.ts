import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { createClientAddresses, parseProxy } from '../../../src/base/http/client-address.ts';

const proxies = [parseProxy('192.0.2.0/24')].filter((list) => list !== undefined);

const ask = (remoteAddress: string | undefined, forwarded: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

it('a request of a trusted proxy is of the last address that is not a proxy', () => {
  const { clientOf } = createClientAddresses({ proxies });
  expect(clientOf(ask('192.0.2.1', '198.51.100.1, 203.0.113.5, 192.0.2.9'))).toBe('203.0.113.5');
});

it('a connection that was reset before it was looked at cannot choose its address', () => {
  const { clientOf, ofConnection } = createClientAddresses({ proxies });
  const request = ask(undefined, '203.0.113.5');
  expect(clientOf(request)).toBe('');
  expect(ofConnection(request.socket)).toBe('');
});

it('a request by a socket file has the address that a worker names', () => {
  const { clientOf, ofConnection } = createClientAddresses({ isInner: true });
  const request = ask(undefined, '203.0.113.5');
  expect(clientOf(request)).toBe('203.0.113.5');
  expect(ofConnection(request.socket)).toBeUndefined();
});

it('a request of a trusted proxy itself has the address of that proxy, by a socket file as well', () => {
  const { clientOf } = createClientAddresses({ proxies, isInner: true });
  expect(clientOf(ask(undefined, '192.0.2.1'))).toBe('192.0.2.1');
  expect(clientOf(ask(undefined, '192.0.2.7, 192.0.2.1'))).toBe('192.0.2.1');
  expect(clientOf(ask('192.0.2.1', '192.0.2.7'))).toBe('192.0.2.1');
});

it('all addresses of an IPv6 network of 64 bits have one owner, and an IPv4 address inside IPv6 its own', () => {
  const { ofRequest } = createClientAddresses();
  const ownerOf = (address: string): string => ofRequest(ask(address, ''));
  const owner = ownerOf('2001:db8:0:1::1');
  expect(ownerOf('2001:db8:0:1:ffff:ffff:ffff:ffff')).toBe(owner);
  expect(ownerOf('2001:db8:0:2::1')).not.toBe(owner);
  expect(ownerOf('::ffff:192.0.2.1')).toBe('192.0.2.1');
});
