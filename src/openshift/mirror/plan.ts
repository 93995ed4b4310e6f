import { hexOf, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import {
  blobsOf,
  type Descriptor,
  formatReference,
  type Reference,
  type StoredManifest,
} from '../../registry/index.ts';
import { joinMirrors, planMirrors, type MirroredImage, type PlannedMirror } from './mirrors.ts';
import {
  RELEASE_IMAGES_REPOSITORY,
  type Destination,
  type Need,
  type BlockedImage,
  type ImageSetName,
  type WantedImage,
} from './sets.ts';

/** An image whose manifests are all known, and so everything that must be fetched for it. */
export type PlannedImage = {
  /** The component, or the name that the configuration gives. */
  readonly name: string;
  readonly set: ImageSetName;
  /** Reference as it is named. */
  readonly origin: Reference;
  /** Reference by digest. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly signedCopy?: Destination;
  readonly neededBy: readonly Need[];
  readonly kind?: WantedImage['kind'];
  /** First the one that the source names, then the carried children: an index may be sparse. */
  readonly manifests: readonly Descriptor[];
  /** Configs and layers of the manifests, each once; foreign layers are not carried. */
  readonly blobs: readonly Descriptor[];
};

export type PlannedBlob = Descriptor & {
  readonly users: readonly string[];
  /** Repositories from which it can be fetched, `registry/repository`. */
  readonly from: readonly string[];
};

/** All content to carry, by digest. Plain JSON; sizes are bytes. */
export type MirrorPlan = {
  readonly images: readonly PlannedImage[];
  /** The registry server, which is carried in a separate form and is not served. */
  readonly registryImage?: PlannedImage;
  /** Each once, even if several images need it; sorted by digest. */
  readonly blobs: readonly PlannedBlob[];
  /** Bytes, each manifest once. */
  readonly manifestSize: number;
  /** Bytes, each blob once. */
  readonly blobSize: number;
  /** Further bytes that every image's blobs would take if no blob were shared. */
  readonly dedupeSaved: number;
  readonly mirrors: readonly PlannedMirror[];
  readonly blocked: readonly BlockedImage[];
};

/** An image with its manifests, the top one first. */
export type FetchedImage = {
  readonly wanted: WantedImage;
  readonly set: ImageSetName;
  readonly manifests: readonly StoredManifest[];
};

export function planImage({ wanted, set, manifests }: FetchedImage): PlannedImage {
  const top = manifests[0];
  if (top === undefined) throw new TypeError('an image has at least one manifest');
  const { registry, repository } = wanted.source;
  const blobs = new Map<Digest, Descriptor>();
  for (const { manifest } of manifests) {
    for (const blob of blobsOf(manifest)) blobs.set(blob.digest, toPlain(blob));
  }
  return {
    name: wanted.name,
    set,
    origin: wanted.source,
    source: { registry, repository, digest: top.descriptor.digest },
    destination: wanted.destination,
    ...(wanted.signedCopy && { signedCopy: wanted.signedCopy }),
    neededBy: wanted.neededBy,
    ...(wanted.kind && { kind: wanted.kind }),
    manifests: manifests.map(({ descriptor }) => toPlain(descriptor)),
    blobs: [...blobs.values()],
  };
}

/** @throws ConfigError `mirror.conflict` when two images that are pulled by tag claim the same one. */
export function mergeMirrorPlan(options: {
  readonly images: readonly PlannedImage[];
  readonly registryImage?: PlannedImage;
  readonly blocked: readonly BlockedImage[];
  /** Mirrors that are already known: the ones that an oc-mirror workspace gives for its images. */
  readonly mirrors?: readonly PlannedMirror[];
}): MirrorPlan {
  const { registryImage, blocked, mirrors = [] } = options;
  const images = settleTags(options.images);
  const all = registryImage ? [...images, registryImage] : images;
  const blobs = mergeBlobs(all);
  const manifests = new Map(
    all.flatMap((image) => image.manifests.map(({ digest, size }) => [digest, size] as const)),
  );
  const blobSize = sum(blobs.map(({ size }) => size));
  const blobSizeUnshared = sum(all.flatMap((image) => image.blobs.map(({ size }) => size)));
  return {
    images,
    ...(registryImage && { registryImage }),
    blobs,
    manifestSize: sum([...manifests.values()]),
    blobSize,
    dedupeSaved: blobSizeUnshared - blobSize,
    mirrors: joinMirrors(
      planMirrors(images.filter(({ set }) => set !== 'workspace').flatMap(toMirrored)),
      mirrors,
    ),
    blocked,
  };
}

type Claimant = {
  readonly name: string;
  /** Reference as it is named. */
  readonly origin: Reference;
  /** Reference by digest. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly neededBy: readonly Need[];
};

/**
 * Gives every tag to one digest. Bundles name images as `repository:tag@digest`, and two versions often share
 * the tag: nodes pull them by digest, so the tag is only a name that keeps the image. The first image keeps
 * it, the others get the tag of an image by digest alone, `sha256-HEX`. An image that nodes pull by tag, or
 * that the configuration names itself, keeps its tag at any position in the list.
 */
function settleTags<Image extends Claimant>(images: readonly Image[]): readonly Image[] {
  refuseSecondRelease(images);
  const owners = new Map<string, Claimant>();
  for (const image of images) {
    if (isPulledByDigest(image)) continue;
    for (const place of listPlaces(image)) {
      const owner = owners.get(place) ?? image;
      owners.set(place, owner);
      if (!isSame(owner, image)) throw conflict(place, [owner, image]);
    }
  }
  return images.map((image) => {
    if (!isPulledByDigest(image)) return image;
    const places = listPlaces(image);
    const isFree = places.every((place) => isSame(owners.get(place) ?? image, image));
    if (!isFree) return useDigestTag(image);
    for (const place of places) owners.set(place, image);
    return image;
  });
}

/** Any image with a tag next to the release image is a release to the machine config daemon. */
function refuseSecondRelease(images: readonly Claimant[]): void {
  const [first, second] = images.filter(
    ({ destination: { repository, tags } }) =>
      repository === RELEASE_IMAGES_REPOSITORY && tags.length > 0,
  );
  if (first && second)
    throw conflict(
      RELEASE_IMAGES_REPOSITORY,
      [first, second],
      'give one of the two another targetRepo',
    );
}

const isPulledByDigest = ({ origin, neededBy }: Claimant): boolean =>
  origin.digest !== undefined && neededBy.every(({ bundle }) => bundle !== undefined);

const listPlaces = ({ destination: { repository, tags } }: Claimant): readonly string[] =>
  tags.map((tag) => `${repository}:${tag}`);

const isSame = (a: Claimant, b: Claimant): boolean => a.source.digest === b.source.digest;

/** `source` is always by digest. */
function useDigestTag<Image extends Claimant>(image: Image): Image {
  const { digest } = image.source;
  if (digest === undefined) throw new TypeError('a planned image is named by digest');
  return { ...image, destination: { ...image.destination, tags: [`sha256-${hexOf(digest)}`] } };
}

const conflict = (
  place: string,
  [first, second]: readonly [Claimant, Claimant],
  hint = 'name one of the two by digest',
): ConfigError =>
  new ConfigError(
    'mirror.conflict',
    `images "${first.name}" and "${second.name}" would both be ${place} in the registry`,
    {
      expected: formatReference(first.source),
      found: formatReference(second.source),
      hint,
    },
  );

function mergeBlobs(images: readonly PlannedImage[]): PlannedBlob[] {
  const merged = new Map<Digest, { blob: Descriptor; users: Set<string>; from: Set<string> }>();
  for (const { name, source, blobs } of images) {
    for (const blob of blobs) {
      const entry = merged.get(blob.digest) ?? { blob, users: new Set(), from: new Set() };
      merged.set(blob.digest, entry);
      entry.users.add(name);
      entry.from.add(formatRepository(source));
    }
  }
  return [...merged.values()]
    .map(({ blob, users, from }) => ({ ...blob, users: [...users], from: [...from] }))
    .sort((a, b) => (a.digest < b.digest ? -1 : Number(a.digest > b.digest)));
}

/** To the cluster's mirror sets, an image that is neither release nor operator is generic. */
const toMirrored = (image: PlannedImage): readonly MirroredImage[] => {
  const { origin, destination, signedCopy, set, kind } = image;
  return [...(signedCopy ? [signedCopy] : []), destination].map((destination) => ({
    source: origin,
    destination,
    category: set === 'release' || set === 'operator' ? set : 'generic',
    ...(kind && { kind }),
  }));
};

/** Without the extra members of an index or annotations: the plan is compared and kept. */
const toPlain = ({ mediaType, digest, size }: Descriptor): Descriptor => ({
  mediaType,
  digest,
  size,
});

const formatRepository = ({ registry, repository }: Reference): string =>
  `${registry}/${repository}`;

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
