import { IntegrityError } from '../base/errors.ts';
import type { IsoImage } from '../iso/read/open.ts';
import { RELEASE_IMAGE, type Need } from '../openshift/mirror/sets.ts';
import { explainImages, type ExplainableImage, type Explanation } from './explain-images.ts';
import { readImageContents } from './image-contents.ts';
import type { IndexCatalog } from './index/index-catalogs.ts';
import { readIndex, type IndexImage, type MediaIndex } from './index/media-index.ts';

/**
 * What requires an image or a blob of a medium, as far as its index and the manifests on it tell. Reads no
 * blob. An image of an operator's bundle is not named with the bundle in an index: then the operators that
 * may require it are told.
 *
 * @throws IntegrityError `why.no-index`, what `readIndex` throws; UsageError `why.nothing`
 */
export async function explainMedium(
  what: string,
  iso: IsoImage,
  name: string,
): Promise<Explanation> {
  const index = await readIndex(iso);
  if (!index) {
    throw new IntegrityError('why.no-index', `${name} has no index of its images`, {
      expected: 'an ISO of sealift that carries images',
      hint: 'name an ISO that sealift made',
    });
  }
  const images: ExplainableImage[] = [];
  for await (const { image, extents } of readImageContents(iso, index)) {
    const own = new Set(image.manifests);
    const pieces = extents.flatMap(({ digest, size }) =>
      digest === undefined ? [] : [{ digest, size }],
    );
    images.push({
      name: image.name,
      reference: image.source,
      repository: image.repository,
      tags: image.tags,
      names: [image.name, image.source, image.repository],
      manifests: pieces.filter(({ digest }) => own.has(digest)),
      blobs: pieces.filter(({ digest }) => !own.has(digest)),
      ...explainNeed(image, index),
    });
  }
  return explainImages(what, images, name);
}

type Reason = Pick<ExplainableImage, 'neededBy' | 'unknown'>;

function explainNeed(image: IndexImage, index: MediaIndex): Reason {
  if (image.set === 'operator') return explainOperator(image, index);
  if (image.set === 'release') return explainRelease(image, index);
  return { neededBy: [{ part: PARTS[image.set] ?? image.set }] };
}

const PARTS: Readonly<Record<string, string>> = {
  additional: 'additional images',
  registry: 'registry image',
  workspace: 'workspace of the mirror',
};

/** Of several releases, only the images of the one that the medium is for have tags with its digest. */
function explainRelease({ tags }: IndexImage, { product, release, images }: MediaIndex): Reason {
  // The release that an index of this product names is the seed.
  if (product === 'installation-iso') return { neededBy: [{ part: 'release' }] };
  const found = new Set(
    images.flatMap(({ name, source }) => (name === RELEASE_IMAGE ? source : [])),
  );
  const hex = release.reference.split(/@sha256:/)[1];
  const isOwn = found.size <= 1 || (hex !== undefined && tags.some((tag) => tag.includes(hex)));
  if (isOwn) return { neededBy: [{ part: `release ${release.version}` }] };
  return {
    neededBy: [{ part: 'release' }],
    unknown: `the index does not say whether ${release.version} requires it or a release on the way to it`,
  };
}

function explainOperator(image: IndexImage, { catalogs, format }: MediaIndex): Reason {
  if (!catalogs) {
    return {
      neededBy: [{ part: 'operators' }],
      unknown: `an index of format ${format} without catalogs does not say which operator requires it`,
    };
  }
  const known = catalogs.flatMap((catalog) => listNeeds(image, catalog));
  if (known.length > 0) return { neededBy: known };
  const packages = catalogs.flatMap(({ name, packages }) =>
    packages.map((one): Need => ({ part: one.name, catalog: name })),
  );
  if (packages.length === 1) return { neededBy: packages };
  return {
    neededBy: packages,
    unknown: 'the index does not say which bundle requires it: one of these operators does',
  };
}

/** By name: a bundle's own image has the name of the bundle, and a catalog's that of the catalog. */
function listNeeds({ name, manifests }: IndexImage, catalog: IndexCatalog): readonly Need[] {
  if (manifests.includes(catalog.digest)) {
    return [{ part: `catalog ${catalog.name}`, catalog: catalog.name }];
  }
  return catalog.packages.flatMap((one) =>
    one.bundles.some((bundle) => bundle.name === name)
      ? [{ part: one.name, bundle: name, catalog: catalog.name }]
      : [],
  );
}
