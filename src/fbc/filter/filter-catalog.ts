import { findRepeated, groupBy } from '../../base/lists.ts';
import { appendSuggestion } from '../../base/text/words.ts';
import type { Catalog, CatalogChannel, CatalogDeprecations, CatalogPackage } from '../catalog.ts';
import type { CatalogSelection } from '../source.ts';
import { compareText } from '../version.ts';
import { checkCatalog, leaveOutBundles } from './check-catalog.ts';
import { filterPackage } from './filter-package.ts';
import { type PackageParts, createFilterReport, type FilterReport } from './report.ts';

export type FilteredCatalog = {
  /**
   * Packages by name, channels as in the source, bundles by package and name. Channels with fewer
   * entries, deprecations with fewer entries, and packages with another default channel keep their
   * `place`: the writer edits the document.
   */
  readonly catalog: Catalog;
  /** Sentences, each once. */
  readonly warnings: readonly string[];
  /** True if nothing was removed or changed. */
  readonly isWhole: boolean;
  /** The catalog before filtering. */
  readonly source: Catalog;
  /** The source without the bundles that the selection skips, and without malformed documents. */
  readonly available: Catalog;
};

export type FilterOptions = {
  /** The catalog's reference, for errors and warnings. */
  readonly name?: string;
};

/**
 * Selects the parts of a catalog that oc-mirror v2 would select. Without packages: the heads of all channels, or
 * with `full` everything. With packages: of their channels the heads, a range of versions, or with
 * `full` all entries.
 *
 * Stricter than oc-mirror: names that the catalog does not have are problems, channels that a range empties
 * are left out, and so are bundles that no selected channel has and deprecations of removed parts.
 *
 * @throws ConfigError `catalog.selection` with all problems, one per line; `catalog.malformed` if
 * documents of a selected package are malformed
 */
export function filterCatalog(
  catalog: Catalog,
  selection: CatalogSelection,
  options: FilterOptions = {},
): FilteredCatalog {
  const report = createFilterReport(options.name);
  const name = options.name ?? 'given';
  const available = leaveOutBundles(catalog, { selection, report, name });
  const filtered =
    selection.full && selection.packages.length === 0
      ? sortCatalog(available)
      : selectParts(available, { selection, report });
  report.throwIfAny();
  return { ...finishCatalog(filtered, { source: catalog, report }), source: catalog, available };
}

/** Checks the filtered catalog, and finds out whether it is all of the source. */
export function finishCatalog(
  filtered: Catalog,
  { source, report }: { readonly source: Catalog; readonly report: FilterReport },
): Pick<FilteredCatalog, 'catalog' | 'warnings' | 'isWhole'> {
  reportInvalid(filtered, { source, report });
  return { catalog: filtered, warnings: report.listWarnings(), isWhole: isSame(filtered, source) };
}

type SelectOptions = { readonly selection: CatalogSelection; readonly report: FilterReport };

function selectParts(catalog: Catalog, { selection, report }: SelectOptions): Catalog {
  const selected = new Map(selection.packages.map((item) => [item.name, item]));
  const all = splitCatalog(catalog);
  checkNames(selection, { known: new Set(all.keys()), report });
  const isSelected = (name: string): boolean => selected.size === 0 || selected.has(name);
  const filtered = [...all.values()]
    .filter(({ name }) => isSelected(name))
    .map((parts) =>
      filterPackage(parts, { selected: selected.get(parts.name), full: selection.full, report }),
    );
  const parts = {
    packages: filtered.flatMap(({ packages }) => packages),
    channels: filtered.flatMap(({ channels }) => channels),
    bundles: filtered.flatMap(({ bundles }) => bundles),
  };
  return assembleCatalog(catalog, parts, isSelected);
}

/** Splits the catalog by package; a package may have channels without an `olm.package`. */
function splitCatalog(catalog: Catalog): Map<string, PackageParts> {
  const packages = groupBy(catalog.packages, ({ name }) => name);
  const channels = groupBy(catalog.channels, (channel) => channel.package);
  const bundles = groupBy(catalog.bundles, (bundle) => bundle.package);
  const names = [...new Set([...packages.keys(), ...channels.keys(), ...bundles.keys()])];
  return new Map(
    names.map((name) => [
      name,
      {
        name,
        packages: packages.get(name) ?? [],
        channels: channels.get(name) ?? [],
        bundles: bundles.get(name) ?? [],
      },
    ]),
  );
}

