import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/base/errors.ts';
import type { Catalog, ChannelEntry } from '../../src/fbc/catalog.ts';
import { findHead, planChannelGraph } from '../../src/fbc/channel-graph.ts';
import { checkCatalog } from '../../src/fbc/filter/check-catalog.ts';
import { filterCatalog } from '../../src/fbc/filter/filter-catalog.ts';
import type { CatalogSelection } from '../../src/fbc/source.ts';
import { joinCatalogs, listEntries, makePackage } from '../support/catalog-builder.ts';
import { runs } from '../support/properties.ts';

/**
 * A chain whose entries skip any that are lower, and others that only the chain skips. Versions fall
 * along the chain, but for some, as in real catalogs.
 */
const channel: fc.Arbitrary<readonly ChannelEntry[]> = fc
  .array(
    fc.record({
      minor: fc.nat(6),
      skipped: fc.array(fc.nat(6), { maxLength: 3 }),
      skipsLower: fc.boolean(),
      skipsGone: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .chain((links) =>
    fc.boolean().map((sorted) => (sorted ? links.toSorted((a, b) => b.minor - a.minor) : links)),
  )
  .map((links) => {
    const name = (index: number): string => `op.v1.${links[index]?.minor ?? 0}.${99 - index}`;
    const asides = links.map(({ skipped }, index) =>
      [...new Set(skipped)].map((minor) => `op.v1.${minor}.${20 + index}`),
    );
    const chain = links.map(({ skipsLower, skipsGone }, index) => {
      const isLast = index === links.length - 1;
      return {
        name: name(index),
        ...(isLast ? (skipsGone ? { replaces: 'op.v0.0.1' } : {}) : { replaces: name(index + 1) }),
        skips: [
          ...asides.slice(index).flat(),
          ...(skipsLower ? links.map((_, lower) => name(lower)).slice(index + 1) : []),
          ...(skipsGone ? ['op.v0.0.2'] : []),
        ],
      };
    });
    return [...asides.flat().map((aside) => ({ name: aside })), ...chain];
  });

const catalogs: fc.Arbitrary<Catalog> = fc
  .tuple(channel, channel, channel)
  .map(([stable, fast, old]) => {
    const main = makePackage('op', { channels: { stable, fast, old } });
    const deprecations = main.channels.map(({ name, place, entries }) => ({
      package: 'op',
      place,
      entries: [
        { reference: { schema: 'olm.package' }, message: 'a' },
        { reference: { schema: 'olm.channel', name }, message: 'b' },
        ...entries.map((entry) => ({
          reference: { schema: 'olm.bundle', name: entry.name },
          message: 'c',
        })),
      ],
    }));
    return joinCatalogs(
      { ...main, deprecations },
      makePackage('extra', { channels: { stable: old } }),
    );
  });

const bound = fc.option(fc.tuple(fc.nat(7), fc.constantFrom(0, 50)), { nil: undefined });
const selections: fc.Arbitrary<CatalogSelection> = fc.oneof(
  fc.constant({ packages: [], full: false }),
  fc.constant({ packages: [], full: true }),
  fc.constant({ packages: [{ name: 'op', channels: [] }], full: true }),
  fc.record({
    full: fc.constant(false),
    packages: fc
      .record({
        min: bound,
        max: bound,
        names: fc.subarray(['stable', 'fast', 'old']),
      })
      .map(({ min, max, names }) => [
        {
          name: 'op',
          channels: names.map((name) => ({ name })),
          ...(names[0] === undefined ? {} : { defaultChannel: names[0] }),
          ...(min === undefined ? {} : { minVersion: `1.${min[0]}.${min[1]}` }),
          ...(max === undefined ? {} : { maxVersion: `1.${max[0]}.${max[1] + 1}` }),
        },
      ]),
  }),
);

/** Undefined where the selection is refused. */
function filter(catalog: Catalog, selection: CatalogSelection): Catalog | undefined {
  try {
    return filterCatalog(catalog, selection).catalog;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

describe('the filter', () => {
  test('keeps a valid catalog valid: heads, chains, bundles and deprecations', () => {
    fc.assert(
      fc.property(catalogs, selections, (catalog, selection) => {
        expect(checkCatalog(catalog)).toEqual([]);
        const kept = filter(catalog, selection);
        if (kept === undefined) return;
        expect(checkCatalog(kept)).toEqual([]);
        for (const item of kept.channels) {
          const { chain } = planChannelGraph(item);
          const reached = new Set(chain.flatMap(({ name, skips = [] }) => [name, ...skips]));
          expect(item.entries.filter(({ name }) => !reached.has(name))).toEqual([]);
        }
      }),
      { numRuns: runs(500) },
    );
  });

  test('removes entries but changes none, and keeps the order of the source', () => {
    fc.assert(
      fc.property(catalogs, selections, (catalog, selection) => {
        for (const kept of filter(catalog, selection)?.channels ?? []) {
          const source = catalog.channels.find(
            (item) => item.package === kept.package && item.name === kept.name,
          );
          const names = new Set(kept.entries.map(({ name }) => name));
          expect(kept.entries).toEqual(source?.entries.filter(({ name }) => names.has(name)));
        }
      }),
    );
  });

  test('changes nothing the second time', () => {
    fc.assert(
      fc.property(catalogs, selections, (catalog, selection) => {
        const once = filter(catalog, selection);
        if (once === undefined) return;
        const left = new Set(once.channels.map(({ name }) => name));
        const packages = selection.packages.map((item) => ({
          ...item,
          channels: item.channels.filter(({ name }) => left.has(name)),
        }));
        const twice = filterCatalog(once, { ...selection, packages });
        expect(twice.catalog).toEqual(once);
        expect(twice.isWhole).toBe(true);
      }),
      { numRuns: runs(500) },
    );
  });

  test('keeps exactly the heads without a range', () => {
    fc.assert(
      fc.property(catalogs, (catalog) => {
        const kept = filter(catalog, { packages: [{ name: 'op', channels: [] }], full: false });
        const heads = catalog.channels
          .filter((item) => item.package === 'op')
          .map((item) => [item.name, [findHead(item)]]);
        expect(kept && listEntries(kept)).toEqual(Object.fromEntries(heads));
      }),
    );
  });

  test('keeps no less for a wider range', () => {
    const ends = fc.array(fc.nat(7), { minLength: 4, maxLength: 4 }).map((all) => all.sort());
    fc.assert(
      fc.property(catalogs, ends, (catalog, [least = 0, low = 0, high = 0, most = 0]) => {
        const select = (from: number, to: number): Catalog | undefined =>
          filter(catalog, {
            packages: [
              { name: 'op', channels: [], minVersion: `1.${from}.0`, maxVersion: `1.${to}.99` },
            ],
            full: false,
          });
        const narrow = select(low, high);
        if (narrow === undefined) return;
        const wide = select(least, most);
        const names = new Set(wide?.bundles.map(({ name }) => name));
        expect(narrow.bundles.filter(({ name }) => !names.has(name))).toEqual([]);
        const channels = new Set(wide?.channels.map(({ name }) => name));
        expect(narrow.channels.filter(({ name }) => !channels.has(name))).toEqual([]);
      }),
      { numRuns: runs(500) },
    );
  });

  test('keeps all of a chain that a range accepts', () => {
    fc.assert(
      fc.property(catalogs, fc.nat(6), (catalog, minor) => {
        const range = { minVersion: `1.${minor}.0`, maxVersion: `1.${minor}.99` };
        const kept = filter(catalog, {
          packages: [{ name: 'op', channels: [], ...range }],
          full: false,
        });
        if (kept === undefined) return;
        const wanted = catalog.bundles
          .filter((item) => item.package === 'op' && item.name.startsWith(`op.v1.${minor}.`))
          .map(({ name }) => name);
        const names = new Set(kept.bundles.map(({ name }) => name));
        expect(wanted.filter((name) => !names.has(name))).toEqual([]);
      }),
    );
  });

  test('depends on nothing but its input', () => {
    fc.assert(
      fc.property(catalogs, selections, (catalog, selection) => {
        const before = structuredClone(catalog);
        expect(filter(catalog, selection)).toEqual(filter(structuredClone(catalog), selection));
        expect(catalog).toEqual(before);
      }),
    );
  });

  test('leaves every channel one graph with one head without any bundles skipped by name', () => {
    const picks = fc.array(fc.nat(40), { maxLength: 5 });
    fc.assert(
      fc.property(catalogs, picks, (catalog, indexes) => {
        const names = catalog.bundles
          .filter((bundle) => bundle.package === 'op')
          .map(({ name }) => name);
        const skipBundles = [...new Set(indexes.map((index) => names[index % names.length] ?? ''))];
        const kept = filter(catalog, {
          full: true,
          packages: [{ name: 'op', channels: [], skipBundles }],
        });
        if (kept === undefined) return; // the default channel has nothing left
        expect(checkCatalog(kept)).toEqual([]);
        const gone = new Set(skipBundles);
        const left = names.filter((name) => !gone.has(name)).sort();
        expect(kept.bundles.map(({ name }) => name)).toEqual(left);
      }),
      { numRuns: runs(500) },
    );
  });
});
