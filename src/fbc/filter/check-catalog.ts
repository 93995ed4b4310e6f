import { createBudget, type DecodeBudget } from '../../base/decode/limits.ts';
import { ConfigError } from '../../base/errors.ts';
import { findRepeated, groupBy } from '../../base/lists.ts';
import { appendSuggestion } from '../../base/text/words.ts';
import { malformedCatalog } from '../../shape/go-json.ts';
import type {
  Catalog,
  CatalogBundle,
  CatalogChannel,
  CatalogPackage,
  MalformedDocument,
} from '../catalog.ts';
import { findGraphProblems, removeEntry, type RemovedEntry } from '../channel-graph.ts';
import type { CatalogSelection } from '../source.ts';
import { parseBundleVersion } from '../version.ts';
import type { FilterReport } from './report.ts';

/**
 * Reasons why a catalog is not valid, by the rules of `opm validate` as far as we read documents:
 * packages, their channels and default channel, upgrade graphs, bundles and their versions, and what
 * deprecations refer to. One sentence each; empty if it is valid.
 */
export function checkCatalog(catalog: Catalog): readonly string[] {
  const channels = groupBy(catalog.channels, (channel) => channel.package);
  const versions = indexVersions(catalog.bundles);
  return [
    ...describeRepeated(catalog.packages.map(({ name }) => `package "${name}"`)),
    ...describeRepeated(catalog.channels.map((channel) => describe(channel, 'channel'))),
    ...describeRepeated(catalog.bundles.map((bundle) => describe(bundle, 'bundle'))),
    ...catalog.packages.flatMap((item) => checkPackage(item, channels.get(item.name) ?? [])),
    ...catalog.channels.flatMap((channel) => checkChannel(channel, versions.get(channel.package))),
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

type Versions = ReadonlyMap<string, string | undefined>;

/** Versions by package and name, read once for all channels. */
const indexVersions = (bundles: readonly CatalogBundle[]): ReadonlyMap<string, Versions> =>
  new Map(
    [...groupBy(bundles, (bundle) => bundle.package)].map(([owner, own]) => [
      owner,
      new Map(own.map(({ name, version }) => [name, version])),
    ]),
  );

function checkChannel(channel: CatalogChannel, known: Versions = new Map()): readonly string[] {
  const where = describe(channel, 'channel');
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

/** Every bundle needs a version, also one that a filter drops. */
export function checkBundle({ name, package: owner, version }: CatalogBundle): readonly string[] {
  const bundle = `bundle "${name}" in package "${owner}"`;
  if (version === undefined) return [`${bundle} has no package property`];
  return parseBundleVersion(version) === undefined
    ? [`${bundle} has version "${version}", which is not a semantic version`]
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

/** opm refuses a whole catalog for one bundle that is in no channel. */
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

type LeaveOutOptions = {
  readonly selection: CatalogSelection;
  readonly report: FilterReport;
  /** The catalog's reference, for errors. */
  readonly name: string;
};

/** A catalog without the bundles that the selection skips, and without malformed documents. */
export function leaveOutBundles(catalog: Catalog, options: LeaveOutOptions): Catalog {
  const { selection, report, name } = options;
  const skipped = new Map(
    selection.packages.map(({ name, skipBundles = [] }) => [name, new Set(skipBundles)]),
  );
  refuseMalformed(catalog, skipped, options);
  checkSkipped(catalog, skipped, report);
  const left = new Map([...skipped].filter(([, names]) => names.size > 0));
  for (const [owner, documents] of groupBy(catalog.malformed, (one) => one.package)) {
    const names = left.get(owner) ?? new Set<string>();
    for (const { schema, name } of documents)
      if (schema === 'olm.bundle' && name !== undefined) names.add(name);
    left.set(owner, names);
    if (!skipped.has(owner)) report.addWarning(describeIgnored(owner, documents));
  }
  if (left.size === 0) return catalog;
  const versions = new Map(catalog.bundles.map(({ name, version }) => [name, version ?? '']));
  const effort = createRemovalBudget(name);
  const isLeft = (owner: string, name: string): boolean => left.get(owner)?.has(name) === true;
  return {
    ...catalog,
    channels: catalog.channels.flatMap((channel) => {
      const names = left.get(channel.package) ?? new Set<string>();
      const warn = skipped.has(channel.package) ? report.addWarning : () => undefined;
      return removeEntries(channel, names, { versions, warn, effort });
    }),
    bundles: catalog.bundles.filter((bundle) => !isLeft(bundle.package, bundle.name)),
    malformed: [],
  };
}

type Skipped = ReadonlyMap<string, ReadonlySet<string>>;

/** Refuses malformed documents of selected packages, except bundles that are skipped by name. */
function refuseMalformed(catalog: Catalog, skipped: Skipped, { name }: LeaveOutOptions): void {
  const refused = catalog.malformed.filter((document) => {
    if (skipped.size > 0 && !skipped.has(document.package)) return false;
    const isSkipped = skipped.get(document.package)?.has(document.name ?? '') === true;
    return !(document.schema === 'olm.bundle' && isSkipped);
  });
  if (refused.length === 0) return;
  throw malformedCatalog(
    name,
    refused.flatMap(({ problems }) => problems),
    adviseOn(refused, skipped.size > 0),
  );
}

function adviseOn(refused: readonly MalformedDocument[], hasPackages: boolean): string | undefined {
  if (!hasPackages)
    return 'name the packages that you need: malformed documents of other packages are then ignored';
  const [first, ...rest] = refused.filter(({ schema }) => schema === 'olm.bundle');
  if (first?.name === undefined) return undefined;
  const others = rest.length === 0 ? '' : ', and the others likewise';
  return `add ${JSON.stringify(first.name)} to skipBundles of package "${first.package}"${others}`;
}

function checkSkipped(catalog: Catalog, skipped: Skipped, report: FilterReport): void {
  const documents = [
    ...catalog.bundles,
    ...catalog.malformed.filter(({ schema }) => schema === 'olm.bundle'),
  ];
  const known = groupBy(documents, (bundle) => bundle.package);
  for (const [owner, names] of skipped) {
    const bundles = new Set(known.get(owner)?.map(({ name = '' }) => name));
    if (bundles.size === 0) continue; // the package itself is missing, which is reported elsewhere
    for (const name of names) {
      if (bundles.has(name)) continue;
      const guess = appendSuggestion(name, bundles);
      report.addProblem(`package "${owner}" has no bundle "${name}" to skip${guess}`);
    }
  }
}

function describeIgnored(owner: string, documents: readonly MalformedDocument[]): string {
  const [first] = documents.flatMap(({ problems }) => problems);
  const count = documents.length === 1 ? 'a document' : `${documents.length} documents`;
  return `package "${owner}" is not selected; ignored ${count} of it that cannot be read: ${first ?? ''}`;
}

/** Each bundle that is left out costs as much as its channel has entries and names that they skip. */
const createRemovalBudget = (name: string): DecodeBudget<'steps'> =>
  createBudget(
    { steps: 2_000_000 }, // about half a second
    () =>
      new ConfigError(
        'catalog.malformed',
        `catalog ${name} has too many bundles that are left out`,
        {
          hint: 'skip fewer bundles, or use a catalog with fewer malformed ones',
        },
      ),
  );

/** Removes entries from a channel; empty if no entry is left. */
function removeEntries(
  channel: CatalogChannel,
  names: ReadonlySet<string>,
  {
    versions,
    warn,
    effort,
  }: {
    readonly versions: ReadonlyMap<string, string>;
    readonly warn: (warning: string) => void;
    readonly effort: DecodeBudget<'steps'>;
  },
): readonly CatalogChannel[] {
  const where = `package "${channel.package}" channel "${channel.name}"`;
  let { entries } = channel;
  const listed = new Set(entries.map(({ name }) => name));
  for (const name of [...names].filter((one) => listed.has(one)).sort()) {
    for (const { skips = [] } of entries) effort.take('steps', 1 + skips.length);
    const removed = removeEntry(entries, name, versions);
    if (removed === undefined) continue;
    entries = removed.entries;
    warn(`${where}: bundle "${name}" is left out${describeEffect(removed)}`);
  }
  if (entries.length === 0 && channel.entries.length > 0) {
    warn(`${where}: skipBundles leaves no entry in it`);
    return [];
  }
  return [entries === channel.entries ? channel : { ...channel, entries }];
}

function describeEffect({ heir, isHead }: RemovedEntry): string {
  if (heir === undefined) return '';
  return `, and "${heir.name}" ${isHead ? 'becomes the head' : 'skips it'}`;
}
