import { describe, expect, test } from 'vitest';
import type { Catalog } from '../../../src/fbc/catalog.ts';
import { checkCatalog } from '../../../src/fbc/filter/check-catalog.ts';
import { joinCatalogs, makeChain, makePackage } from '../../support/catalog-builder.ts';

const VALID = makePackage('op', { channels: { stable: makeChain('1.1.0', '1.0.0') } });
const place = { file: 'a', number: 1, offset: 0, size: 1, syntax: 'json' } as const;

describe('a catalog', () => {
  test('is valid with one head in each channel and a bundle for every entry', () => {
    expect(checkCatalog(VALID)).toEqual([]);
  });

  test.each<readonly [string, Catalog, readonly string[]]>([
    [
      'a package without channels',
      makePackage('op', { channels: {} }),
      ['package "op" has no channels'],
    ],
    [
      'a package without default channel',
      makePackage('op', { channels: { a: makeChain('1.0.0') }, defaultChannel: '' }),
      ['package "op" has no default channel'],
    ],
    [
      'a default channel that does not exist',
      makePackage('op', { channels: { a: makeChain('1.0.0') }, defaultChannel: 'b' }),
      ['package "op" has no channel "b", which is its default channel'],
    ],
    [
      'a channel without entries',
      makePackage('op', { channels: { a: [] } }),
      ['package "op" channel "a": channel has no entries'],
    ],
    [
      'two heads',
      makePackage('op', { channels: { a: [...makeChain('1.0.0'), ...makeChain('2.0.0')] } }),
      ['package "op" channel "a": multiple channel heads found: [op.v1.0.0 op.v2.0.0]'],
    ],
    [
      'an entry without bundle',
      makePackage('op', { channels: { a: makeChain('1.1.0', '1.0.0') }, missing: ['op.v1.0.0'] }),
      ['package "op" channel "a": entry "op.v1.0.0" has no bundle'],
    ],
    [
      'a version twice in a channel',
      makePackage('op', {
        channels: { a: makeChain('1.1.0', '1.0.0') },
        versions: { 'op.v1.1.0': '1.0.0' },
      }),
      ['package "op" channel "a": more than one bundle has version "1.0.0"'],
    ],
    [
      'a bundle without version, and one with another kind of version',
      makePackage('op', {
        channels: { a: makeChain('1.1.0', '1.0.0') },
        versions: { 'op.v1.1.0': null, 'op.v1.0.0': 'v1' },
      }),
      [
        'bundle "op.v1.1.0" in package "op" has no package property',
        'bundle "op.v1.0.0" in package "op" has version "v1", which is not a semantic version',
      ],
    ],
    [
      'a bundle that is in no channel',
      makePackage('op', { channels: { a: makeChain('1.0.0') }, versions: { lost: '3.0.0' } }),
      ['package "op" bundle "lost" is in no channel'],
    ],
    [
      'everything twice',
      joinCatalogs(VALID, VALID),
      [
        'package "op" is described more than once',
        'package "op" channel "stable" is described more than once',
        'package "op" bundle "op.v1.1.0" is described more than once',
        'package "op" bundle "op.v1.0.0" is described more than once',
      ],
    ],
    [
      'channels and bundles of a package that is not there',
      { ...makePackage('op', { channels: { a: makeChain('1.0.0') } }), packages: [] },
      [
        'package "op" channel "a" belongs to a package that is not in the catalog',
        'package "op" bundle "op.v1.0.0" belongs to a package that is not in the catalog',
      ],
    ],
    [
      'deprecations of what is not there',
      {
        ...VALID,
        deprecations: [
          {
            package: 'op',
            place,
            entries: [
              { reference: { schema: 'olm.package' }, message: '' },
              { reference: { schema: 'olm.channel', name: 'stable' }, message: '' },
              { reference: { schema: 'olm.channel', name: 'old' }, message: '' },
              { reference: { schema: 'olm.bundle', name: 'op.v0.1.0' }, message: '' },
            ],
          },
        ],
      },
      [
        'package "op" channel "old" is deprecated, but is not in the catalog',
        'package "op" bundle "op.v0.1.0" is deprecated, but is not in the catalog',
      ],
    ],
  ])('with %s is not valid', (_, catalog, violations) => {
    expect(checkCatalog(catalog)).toEqual(violations);
  });
});
