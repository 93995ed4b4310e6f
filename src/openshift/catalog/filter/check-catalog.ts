import type { Catalog, CatalogBundle, CatalogChannel, CatalogPackage } from '../catalog.ts';
import { parseBundleVersion } from './version/bundle-version.ts';
import { findGraphProblems } from './channel-graph.ts';
import { findRepeated, groupBy } from '../../../base/lists.ts';

/**
 * What keeps a catalog from being valid, by the rules of `opm validate` as far as we read documents:
 * packages, their channels and default channel, upgrade graphs, bundles and their versions, and what
 * deprecations refer to. A sentence each; empty when it is valid.
 */
export function checkCatalog(catalog: Catalog): readonly string[] {
  const channels = groupBy(catalog.channels, (channel) => channel.package);
  const bundles = groupBy(catalog.bundles, (bundle) => bundle.package);
  return [
    ...describeRepeated(catalog.packages.map(({ name }) => `package "${name}"`)),
    ...describeRepeated(catalog.channels.map((channel) => describe(channel, 'channel'))),
    ...describeRepeated(catalog.bundles.map((bundle) => describe(bundle, 'bundle'))),
    ...catalog.packages.flatMap((item) => checkPackage(item, channels.get(item.name) ?? [])),
    ...catalog.channels.flatMap((channel) => checkChannel(channel, bundles.get(channel.package))),
    ...catalog.bundles.flatMap(checkBundle),
    ...checkOwners(catalog),
    ...checkOrphans(catalog),
    ...checkDeprecations(catalog),
  ];
}

function describe(item: { readonly package: string; readonly name: string }, kind: string): string {
  return `package "${item.package}" ${kind} "${item.name}"`;
}

function describeRepeated(names: readonly string[]): readonly string[] {
  return findRepeated(names).map((name) => `${name} is described more than once`);
}

function checkPackage(item: CatalogPackage, channels: readonly CatalogChannel[]): string[] {
  const where = `package "${item.name}"`;
  if (channels.length === 0) return [`${where} has no channels`];
  if (item.defaultChannel === undefined || item.defaultChannel === '')
    return [`${where} has no default channel`];
  return channels.some(({ name }) => name === item.defaultChannel)
    ? []
    : [`${where} has no channel "${item.defaultChannel}", which is its default channel`];
}

function checkChannel(
  channel: CatalogChannel,
  bundles: readonly CatalogBundle[] = [],
): readonly string[] {
  const where = describe(channel, 'channel');
  const known = new Map(bundles.map((bundle) => [bundle.name, bundle.version]));
  const names = new Set(channel.entries.map(({ name }) => name));
  const versions = [...names]
    .map((name) => known.get(name))
    .filter((version) => version !== undefined);
  return [
    ...findGraphProblems(channel).map((problem) => `${where}: ${problem}`),
    ...[...names]
      .filter((name) => !known.has(name))
      .map((name) => `${where}: entry "${name}" has no bundle`),
    ...findRepeated(versions).map(
      (version) => `${where}: more than one bundle has version "${version}"`,
    ),
  ];
}

function checkBundle(bundle: CatalogBundle): readonly string[] {
  if (bundle.version === undefined)
    return [`bundle "${bundle.name}" in package "${bundle.package}" has no package property`];
  return parseBundleVersion(bundle.version) === undefined
    ? [
        `bundle "${bundle.name}" in package "${bundle.package}" has version "${bundle.version}", which is not a semantic version`,
      ]
    : [];
}

function checkOwners(catalog: Catalog): readonly string[] {
  const packages = new Set(catalog.packages.map(({ name }) => name));
  const strays = [
    ...catalog.channels.map((channel) => ({
      owner: channel.package,
      is: describe(channel, 'channel'),
    })),
    ...catalog.bundles.map((bundle) => ({ owner: bundle.package, is: describe(bundle, 'bundle') })),
  ].filter(({ owner }) => !packages.has(owner));
  return strays.map(({ is }) => `${is} belongs to a package that is not in the catalog`);
}

/** opm refuses the whole catalog for one bundle that no channel has. */
function checkOrphans(catalog: Catalog): readonly string[] {
  const entries = new Set(
    catalog.channels.flatMap((channel) =>
      channel.entries.map(({ name }) => describe({ package: channel.package, name }, 'bundle')),
    ),
  );
  return catalog.bundles
    .map((bundle) => describe(bundle, 'bundle'))
    .filter((bundle) => !entries.has(bundle))
    .map((bundle) => `${bundle} is in no channel`);
}

function checkDeprecations(catalog: Catalog): readonly string[] {
  const known = new Set([
    ...catalog.channels.map((channel) => describe(channel, 'channel')),
    ...catalog.bundles.map((bundle) => describe(bundle, 'bundle')),
  ]);
  return catalog.deprecations.flatMap((deprecations) =>
    deprecations.entries.flatMap(({ reference }) => {
      if (reference.schema === 'olm.package' || reference.name === undefined) return [];
      const kind = reference.schema.replace(/^olm\./, '');
      const target = describe({ package: deprecations.package, name: reference.name }, kind);
      return known.has(target) ? [] : [`${target} is deprecated, but is not in the catalog`];
    }),
  );
}
