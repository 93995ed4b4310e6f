import { describe, expect, test } from 'vitest';
import type { ChannelEntry } from '../../src/fbc/catalog.ts';
import { findHead, planChannelGraph } from '../../src/fbc/channel-graph.ts';
import { makeChain, makeChannel } from '../support/catalog-builder.ts';

describe('the upgrade graph of a channel', () => {
  test('has as its head the entry that no other replaces or skips', () => {
    const channel = makeChannel('stable', [
      { name: 'a' },
      { name: 'c', replaces: 'a', skips: ['b'], skipRange: '<9.0.0' },
      { name: 'b', replaces: 'a' },
    ]);
    expect(findHead(channel)).toBe('c');
    expect(planChannelGraph(channel).chain.map(({ name }) => name)).toEqual(['c', 'a']);
  });

  test('may replace and skip names that are not entries', () => {
    const channel = makeChannel('stable', [{ name: 'b', replaces: 'gone', skips: ['lost'] }]);
    expect(planChannelGraph(channel).chain).toHaveLength(1);
  });

  test('may name the same entry as replaced and as skipped', () => {
    const channel = makeChannel('stable', [
      { name: 'b', replaces: 'a', skips: ['a', 'a'] },
      { name: 'a' },
    ]);
    expect(findHead(channel)).toBe('b');
  });

  test.each<readonly [string, readonly ChannelEntry[], string]>([
    ['no entries', [], 'channel has no entries'],
    ['an entry twice', [{ name: 'a' }, { name: 'a' }], 'duplicate channel entry "a"'],
    [
      'an entry that replaces itself',
      [{ name: 'a', replaces: 'a' }],
      'invalid channel entry "a": replaces itself',
    ],
    [
      'an entry that skips itself',
      [{ name: 'a', skips: ['a'] }],
      'invalid channel entry "a": skips itself',
    ],
    [
      'only entries that replace one another',
      [
        { name: 'a', replaces: 'b' },
        { name: 'b', replaces: 'a' },
      ],
      'no channel heads found',
    ],
    ['two heads', [{ name: 'b' }, { name: 'a' }], 'multiple channel heads found: [a b]'],
    [
      'a cycle behind its head',
      [
        { name: 'c', replaces: 'b' },
        { name: 'b', replaces: 'a' },
        { name: 'a', skips: ['b'] },
      ],
      'detected a cycle in the upgrade graph of the channel',
    ],
    [
      'several faults',
      [{ name: 'a', skips: ['a'] }, { name: 'b' }, { name: 'b' }],
      'invalid channel entry "a": skips itself\nduplicate channel entry "b"\nmultiple channel heads found: [a b]',
    ],
  ])('with %s is refused', (_, entries, message) => {
    expect(() => planChannelGraph(makeChannel('stable', entries))).toThrow(
      expect.objectContaining({ code: 'catalog.channel', message }),
    );
  });

  test('is found in linear time if every entry skips all lower ones', () => {
    const names = Array.from({ length: 2000 }, (_, index) => `op.v0.0.${index}`);
    const entries = names.map((name, index) => ({
      name,
      ...(index === 0 ? {} : { replaces: names[index - 1] ?? '' }),
      skips: names.slice(0, index),
    }));
    expect(findHead(makeChannel('dense', entries))).toBe('op.v0.0.1999');
  });

  test('follows a chain of any length', () => {
    const versions = Array.from({ length: 20_000 }, (_, index) => `0.0.${index}`);
    expect(planChannelGraph(makeChannel('long', makeChain(...versions))).chain).toHaveLength(
      20_000,
    );
  });
});
