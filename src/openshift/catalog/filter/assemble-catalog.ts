import type { Catalog, CatalogChannel, CatalogDeprecations } from '../catalog.ts';
import { compareText } from './version/bundle-version.ts';

/**
 * A catalog of parts of another, in the order of {@link sortCatalog}, with those deprecations and other
 * documents that still belong to something.
 *
 * @param owns whether documents of a package are selected
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
export function sortCatalog(catalog: Catalog): Catalog {
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

/** Entries about the package as a whole stay, and a list that becomes empty stays a list. */
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
