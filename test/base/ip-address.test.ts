import fc from 'fast-check';
import { isIPv6 } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  contains,
  formatAddress,
  formatNetwork,
  overlaps,
  parseAddress,
  parseCidr,
} from '../../src/base/ip-address.ts';

const cidr = (text: string) => {
  const parsed = parseCidr(text);
  if (!parsed) throw new Error(`${text} is not a network`);
  return parsed;
};

describe('an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['10:0:0:0:0:0:0:10', '10::10'],
    ['100:0:0:1::', '100:0:0:1::'],
    ['::ffff:192.0.2.1', '::ffff:c000:201'],
  ])('%s is written as %s (RFC 5952)', (text, expected) => {
    const address = parseAddress(text);
    expect(address && formatAddress(address)).toBe(expected);
  });

  it.each(['', '192.0.2', '192.0.2.256', '192.0.2.01', '2001:db8', ':::', 'fe80::1%eth0', ' ::1'])(
    'is not "%s"',
    (text) => {
      expect(parseAddress(text)).toBeUndefined();
    },
  );

  it('has one canonical text, which means the same address', () => {
    const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
      minLength: 8,
      maxLength: 8,
    });
    fc.assert(
      fc.property(groups, (list) => {
        const address = parseAddress(list.map((group) => group.toString(16)).join(':'));
        const text = address ? formatAddress(address) : '';
        expect(isIPv6(text)).toBe(true);
        expect(parseAddress(text)).toEqual(address);
        // The URL parser of Node writes the canonical form too.
        expect(new URL(`http://[${text}]/`).hostname).toBe(`[${text}]`);
      }),
    );
  });
});

describe('a network', () => {
  it('is written without the host part', () => {
    expect(formatNetwork(cidr('10.0.2.1/24'))).toBe('10.0.2.0/24');
    expect(formatNetwork(cidr('2001:db8::1/64'))).toBe('2001:db8::/64');
    expect(formatNetwork(cidr('192.0.2.1/32'))).toBe('192.0.2.1/32');
  });

  it.each([
    '10.0.0.0',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '/24',
    '10.0.0.0/24/1',
  ])('is not "%s"', (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });

  it('contains addresses of its own family only', () => {
    const everything = cidr('0.0.0.0/0');
    expect(contains(everything, { family: 4, value: 0xffff_ffffn })).toBe(true);
    expect(contains(everything, { family: 6, value: 1n })).toBe(false);
  });

  it.each([
    ['10.0.0.0/8', '10.255.255.0/24', true],
    ['10.0.0.0/8', '11.0.0.0/24', false],
    ['192.0.2.0/25', '192.0.2.128/25', false],
    ['::/0', '0.0.0.0/0', false],
    ['fd00::/8', 'fd01::/48', true],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    expect(overlaps(cidr(a), cidr(b))).toBe(expected);
    expect(overlaps(cidr(b), cidr(a))).toBe(expected);
  });
});
