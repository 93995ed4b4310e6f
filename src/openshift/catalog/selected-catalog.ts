import type { Digest } from '../../base/digest.ts';
import type { Descriptor } from '../../registry/manifest.ts';
import type { AddedBundle } from '../../fbc/dependencies.ts';
import type { Reference } from '../../registry/reference.ts';
import { groupBy } from '../../base/lists.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Catalog, CatalogBundle } from '../../fbc/catalog.ts';
import { findGraphProblems, findHead } from '../../fbc/channel-graph.ts';

/** A bundle that is selected, with every image that it needs, its own included; each once. */
export type SelectedBundle = {
  readonly package: string;
  readonly name: string;
  readonly version?: string;
  readonly image: string;
  readonly relatedImages: readonly { readonly name: string; readonly image: string }[];
};

/** A package as the carried catalog offers it. */
export type SelectedPackage = {
  readonly name: string;
  readonly defaultChannel?: string;
  readonly channels: readonly {
    readonly name: string;
    /** Name of the bundle that upgrades lead to; absent where the channel is not one graph with one head. */
    readonly head?: string;
  }[];
};

/** What is carried of a catalog. Plain JSON. */
export type SelectedCatalog = {
  /** As the configuration names it. */
  readonly name: string;
  /** What its image, or the lower layers of a rebuilt one, are fetched by. */
  readonly reference: Reference;
  /** Of the image that is carried: the catalog's own, or the one that we rebuilt. */
  readonly digest: Digest;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
  /** Present when it is on this machine: no registry has its image. */
  readonly isLocal?: true;
  /** Present when only a part of the catalog is selected, or it is a directory. */
  readonly rebuilt?: {
    /** Made here and found in no registry: manifests, configs and layers, all in the cache. */
    readonly made: readonly Descriptor[];
  };
  readonly packages: readonly SelectedPackage[];
  readonly bundles: readonly SelectedBundle[];
  /** Those of the bundles that others need and the configuration does not name. */
  readonly additions: readonly AddedBundle[];
  readonly warnings: readonly string[];
};

/** Every package with its channels; sorted as in the catalog. */
export function listPackages({ packages, channels }: Catalog): readonly SelectedPackage[] {
  const byPackage = groupBy(channels, (channel) => channel.package);
  return packages.map(({ name, defaultChannel }) => ({
    name,
    ...withoutUndefined({ defaultChannel }),
    channels: (byPackage.get(name) ?? []).map((channel) => ({
      name: channel.name,
      ...(findGraphProblems(channel).length === 0 && { head: findHead(channel) }),
    })),
  }));
}

/** Every bundle with all images that it needs, each once; sorted as in the catalog. */
export function listBundles(catalog: Catalog): readonly SelectedBundle[] {
  return catalog.bundles.map((bundle) => ({
    package: bundle.package,
    name: bundle.name,
    ...withoutUndefined({ version: bundle.version }),
    image: bundle.image,
    relatedImages: listImages(bundle),
  }));
}

/** A rendered catalog names the bundle's own image among the related ones, but nothing makes it. */
function listImages({
  name,
  image,
  relatedImages,
}: CatalogBundle): SelectedBundle['relatedImages'] {
  const images = new Map<string, { name: string; image: string }>();
  for (const related of [...relatedImages, { name, image }]) {
    if (related.image === '') continue;
    if (!images.has(related.image)) images.set(related.image, related);
  }
  return [...images.values()];
}
