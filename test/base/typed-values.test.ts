import { describe, expect, it } from 'vitest';
import { explainHostName, isAddressOrHostName } from '../../src/base/host-name.ts';
import { explainNoProxy, explainProxyUrl } from '../../src/base/http/typed-proxy.ts';
import { parseMacAddress } from '../../src/base/mac-address.ts';
import { decodeUserText } from '../../src/base/text/utf8.ts';

describe('hosts that are reached without a proxy', () => {
  it.each(['*', 'example.com,.example.org,10.0.0.0/8,fd00::/64', 'my_host', '::1', ''])(
    'may be %j',
    (text) => {
      expect(explainNoProxy(text)).toBeUndefined();
    },
  );

  it.each([
    ['*,example.com', '"*" must be alone'],
    ['*.example.com', /"\*\.example\.com" is neither/],
    ['example.com:443', /"example.com:443" is neither/],
    ['10.0.0.0/33', /"10.0.0.0\/33" is neither/],
    ['a.example,a.example', '"a.example" occurs twice'],
    ['example.com,', 'has an empty element'],
    ['a.example, b.example', /" b.example" is neither/],
  ])('may not be %j', (text, why) => {
    expect(explainNoProxy(text)).toMatch(why);
  });
});

it.each([
  ['http://user:p%40ss@proxy.example.com:3128', undefined],
  ['https://[2001:db8::1]:3128', undefined],
  ['http://proxy:99999', 'is not an http or https URL'],
  ['http:proxy:3128', 'is not an http or https URL'],
  ['socks5://proxy', 'is not an http or https URL'],
  ['http://user:100%@proxy:1', /^has a character in its user or password.*% as %25/],
  ['http://user:1#x@proxy:1', /^has a character in its user or password.*# as %23/],
  ['http://user:ü@proxy:1', /^has a character in its user or password/],
  ['http://pro xy', /^has a space/],
  ['http://proxy\0', /^has a space, a control character/],
])('a proxy of hosts is judged: %j', (text, why) => {
  if (why === undefined) expect(explainProxyUrl(text)).toBeUndefined();
  else expect(explainProxyUrl(text)).toMatch(why);
});

it.each([
  ['node-1.example.com', undefined],
  ['1234', undefined],
  ['localhost', /is the name of every host/],
  ['localhost.localdomain', /is the name of every host/],
  ['localhost6.localdomain6', /is the name of every host/],
  ['Node1', /has capital letters/],
  ['10.1.0.1', /is an address/],
  ['my_host', /is not the name of a host/],
  ['a..b', /is not the name of a host/],
  ['a'.repeat(64), /has more than 63 characters/],
])('the name of a host is judged as assisted-service does: %s', (name, why) => {
  if (why === undefined) expect(explainHostName(name)).toBeUndefined();
  else expect(explainHostName(name)).toMatch(why);
});

it.each(['02:00:0A:00:00:01', '02-00-0a-00-00-01', '0200.0a00.0001', '02000A000001'])(
  'the MAC address %s has one form',
  (text) => {
    expect(parseMacAddress(text)).toBe('02:00:0a:00:00:01');
  },
);

it.each(['02:00:0a:00:00', '02:00-0a:00:00:01', '02:00:0a:00:00:0g', ''])(
  '%j is not a MAC address',
  (text) => {
    expect(parseMacAddress(text)).toBeUndefined();
  },
);

it.each([
  ['10.1.0.1', true],
  ['fd00::1', true],
  ['ntp.example.com.', true],
  ['10.1.0.', false],
  ['10.1.0', false],
  [`${'d'.repeat(64)}.com`, false],
  ['a b', false],
])('a time server %s is accepted: %s', (text, isAccepted) => {
  expect(isAddressOrHostName(text)).toBe(isAccepted);
});

it('a file in Latin-1 or UTF-16 is refused by name', () => {
  for (const encoding of ['latin1', 'utf16le'] as const) {
    expect(() => decodeUserText(Buffer.from('süd', encoding), 'a.yaml')).toThrow(
      /a\.yaml is not UTF-8/,
    );
  }
});
