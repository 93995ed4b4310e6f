import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Catalog } from '../../src/fbc/catalog.ts';
import { findHead } from '../../src/fbc/channel-graph.ts';
import { checkCatalog } from '../../src/fbc/filter/check-catalog.ts';
import { filterCatalog } from '../../src/fbc/filter/filter-catalog.ts';
import { readCatalog } from '../../src/fbc/read/read-catalog.ts';
import type { PackageSelection } from '../../src/fbc/source.ts';
import { joinCatalogs, listEntries, makePackage } from '../support/catalog-builder.ts';

const REAL = '../shared/data/fbc';

function select(catalog: Catalog, selected: Partial<PackageSelection> & { readonly name: string }) {
  return filterCatalog(catalog, { packages: [{ channels: [], ...selected }], full: false });
}

describe.skipIf(!existsSync(REAL))('a catalog that Red Hat publishes', () => {
  test('is valid before and after filtering, which leaves the heads', async () => {
    const catalog = await readCatalog(REAL);
    expect(checkCatalog(catalog)).toEqual([]);
    const { catalog: kept } = filterCatalog(catalog, { packages: [], full: false });
    expect(kept.channels.map(({ entries }) => entries.map(({ name }) => name))).toEqual(
      catalog.channels.map((channel) => [findHead(channel)]),
    );
    expect(filterCatalog(kept, { packages: [], full: false }).isWhole).toBe(true);
  });

  test('has prereleases that only a prerelease as bound selects', async () => {
    const catalog = await readCatalog(REAL);
    expect(() => select(catalog, { name: 'jaeger-product', minVersion: '1.47.0' })).toThrow(
      'has version range ">=1.47.0" that results in an empty channel',
    );
    const { catalog: kept } = select(catalog, { name: 'jaeger-product', minVersion: '1.47.0-0' });
    expect(kept.bundles.map(({ version }) => version)).toContain('1.47.1-5');
    expect(kept.bundles.length).toBeLessThan(
      catalog.bundles.filter((bundle) => bundle.package === 'jaeger-product').length,
    );
  });

  test('can be cut to any of its versions, alone and up to the head', async () => {
    const catalog = await readCatalog(REAL);
    const name = 'kubevirt-hyperconverged';
    const stable = catalog.channels.find((item) => item.package === name && item.name === 'stable');
    const names = new Set(stable?.entries.map((entry) => entry.name));
    for (const { version = '' } of catalog.bundles.filter((bundle) => names.has(bundle.name))) {
      const channels = [{ name: 'stable', minVersion: version, maxVersion: version }];
      expect(select(catalog, { name, channels }).catalog.bundles).toHaveLength(1);
      const upward = select(catalog, { name, channels: [{ name: 'stable', minVersion: version }] });
      expect(checkCatalog(upward.catalog)).toEqual([]);
      expect(upward.catalog.bundles.map((bundle) => bundle.version)).toContain(version);
      expect(upward.catalog.channels.map(findHead)).toEqual([stable && findHead(stable)]);
    }
  });
});

describe('a dense upgrade graph', () => {
  /** The shape of the community's assisted-service operator, which once took all memory. */
  const versions = Array.from({ length: 93 }, (_, index) => `0.0.${index}`);
  const entries = versions.map((version, index) => ({
    name: `op.v${version}`,
    ...(index === 0 ? {} : { replaces: `op.v${versions[index - 1] ?? ''}` }),
    skips: versions.slice(0, index).map((lower) => `op.v${lower}`),
  }));
  const names = Array.from({ length: 11 }, (_, index) => `channel-${index}`);
  const dense = makePackage('op', {
    channels: Object.fromEntries(names.map((name) => [name, entries])),
  });

  test('of 93 entries in each of 11 channels is filtered within seconds', () => {
    const { catalog: kept } = select(dense, {
      name: 'op',
      minVersion: '0.0.10',
      maxVersion: '0.0.19',
    });
    expect(listEntries(kept)['channel-7']).toEqual(
      versions.slice(10, 20).map((version) => `op.v${version}`),
    );
  });

  test('in many packages is filtered in linear time', () => {
    const many = joinCatalogs(
      ...Array.from({ length: 20 }, (_, index) =>
        makePackage(`op-${index}`, { channels: { stable: entries } }),
      ),
    );
    const { catalog: kept } = filterCatalog(many, { packages: [], full: false });
    expect(kept.bundles).toHaveLength(20);
  });
});
