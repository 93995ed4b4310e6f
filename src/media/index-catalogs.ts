import { groupBy, withoutUndefined } from '../base/lists.ts';
import type { SelectedCatalog } from '../openshift/catalog/selected.ts';
import { nameCatalog } from '../openshift/mirror/operator-set.ts';
import { list, optional, record, TEXT } from '../shape/shape.ts';

/* The catalogs of a medium, as its index lists them. */

export type IndexCatalog = {
  /** Name of the catalog's image in the index. */
  readonly name: string;
  /** Digest of the image on the medium: the original catalog, or a rebuilt one. */
  readonly digest: string;
  readonly packages: readonly IndexPackage[];
};

export type IndexPackage = {
  readonly name: string;
  readonly defaultChannel?: string;
  /** `head` is the name of a bundle. */
  readonly channels: readonly { readonly name: string; readonly head?: string }[];
  readonly bundles: readonly { readonly name: string; readonly version?: string }[];
};

/** Describes the catalogs for the index, in their order; everything below is sorted by name. */
export const describeCatalogs = (catalogs: readonly SelectedCatalog[]): readonly IndexCatalog[] =>
  catalogs.map((catalog) => {
    const bundles = groupBy(catalog.bundles, (bundle) => bundle.package);
    return {
      name: nameCatalog(catalog),
      digest: catalog.digest,
      packages: sortByName(catalog.packages).map(({ name, defaultChannel, channels }) => ({
        name,
        ...withoutUndefined({ defaultChannel }),
        channels: sortByName(channels),
        bundles: sortByName(bundles.get(name) ?? []).map(({ name, version }) => ({
          name,
          ...withoutUndefined({ version }),
        })),
      })),
    };
  });

const sortByName = <Item extends { readonly name: string }>(
  items: readonly Item[],
): readonly Item[] => items.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));

/** The form of the catalogs in an index. */
export const INDEX_CATALOGS = list(
  record(
    {
      name: TEXT,
      digest: TEXT,
      packages: list(
        record(
          {
            name: TEXT,
            defaultChannel: optional(TEXT),
            channels: list(record({ name: TEXT, head: optional(TEXT) }, { others: 'kept' })),
            bundles: list(record({ name: TEXT, version: optional(TEXT) }, { others: 'kept' })),
          },
          { others: 'kept' },
        ),
      ),
    },
    { others: 'kept' },
  ),
);
