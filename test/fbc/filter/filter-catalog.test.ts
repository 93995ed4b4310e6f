import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import type { Catalog } from '../../../src/fbc/catalog.ts';
import { filterCatalog } from '../../../src/fbc/filter/filter-catalog.ts';
import type { PackageSelection } from '../../../src/fbc/source.ts';
import {
  EMPTY,
  joinCatalogs,
  listEntries,
  makeChain,
  makePackage,
} from '../../support/catalog-builder.ts';

type Selected = Partial<PackageSelection> & { readonly full?: boolean };

function filterPackage(catalog: Catalog, { full = false, ...selected }: Selected = {}) {
  return filterCatalog(catalog, { packages: [{ name: 'op', channels: [], ...selected }], full });
}

function readError(act: () => unknown): ConfigError {
  try {
    act();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const CHAIN = makePackage('op', {
  channels: { stable: makeChain('1.3.0', '1.2.0', '1.1.0', '1.0.0') },
});
const TWO = makePackage('op', {
  channels: { stable: makeChain('2.1.0', '2.0.0'), old: makeChain('1.1.0', '1.0.0') },
});
const other = { name: 'other', channels: [] };

describe('a selection without packages', () => {
  test('keeps the heads of all channels of all packages unchanged', () => {
    const catalog = joinCatalogs(
      makePackage('zebra', { channels: { z: makeChain('3.0.0', '2.0.0') }, defaultChannel: '' }),
      TWO,
    );
    const { catalog: kept, isWhole } = filterCatalog(catalog, { packages: [], full: false });
    expect(listEntries(kept)).toEqual({
      z: ['op.v3.0.0'],
      stable: ['op.v2.1.0'],
      old: ['op.v1.1.0'],
    });
    expect(kept.channels[1]?.entries).toEqual([{ name: 'op.v2.1.0', replaces: 'op.v2.0.0' }]);
    expect(kept.packages.map(({ name }) => name)).toEqual(['op', 'zebra']);
    expect(kept.bundles.map(({ name }) => name)).toEqual(['op.v1.1.0', 'op.v2.1.0', 'op.v3.0.0']);
    expect(isWhole).toBe(false);
  });

  test('keeps the whole catalog in full mode', () => {
    const result = filterCatalog(TWO, { packages: [], full: true });
    expect(result).toMatchObject({ isWhole: true, warnings: [] });
    expect(result.catalog.bundles).toHaveLength(TWO.bundles.length);
  });

  test('reports a catalog that has only heads as whole', () => {
    const heads = makePackage('op', { channels: { stable: makeChain('1.0.0') } });
    expect(filterCatalog(heads, { packages: [], full: false }).isWhole).toBe(true);
  });
});

describe('the selection of a package', () => {
  test('keeps the heads of its channels, and no other packages', () => {
    const catalog = joinCatalogs(
      TWO,
      makePackage('other', { channels: { a: makeChain('1.0.0') } }),
    );
    const { catalog: kept } = filterPackage(catalog);
    expect(listEntries(kept)).toEqual({ stable: ['op.v2.1.0'], old: ['op.v1.1.0'] });
    expect(kept.packages).toEqual(TWO.packages);
  });

  test('keeps only the channels that are listed', () => {
    const { catalog: kept } = filterPackage(TWO, { channels: [{ name: 'stable' }] });
    expect(listEntries(kept)).toEqual({ stable: ['op.v2.1.0'] });
  });

  test('keeps every entry in full mode', () => {
    const { catalog: kept } = filterPackage(TWO, { channels: [{ name: 'stable' }], full: true });
    expect(kept.channels).toEqual(TWO.channels.slice(0, 1));
    expect(kept.bundles).toHaveLength(2);
  });

  test('keeps documents of other schemas, even without a package', () => {
    const [{ place }] = CHAIN.packages as [Catalog['packages'][0]];
    const others = [
      { schema: 'x', place },
      { schema: 'x', package: '', place },
      { schema: 'x', package: 'op', place },
      { schema: 'x', package: 'gone', place },
    ];
    expect(filterPackage({ ...CHAIN, others }).catalog.others).toEqual(others.slice(0, 3));
  });

  test('drops deprecations of removed parts, and keeps an empty list', () => {
    const [{ place }] = CHAIN.packages as [Catalog['packages'][0]];
    const entry = (kind: string, name?: string) => ({
      reference: { schema: `olm.${kind}`, ...(name === undefined ? {} : { name }) },
      message: 'old',
    });
    const kept = [entry('package'), entry('channel', 'stable'), entry('bundle', 'op.v2.1.0')];
    const lost = [entry('channel', 'old'), entry('bundle', 'op.v2.0.0')];
    const deprecations = [
      { package: 'op', entries: [...lost, ...kept], place },
      { package: 'op', entries: lost, place },
      { package: 'gone', entries: kept, place },
    ];
    const { catalog } = filterPackage({ ...TWO, deprecations }, { channels: [{ name: 'stable' }] });
    expect(catalog.deprecations).toEqual([
      { package: 'op', entries: kept, place },
      { package: 'op', entries: [], place },
    ]);
  });
});

describe('a range of versions', () => {
  test.each<readonly [Selected, readonly string[]]>([
    [{ minVersion: '1.1.0', maxVersion: '1.2.0' }, ['op.v1.2.0', 'op.v1.1.0']],
    [{ minVersion: '1.2.0' }, ['op.v1.3.0', 'op.v1.2.0']],
    [{ maxVersion: '1.0.5' }, ['op.v1.0.0']],
    [{ maxVersion: '1.1' }, ['op.v1.1.0', 'op.v1.0.0']],
    [
      { minVersion: '0.0.1', maxVersion: '9.0.0' },
      ['op.v1.3.0', 'op.v1.2.0', 'op.v1.1.0', 'op.v1.0.0'],
    ],
    [{ minVersion: '1.1.0', maxVersion: '1.1.0' }, ['op.v1.1.0']],
    [{ minVersion: '1.1.0', maxVersion: '1.1.0+9' }, ['op.v1.1.0']],
  ])('%j of a package keeps %j', (bounds, names) => {
    expect(listEntries(filterPackage(CHAIN, bounds).catalog)).toEqual({ stable: names });
  });

  test('may be given for one channel', () => {
    const channels = [{ name: 'stable' }, { name: 'old', maxVersion: '1.0.0' }];
    expect(listEntries(filterPackage(TWO, { channels }).catalog)).toEqual({
      stable: ['op.v2.1.0'],
      old: ['op.v1.0.0'],
    });
  });

  test('keeps skipped bundles only if they are in range', () => {
    const catalog = makePackage('op', {
      channels: {
        stable: [
          { name: 'op.v1.3.0', replaces: 'op.v1.0.0', skips: ['op.v1.2.0', 'op.v1.1.0'] },
          { name: 'op.v1.2.0' },
          { name: 'op.v1.1.0' },
          { name: 'op.v1.0.0' },
        ],
      },
    });
    const { catalog: kept } = filterPackage(catalog, { minVersion: '1.2.0' });
    expect(listEntries(kept)).toEqual({ stable: ['op.v1.3.0', 'op.v1.2.0'] });
  });

  test('with only a skipped bundle in it keeps the head that skips it', () => {
    const catalog = makePackage('op', {
      channels: { stable: [{ name: 'op.v1.3.0', skips: ['op.v1.2.0'] }, { name: 'op.v1.2.0' }] },
    });
    const { catalog: kept, warnings } = filterPackage(catalog, { maxVersion: '1.2.9' });
    expect(listEntries(kept)).toEqual({ stable: ['op.v1.3.0', 'op.v1.2.0'] });
    expect(warnings).toEqual([
      'package "op" channel "stable": including bundle "op.v1.3.0" with version "1.3.0": it falls outside the specified range of " <=1.2.9" but is required to ensure inclusion of all bundles in the range',
    ]);
  });

  test('counts a bundle once, at the lowest entry that mentions it', () => {
    const catalog = makePackage('op', {
      channels: {
        stable: [
          { name: 'op.v3.0.0', replaces: 'op.v2.0.0', skips: ['op.v1.5.0'] },
          { name: 'op.v2.0.0', skips: ['op.v1.5.0'] },
          { name: 'op.v1.5.0' },
        ],
      },
    });
    const { catalog: kept } = filterPackage(catalog, { maxVersion: '1.9.0' });
    expect(listEntries(kept)).toEqual({ stable: ['op.v2.0.0', 'op.v1.5.0'] });
  });

  test('keeps all entries between, in range or not, with or without a bundle', () => {
    const catalog = makePackage('op', {
      channels: { stable: makeChain('1.3.0', '7.0.0', '1.1.5', '1.1.0', '1.0.0') },
      missing: ['op.v1.1.5'],
    });
    const { catalog: kept, warnings } = filterPackage(catalog, {
      minVersion: '1.1.0',
      maxVersion: '1.4.0',
    });
    expect(listEntries(kept)).toEqual({
      stable: ['op.v1.3.0', 'op.v7.0.0', 'op.v1.1.5', 'op.v1.1.0'],
    });
    expect(warnings).toEqual([
      'package "op" channel "stable": including bundle "op.v7.0.0" with version "7.0.0": it falls outside the specified range of ">=1.1.0 <=1.4.0" but is required to ensure inclusion of all bundles in the range',
      'package "op" channel "stable": including bundle "op.v1.1.5": it is unversioned but is required to ensure inclusion of all bundles in the range',
      'package "op" channel "stable": entry "op.v1.1.5" has no bundle, as in the source',
    ]);
  });

  test('includes prereleases only if a bound is one', () => {
    const catalog = makePackage('op', { channels: { stable: makeChain('1.47.1-5', '1.34.1-5') } });
    expect(readError(() => filterPackage(catalog, { minVersion: '1.34.1' })).message).toBe(
      'package "op" channel "stable" has version range ">=1.34.1" that results in an empty channel',
    );
    const { catalog: kept } = filterPackage(catalog, { minVersion: '1.34.1-5' });
    expect(listEntries(kept)).toEqual({ stable: ['op.v1.47.1-5', 'op.v1.34.1-5'] });
  });

  test.each<Selected>([
    { minVersion: '4.17.0' },
    { minVersion: '4.17' },
    { minVersion: '4.17.0', maxVersion: '4.17.0' },
    { maxVersion: '4.18.0' },
  ])('such as %j that excludes the pre-releases is refused with a hint that works', (bounds) => {
    const chain = makeChain('4.17.0-202502', '4.17.0-202501', '4.16.0-202412', '4.16.0-202411');
    const catalog = makePackage('op', { channels: { stable: chain } });
    const { hint = '' } = readError(() => filterPackage(catalog, bounds));
    expect(hint).toContain('the nearest versions are');
    expect(hint).toContain('4.17.0-202501, 4.17.0-202502');
    const advised = [...hint.matchAll(/(minVersion|maxVersion): ([^\s,]+)/g)];
    const kept = filterPackage(catalog, {
      ...bounds,
      ...Object.fromEntries(advised.map(([, key = '', version = '']) => [key, version])),
    }).catalog;
    expect(listEntries(kept)['stable']).toContain('op.v4.17.0-202502');
    if (bounds.minVersion === '4.17.0') expect(hint).toContain('minVersion: 4.17.0-0');
  });

  test('leaves out channels that it empties, with a warning', () => {
    const { catalog: kept, warnings } = filterPackage(TWO, { minVersion: '2.0.0' });
    expect(listEntries(kept)).toEqual({ stable: ['op.v2.1.0', 'op.v2.0.0'] });
    expect(warnings).toEqual([
      'package "op" channel "old" has nothing in version range ">=2.0.0" and is left out',
    ]);
  });

  test('includes a skipped bundle of another channel, whose own entry is kept there', () => {
    const catalog = makePackage('op', {
      channels: {
        new: [{ name: 'op.v2.0.0', skips: ['op.v1.0.0'] }],
        old: makeChain('1.0.0'),
      },
    });
    const { catalog: kept } = filterPackage(catalog, { maxVersion: '1.5.0' });
    expect(listEntries(kept)).toEqual({ new: ['op.v2.0.0'], old: ['op.v1.0.0'] });
  });

  test('reaches down to a replaced bundle of another channel', () => {
    const catalog = makePackage('op', {
      channels: {
        new: [
          { name: 'op.v1.3.0', replaces: 'op.v7.0.0' },
          { name: 'op.v7.0.0', replaces: 'op.v1.0.0' },
        ],
        old: makeChain('1.0.0'),
      },
    });
    const { catalog: kept } = filterPackage(catalog, { maxVersion: '1.5.0' });
    expect(listEntries(kept)).toEqual({ new: ['op.v1.3.0', 'op.v7.0.0'], old: ['op.v1.0.0'] });
  });

  test('keeps only bundles of the channels that it keeps', () => {
    const catalog = makePackage('op', {
      channels: {
        new: [{ name: 'op.v2.0.0', replaces: 'op.v1.0.0' }],
        old: makeChain('1.0.0'),
      },
    });
    const { catalog: kept } = filterPackage(catalog, {
      channels: [{ name: 'new', minVersion: '1.0.0' }],
    });
    expect(kept.bundles.map(({ name }) => name)).toEqual(['op.v2.0.0']);
  });
});

describe('a selection of one version', () => {
  const rebuilt = makePackage('op', {
    channels: {
      stable: [
        { name: 'op.v1.0.0-2.p', replaces: 'op.v1.0.0' },
        { name: 'op.v1.0.0' },
        { name: 'op.v1.0.0-10.p' },
      ],
      other: makeChain('3.0.0'),
    },
    versions: { 'op.v1.0.0-2.p': '1.0.0+0.2.p', 'op.v1.0.0-10.p': '1.0.0+0.10.p' },
  });

  test('keeps the latest rebuild, and does not need a single head', () => {
    const { catalog: kept, warnings } = filterPackage(rebuilt, {
      minVersion: '1.0.0',
      maxVersion: '1.0.0',
    });
    expect(listEntries(kept)).toEqual({ stable: ['op.v1.0.0-10.p'] });
    expect(warnings).toEqual([
      'package "op" channel "stable": version 1.0.0 is shared by "op.v1.0.0-10.p", "op.v1.0.0-2.p", "op.v1.0.0"; "op.v1.0.0-10.p" is selected',
      'package "op" channel "other" has nothing in version range ">=1.0.0 <=1.0.0" and is left out',
    ]);
  });

  test('with its build keeps that build', () => {
    const bounds = { minVersion: '1.0.0+0.2.p', maxVersion: '1.0.0+0.2.p' };
    const { catalog: kept, warnings } = filterPackage(rebuilt, bounds);
    expect(listEntries(kept)).toEqual({ stable: ['op.v1.0.0-2.p'] });
    expect(warnings).toHaveLength(1);
  });

  const one = (version: string): Selected => ({ minVersion: version, maxVersion: version });

  test('that no bundle has is refused', () => {
    const bounds = { minVersion: '1.5.0', maxVersion: '1.5.0' };
    expect(readError(() => filterPackage(CHAIN, bounds)).message).toBe(
      'package "op": error finding specific bundle: specific version 1.5.0 not found in bundles',
    );
  });

  test('that only one channel has makes that channel the default, with a warning', () => {
    const { catalog: kept, warnings } = filterPackage(TWO, one('1.1.0'));
    expect(listEntries(kept)).toEqual({ old: ['op.v1.1.0'] });
    expect(kept.packages.map(({ defaultChannel }) => defaultChannel)).toEqual(['old']);
    expect(warnings).toEqual([
      'package "op": version 1.1.0 is only in channel "old", which becomes the default channel instead of "stable"',
      'package "op" channel "stable" has nothing in version range ">=1.1.0 <=1.1.0" and is left out',
    ]);
  });

  test('that only two other channels than the default have is refused, and the hint to choose one works', () => {
    const older = { fast: makeChain('1.1.0'), old: makeChain('1.1.0', '1.0.0') };
    const three = makePackage('op', { channels: { stable: makeChain('2.0.0'), ...older } });
    const error = readError(() => filterPackage(three, one('1.1.0')));
    expect(error.message).toBe(
      'package "op": version 1.1.0 is in channels "fast", "old", but not in the default channel "stable"',
    );
    expect(error.hint).toBe('set defaultChannel of package "op" to one of: fast, old');
    const chosen = filterPackage(three, { ...one('1.1.0'), defaultChannel: 'fast' }).catalog;
    expect(listEntries(chosen)).toEqual({ fast: ['op.v1.1.0'], old: ['op.v1.1.0'] });
    const listed = filterPackage(three, { ...one('1.1.0'), channels: [{ name: 'old' }] }).catalog;
    expect(listEntries(listed)).toEqual({ old: ['op.v1.1.0'] });
  });
});

describe('minBundle', () => {
  test('keeps the bundle and all that upgrades from it to the head of its channel', () => {
    const minBundle = 'op.v1.1.0';
    const kept = { stable: ['op.v1.3.0', 'op.v1.2.0', minBundle] };
    const { catalog, warnings } = filterPackage(CHAIN, {
      channels: [{ name: 'stable', minBundle }],
    });
    expect(listEntries(catalog)).toEqual(kept);
    expect(warnings).toEqual([]);
    expect(listEntries(filterPackage(CHAIN, { minBundle }).catalog)).toEqual(kept);
  });

  test('keeps a bundle that is only skipped, and nothing else that its heirs supersede', () => {
    const catalog = makePackage('op', {
      channels: {
        stable: [
          { name: 'op.v1.3.0', replaces: 'op.v1.0.0', skips: ['op.v1.2.0', 'op.v1.1.0'] },
          { name: 'op.v1.2.0', skips: ['op.v1.1.0'] },
          { name: 'op.v1.1.0' },
          { name: 'op.v1.0.0' },
        ],
      },
    });
    const keptFrom = (minBundle: string) =>
      listEntries(filterPackage(catalog, { minBundle }).catalog);
    expect(keptFrom('op.v1.1.0')).toEqual({ stable: ['op.v1.3.0', 'op.v1.2.0', 'op.v1.1.0'] });
    expect(keptFrom('op.v1.0.0')).toEqual({ stable: ['op.v1.3.0', 'op.v1.0.0'] });
  });

  test('works for packages with bundles that have no version', () => {
    const catalog = makePackage('op', {
      channels: { stable: makeChain('1.2.0', '1.1.0', '1.0.0') },
      versions: { 'op.v1.0.0': null },
    });
    const channels = [{ name: 'stable', minBundle: 'op.v1.1.0' }];
    expect(listEntries(filterPackage(catalog, { channels }).catalog)).toEqual({
      stable: ['op.v1.2.0', 'op.v1.1.0'],
    });
    const unversioned = filterPackage(catalog, { minBundle: 'op.v1.0.0' });
    expect(unversioned.isWhole).toBe(true);
    expect(unversioned.warnings).toEqual([
      'bundle "op.v1.0.0" in package "op" has no package property, as in the source',
    ]);
  });

  test('of a package leaves out the channels that do not have the bundle', () => {
    const { catalog, warnings } = filterPackage(TWO, { minBundle: 'op.v1.0.0' });
    expect(listEntries(catalog)).toEqual({ old: ['op.v1.1.0', 'op.v1.0.0'] });
    expect(catalog.packages[0]?.defaultChannel).toBe('old');
    expect(warnings).toEqual([
      'package "op" channel "stable" has no bundle "op.v1.0.0" and is left out',
      'package "op": its default channel "stable" is filtered out, so "old", the only channel selected, becomes the default',
    ]);
  });
});

describe('the default channel', () => {
  const three = makePackage('op', {
    channels: { a: makeChain('1.0.0'), b: makeChain('2.0.0'), c: makeChain('3.0.0') },
  });

  test('is the one that the selection names', () => {
    const { catalog: kept, isWhole } = filterPackage(three, { defaultChannel: 'c' });
    expect(kept.packages[0]?.defaultChannel).toBe('c');
    expect(isWhole).toBe(false);
  });

  test('must be a selected channel', () => {
    const error = readError(() =>
      filterPackage(three, { defaultChannel: 'a', channels: [{ name: 'b' }] }),
    );
    expect(error.message).toBe(
      'invalid default channel configuration for package "op": specified default channel override "a" does not exist in the filtered output',
    );
    expect(error.hint).toBe('set defaultChannel of package "op" to one of: b');
  });

  test('must be replaced by the selection if it is filtered out and several channels are kept', () => {
    const channels = [{ name: 'b' }, { name: 'c' }];
    const error = readError(() => filterPackage(three, { channels }));
    expect(error.message).toBe(
      'invalid default channel configuration for package "op": the default channel "a" was filtered out, a new default channel must be configured for this package',
    );
    expect(error.hint).toBe('set defaultChannel of package "op" to one of: b, c');
  });

  test('becomes the only channel that is kept', () => {
    const { catalog: kept, warnings } = filterPackage(three, { channels: [{ name: 'b' }] });
    expect(kept.packages[0]?.defaultChannel).toBe('b');
    expect(warnings).toEqual([
      'package "op": its default channel "a" is filtered out, so "b", the only channel selected, becomes the default',
    ]);
  });

  test('may be missing in the catalog and in the selection', () => {
    const catalog = makePackage('op', {
      channels: { a: makeChain('1.0.0') },
      defaultChannel: undefined,
    });
    const { catalog: kept, warnings } = filterPackage(catalog);
    expect(kept.packages).toEqual(catalog.packages);
    expect(warnings).toEqual(['package "op" has no default channel, as in the source']);
    expect(readError(() => filterPackage(catalog, { minVersion: '2.0.0' })).message).toBe(
      'package "op": its version range leaves no channel',
    );
  });
});

describe('a selection is refused', () => {
  test.each<readonly [string, Selected, string]>([
    [
      'with a range of the package and of a channel',
      { minVersion: '1.0.0', channels: [{ name: 'stable', maxVersion: '1.2.0' }] },
      'package "op" has version range ">=1.0.0" and its channel "stable" has " <=1.2.0": only one of them may have a range',
    ],
    [
      'with a range and in full',
      { minVersion: '1.0.0', full: true },
      'package "op": Full: true cannot be mixed with versionRange',
    ],
    [
      'with a range of a channel and in full',
      { channels: [{ name: 'stable', maxVersion: '1.0.0' }], full: true },
      'package "op" channel "stable": Full: true cannot be mixed with versionRange',
    ],
    [
      'with a bundle to start from and in full',
      { minBundle: 'op.v1.0.0', full: true },
      'package "op": Full: true cannot be mixed with versionRange',
    ],
    [
      'with a bundle to start from and a version',
      { minBundle: 'op.v1.0.0', maxVersion: '1.2.0' },
      'package "op": minBundle cannot be combined with minVersion or maxVersion',
    ],
    [
      'with a bundle to start from at the package and at a channel',
      { minBundle: 'op.v1.0.0', channels: [{ name: 'stable', minBundle: 'op.v1.1.0' }] },
      'package "op" has version range "from op.v1.0.0" and its channel "stable" has "from op.v1.1.0": only one of them may have a range',
    ],
    [
      'with a bundle to start from that is misspelt',
      { minBundle: 'op.1.0.0' },
      'package "op": bundle "op.1.0.0" is in no channel; did you mean "op.v1.0.0"?',
    ],
    [
      'with a bundle to start from that the channel does not have',
      { channels: [{ name: 'stable', minBundle: 'op.1.0.0' }] },
      'package "op" channel "stable" has no bundle "op.1.0.0"; did you mean "op.v1.0.0"?',
    ],
    [
      'with a bound that is not a valid version',
      { minVersion: 'latest' },
      'package "op": minVersion "latest" is not a semantic version',
    ],
    [
      'with the ends of its range in the wrong order',
      { minVersion: '1.2.0', maxVersion: '1.1.0' },
      'package "op" channel "stable" has version range ">=1.2.0 <=1.1.0" that results in an empty channel',
    ],
    [
      'with a channel that is misspelt',
      { channels: [{ name: 'stabel' }] },
      'package "op" has no channel "stabel"; did you mean "stable"?',
    ],
    [
      'with a channel that is like none',
      { channels: [{ name: 'fast' }] },
      'package "op" has no channel "fast"; it has "stable"',
    ],
    [
      'with a channel twice',
      { channels: [{ name: 'stable' }, { name: 'stable' }] },
      'package "op": channel "stable" is selected twice',
    ],
    [
      'with a package that is misspelt',
      { name: 'ops' },
      'package "ops" is not in the catalog; did you mean "op"?',
    ],
    [
      'with a package that is like none',
      { name: 'abcdef' },
      'package "abcdef" is not in the catalog',
    ],
  ])('%s', (_, selected, message) => {
    expect(readError(() => filterPackage(CHAIN, selected))).toMatchObject({
      code: 'catalog.selection',
      message,
    });
  });

  test('with all problems, one a line, and the name of the catalog', () => {
    const broken = makePackage('other', {
      channels: { a: [...makeChain('1.0.0'), { name: 'op.v1.1.0' }], b: [] },
    });
    const packages = [
      { name: 'op', channels: [{ name: 'x' }], minVersion: 'y' },
      other,
      { name: 'opp', channels: [] },
      other,
    ];
    const error = readError(() =>
      filterCatalog(
        joinCatalogs(CHAIN, broken),
        { packages, full: false },
        { name: 'quay.example/c:v1' },
      ),
    );
    expect(error.message.split('\n')).toEqual(
      [
        'package "other" is selected twice',
        'package "opp" is not in the catalog; did you mean "op"?',
        'package "op": minVersion "y" is not a semantic version',
        'package "op" has no channel "x"; it has "stable"',
        'package "other" channel "a": multiple channel heads found: [op.v1.0.0 op.v1.1.0]',
        'package "other" channel "b": channel has no entries',
      ].map((line) => `catalog "quay.example/c:v1": ${line}`),
    );
  });

  test('if a bundle of the package has no version, even one that would not be kept', () => {
    const versions = { 'op.v1.0.0': null, 'op.v1.1.0': '1.1' };
    const catalog = makePackage('op', {
      channels: { stable: makeChain('1.2.0', '1.1.0', '1.0.0') },
      versions,
    });
    expect(readError(() => filterPackage(catalog)).message.split('\n')).toEqual([
      'bundle "op.v1.1.0" in package "op" has version "1.1", which is not a semantic version',
      'bundle "op.v1.0.0" in package "op" has no package property',
    ]);
    const both = joinCatalogs(
      catalog,
      makePackage('other', { channels: { a: makeChain('1.0.0') } }),
    );
    expect(filterCatalog(both, { packages: [other], full: false }).warnings).toEqual([]);
  });
});

describe('a bundle that is skipped by name', () => {
  const skip = (catalog: Catalog, ...skipBundles: readonly string[]) =>
    filterPackage(catalog, { skipBundles, full: true });

  test('is skipped by what replaced it, which replaces what it replaced', () => {
    const { catalog: kept, warnings } = skip(CHAIN, 'op.v1.2.0');
    expect(kept.channels[0]?.entries[0]).toEqual({
      name: 'op.v1.3.0',
      replaces: 'op.v1.1.0',
      skips: ['op.v1.2.0'],
    });
    expect(kept.bundles.map(({ name }) => name)).not.toContain('op.v1.2.0');
    expect(warnings).toEqual([
      'package "op" channel "stable": bundle "op.v1.2.0" is left out, and "op.v1.3.0" skips it',
    ]);
  });

  test('leaves the head to the highest version that it superseded', () => {
    const entries = [
      { name: 'op.v2.0.0', replaces: 'op.v1.0.0', skips: ['op.v1.9.0', 'op.v1.10.0'] },
      ...['op.v1.0.0', 'op.v1.9.0', 'op.v1.10.0'].map((name) => ({ name })),
    ];
    const { catalog: kept, warnings } = skip(
      makePackage('op', { channels: { stable: entries } }),
      'op.v2.0.0',
    );
    expect(kept.channels[0]?.entries).toEqual([
      ...[{ name: 'op.v1.0.0' }, { name: 'op.v1.9.0' }],
      { name: 'op.v1.10.0', skips: ['op.v1.0.0', 'op.v1.9.0'] },
    ]);
    expect(warnings.join()).toContain('"op.v1.10.0" becomes the head');
  });

  test('must be in the package', () => {
    expect(readError(() => skip(CHAIN, 'op.v1.22.0')).message).toBe(
      'package "op" has no bundle "op.v1.22.0" to skip; did you mean "op.v1.2.0"?',
    );
  });
});

describe('a fault of the source', () => {
  test('is a warning if the selection keeps it', () => {
    const catalog = makePackage('op', {
      channels: { stable: [...makeChain('1.1.0'), { name: 'op.v1.0.0' }] },
    });
    expect(filterPackage(catalog, { full: true }).warnings).toEqual([
      'package "op" channel "stable": multiple channel heads found: [op.v1.0.0 op.v1.1.0], as in the source',
    ]);
  });

  test('is not found in an empty catalog', () => {
    expect(filterCatalog(EMPTY, { packages: [], full: false })).toMatchObject({
      catalog: EMPTY,
      warnings: [],
      isWhole: true,
    });
  });
});
