import { withoutUndefined } from '../../base/members.ts';
import type { Catalog, CatalogBundle } from './catalog.ts';
import type { SelectedBundle } from './selected-catalog.ts';

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