function checkNames(
  { packages }: CatalogSelection,
  { known, report }: { readonly known: ReadonlySet<string>; readonly report: FilterReport },
): void {
  const names = packages.map(({ name }) => name);
  for (const name of findRepeated(names)) report.addProblem(`package "${name}" is selected twice`);
  for (const name of names) {
    if (known.has(name)) continue;
    const guess = appendSuggestion(name, known);
    report.addProblem(`package "${name}" is not in the catalog${guess}`);
  }
}

/** Warns about faults of the source; a fault that only the result has is a bug of the filter. */
function reportInvalid(
  filtered: Catalog,
  { source, report }: { readonly source: Catalog; readonly report: FilterReport },
): void {
  const found = checkCatalog(filtered);
  if (found.length === 0) return;
  const known = new Set(checkCatalog(source));
  const ours = found.filter((violation) => !known.has(violation));
  if (ours.length > 0) throw new Error(`the filter broke the catalog: ${ours.join('; ')}`);
  for (const violation of found) report.addWarning(`${violation}, as in the source`);
}

function isSame(filtered: Catalog, source: Catalog): boolean {
  const selected = new Set<CatalogPackage | CatalogChannel | CatalogDeprecations>([
    ...filtered.packages,
    ...filtered.channels,
    ...filtered.deprecations,
  ]);
  return (
    filtered.bundles.length === source.bundles.length &&
    filtered.others.length === source.others.length &&
    source.malformed.length === 0 &&
    [...source.packages, ...source.channels, ...source.deprecations].every((item) =>
      selected.has(item),
    )
  );
}

/**
 * A catalog of parts of another, in the order of `sortCatalog`, with the deprecations and other
 * documents that belong to these parts.
 *
 * @param owns true if documents of a package are selected
 */
export function assembleCatalog(
  source: Catalog,
  parts: Pick<Catalog, 'packages' | 'channels' | 'bundles'>,
  owns: (packageName: string) => boolean,
): Catalog {
  const places = new Map(source.channels.map((channel, index) => [identify(channel), index]));
  const order = (channel: CatalogChannel): number => places.get(identify(channel)) ?? 0;
  const names = {
    channels: new Set(parts.channels.map(identify)),
    bundles: new Set(parts.bundles.map(identify)),
  };
  return sortCatalog({
    ...parts,
    channels: parts.channels.toSorted((a, b) => order(a) - order(b)),
    deprecations: source.deprecations
      .filter((item) => owns(item.package))
      .map((item) => filterDeprecations(item, names)),
    others: source.others.filter(
      (other) => other.package === undefined || other.package === '' || owns(other.package),
    ),
    malformed: [],
  });
}

/** Packages by name, bundles by package and name. */
function sortCatalog(catalog: Catalog): Catalog {
  return {
    ...catalog,
    packages: catalog.packages.toSorted((a, b) => compareText(a.name, b.name)),
    bundles: catalog.bundles.toSorted(
      (a, b) => compareText(a.package, b.package) || compareText(a.name, b.name),
    ),
  };
}

type SelectedNames = {
  readonly channels: ReadonlySet<string>;
  readonly bundles: ReadonlySet<string>;
};

/** Entries about the package as a whole remain, and so does a document without entries. */
function filterDeprecations(
  deprecations: CatalogDeprecations,
  selected: SelectedNames,
): CatalogDeprecations {
  const isSelected = (names: ReadonlySet<string>, name = ''): boolean =>
    names.has(identify({ package: deprecations.package, name }));
  const entries = deprecations.entries.filter(({ reference }) => {
    if (reference.schema === 'olm.channel') return isSelected(selected.channels, reference.name);
    if (reference.schema === 'olm.bundle') return isSelected(selected.bundles, reference.name);
    return true;
  });
  return entries.length === deprecations.entries.length
    ? deprecations
    : { ...deprecations, entries };
}

function identify(item: { readonly package: string; readonly name: string }): string {
  return JSON.stringify([item.package, item.name]);
}
