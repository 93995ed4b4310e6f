import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { formatState, isSameSite, parseState } from '../../../src/sites/identity/identity.ts';
import type { SiteIdentity } from '../../../src/sites/identity/identity.ts';
import { ALPHA, makeAlpha, makeKeyRing } from '../../support/site-identity.ts';

let identity: SiteIdentity;
let text: string;
beforeAll(async () => {
  const keys = await makeKeyRing();
  identity = await makeAlpha(keys);
  await keys.close();
  text = formatState({ identity, site: ALPHA });
});

it('a state gives back the identity and the site that were written', () => {
  expect(parseState(text)).toEqual({ identity, site: ALPHA });
});

it('a state that was read is written again with the same bytes', () => {
  const state = parseState(text);
  expect(state && formatState(state)).toBe(text);
});

it('a state that was truncated anywhere is not used', () => {
  fc.assert(
    // The last two are the brace, without which it is not valid JSON, and a newline, which nobody misses.
    fc.property(fc.nat(text.length - 2), (size) => {
      expect(parseState(text.slice(0, size))).toBeUndefined();
    }),
  );
});

it('a state with another character anywhere in it is not used', () => {
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom('0', 'Z', '"', '\0', '}'), (at, put) => {
      fc.pre(text.charAt(at) !== put && /\S/.test(text.charAt(at)));
      expect(parseState(text.slice(0, at) + put + text.slice(at + 1))).toBeUndefined();
    }),
  );
});

it.each(['', 'null', '[]', '{}', '"x"', '{"version":1}', 'x'])('%j is not a state', (other) => {
  expect(parseState(other)).toBeUndefined();
});

it('a state of another version is not used', () => {
  expect(parseState(text.replace('"version": 1', '"version": 2'))).toBeUndefined();
});

it('a different name, domain or given id makes a different site', () => {
  const ids = { ...ALPHA, clusterId: 'a', infraId: 'b' };
  expect(isSameSite(ids, { ...ids })).toBe(true);
  for (const key of ['clusterName', 'baseDomain', 'clusterId', 'infraId'] as const) {
    expect(isSameSite(ids, { ...ids, [key]: 'x' })).toBe(false);
  }
  expect(isSameSite(ids, ALPHA)).toBe(false);
});
