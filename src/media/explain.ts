import { UsageError, IntegrityError } from '../base/errors.ts';
import { sumSizes, withoutUndefined } from '../base/lists.ts';
import type { IsoImage } from '../iso/index.ts';
import { type Need, RELEASE_IMAGE } from '../openshift/mirror/sets.ts';
import { readImageContents } from './contents.ts';
import { type IndexCatalog } from './index-catalogs.ts';
import { readIndex, type IndexImage, type MediaIndex } from './media-index.ts';

/** For `sealift why`. Sizes are bytes. */
export type Explanation = {
  readonly images: readonly ExplainedImage[];
  /** Blobs requested by digest. */
  readonly blobs: readonly {
    readonly digest: string;
    readonly size: number;
    readonly users: readonly string[];
  }[];
};

export type ExplainedImage = {
  readonly name: string;
  /** Reference by digest. */
  readonly reference: string;
  readonly repository: string;
  readonly tags: readonly string[];
  /** Size of manifests and blobs. */
  readonly size: number;
  /** Size of the blobs that no other image needs. */
  readonly marginalSize: number;
  readonly neededBy: readonly Need[];
  /** Information that the medium lacks, as a sentence. */
  readonly unknown?: string;
};

type Piece = { readonly digest: string; readonly size: number };

export type ExplainableImage = Omit<ExplainedImage, 'size' | 'marginalSize'> & {
  /** Names that a search matches in part. */
  readonly names: readonly string[];
  readonly manifests: readonly Piece[];
  readonly blobs: readonly Piece[];
};

/**
 * Images that match a digest, its first digits, or a part of a name or reference. The digest of a blob
 * matches the images that contain it.
 *
 * @param where name of the plan or medium, for the error
 * @throws UsageError `why.nothing`
 */
export function explainImages(
  what: string,
  all: readonly ExplainableImage[],
  where: string,
): Explanation {
  const users = countUsers(all);
  const hit = new Map<string, Piece>();
  for (const blob of all.flatMap(({ blobs }) => blobs)) {
    if (isDigestOf(what, blob.digest)) hit.set(blob.digest, blob);
  }
  const images = all.filter(
    (image) => isMeant(what, image) || image.blobs.some(({ digest }) => hit.has(digest)),
  );
  if (images.length === 0) throw nothing(what, { images: all.length, where });
  return {
    images: images.map((image) => describe(image, users)),
    blobs: [...hit.values()].map(({ digest, size }) => ({
      digest,
      size,
      users: [...(users.get(digest) ?? [])].map(({ name }) => name),
    })),
  };
}

/** True for `sha256:4f2a...` or its hex, at least four digits. */
const isDigestOf = (what: string, digest: string): boolean =>
  /^(sha256:)?[0-9a-f]{4,64}$/.test(what) &&
  digest.startsWith(what.startsWith('sha256:') ? what : `sha256:${what}`);

const isMeant = (what: string, { manifests, names }: ExplainableImage): boolean =>
  manifests.some(({ digest }) => isDigestOf(what, digest)) ||
  names.some((text) => text.includes(what));

type Users = ReadonlyMap<string, ReadonlySet<ExplainableImage>>;

function countUsers(images: readonly ExplainableImage[]): Users {
  const users = new Map<string, Set<ExplainableImage>>();
  for (const image of images) {
    for (const { digest } of [...image.manifests, ...image.blobs]) {
      const known = users.get(digest) ?? new Set();
      users.set(digest, known.add(image));
    }
  }
  return users;
}

function describe(image: ExplainableImage, users: Users): ExplainedImage {
  const { name, reference, repository, tags, neededBy, unknown } = image;
  const pieces = [...image.manifests, ...image.blobs];
  const alone = pieces.filter(({ digest }) => users.get(digest)?.size === 1);
  return {
    name,
    reference,
    repository,
    tags,
    size: sumSizes(pieces),
    marginalSize: sumSizes(alone),
    neededBy,
    ...withoutUndefined({ unknown }),
  };
}

const nothing = (
  what: string,
  { images, where }: { readonly images: number; readonly where: string },
): UsageError =>
  new UsageError('why.nothing', `${where} has nothing that matches "${what}"`, {
    expected: `one of ${images} images, or one of their blobs`,
    found: what,
    hint: 'give a digest, its first four digits or more, or a part of a reference',
  });

/**
 * Reads the index and manifests, but no blobs. An index does not link an operator's image to its bundle; the
 * operators that may require it are listed instead.
 *
 * @throws IntegrityError `why.no-index`, the errors of `readIndex`; UsageError `why.nothing`
 */
export async function explainMedium(
  what: string,
  iso: IsoImage,
  name: string,
): Promise<Explanation> {
  const index = await readIndex(iso);
  if (!index) {
    throw new IntegrityError('why.no-index', `${name} has no index of its images`, {
      expected: 'an ISO that sealift made, with images',
      hint: 'name the medium that sealift built',
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

/** With several releases, only the images of the one that is installed have tags with its digest. */
function explainRelease({ tags }: IndexImage, { product, release, images }: MediaIndex): Reason {
  // The release in an index of this product is the seed.
  if (product === 'installation-iso') return { neededBy: [{ part: 'release' }] };
  const found = new Set(
    images.flatMap(({ name, source }) => (name === RELEASE_IMAGE ? source : [])),
  );
  const hex = release.reference.split(/@sha256:/)[1];
  const isOwn = found.size <= 1 || (hex !== undefined && tags.some((tag) => tag.includes(hex)));
  if (isOwn) return { neededBy: [{ part: `release ${release.version}` }] };
  return {
    neededBy: [{ part: 'release' }],
    unknown: `the index does not say whether ${release.version} or a release on the upgrade path to it requires the image`,
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

/** Lists needs in a catalog: its own image has its digest, and a bundle's image has the bundle's name. */
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
