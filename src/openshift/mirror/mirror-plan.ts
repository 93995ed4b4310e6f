import type { Digest } from '../../base/digest.ts';
import type { Descriptor } from '../../registry/manifest.ts';
import { blobsOf } from '../../registry/manifest.ts';
import type { StoredManifest } from '../../registry/manifest.ts';
import type { Reference } from '../../registry/reference.ts';
import type { BlockedImage } from './blocked-images.ts';
import {
  joinMirrors,
  planMirrors,
  type MirroredImage,
  type PlannedMirror,
} from './plan-mirrors.ts';
import type { Destination, ImageSetName, Need, WantedImage } from './image-set.ts';
import { settleTags } from './settle-tags.ts';

/** An image whose manifests are all known, and so everything that has to be fetched for it. */
export type PlannedImage = {
  /** The component, or the name that the configuration gives. */
  readonly name: string;
  readonly set: ImageSetName;
  /** As it is named. */
  readonly origin: Reference;
  /** By digest. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly signedCopy?: Destination;
  readonly neededBy: readonly Need[];
  readonly kind?: WantedImage['kind'];
  /** What the source names first, then the children that are carried: an index may be sparse. */
  readonly manifests: readonly Descriptor[];
  /** Configs and layers of the manifests, each once; foreign layers are not carried. */
  readonly blobs: readonly Descriptor[];
};

export type PlannedBlob = Descriptor & {
  /** The names of the images that need it. */
  readonly users: readonly string[];
  /** Repositories it can be fetched from, `registry/repository`. */
  readonly from: readonly string[];
};

/** Everything to be carried, by digest. Plain JSON; sizes are bytes. */
export type MirrorPlan = {
  readonly images: readonly PlannedImage[];
  /** The registry server, which is carried in a form of its own and is not served. */
  readonly registryImage?: PlannedImage;
  /** Each once, whoever needs it; sorted by digest. */
  readonly blobs: readonly PlannedBlob[];
  /** All manifests, each once. */
  readonly manifestSize: number;
  /** All blobs, each once. */
  readonly blobSize: number;
  /** What every image's blobs would take beyond that if nothing were shared. */
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

/**
 * Puts images together: every blob once, with what needs it and which sources have it.
 *
 * @throws ConfigError `mirror.conflict` when two images that are pulled by tag claim the same one.
 */
export function mergeMirrorPlan(options: {
  readonly images: readonly PlannedImage[];
  readonly registryImage?: PlannedImage;
  readonly blocked: readonly BlockedImage[];
  /** Known before: what an oc-mirror workspace says of its images. */
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
      mirrors,
      planMirrors(images.filter(({ set }) => set !== 'workspace').flatMap(toMirrored)),
    ),
    blocked,
  };
}

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

/** In the words of the cluster's mirror sets, what is neither release nor operator is generic. */
const toMirrored = (image: PlannedImage): readonly MirroredImage[] => {
  const { origin, destination, signedCopy, set, kind } = image;
  return [...(signedCopy ? [signedCopy] : []), destination].map((destination) => ({
    source: origin,
    destination,
    category: set === 'release' || set === 'operator' ? set : 'generic',
    ...(kind && { kind }),
  }));
};

/** Without what an index or annotations may say: the plan is compared and kept. */
const toPlain = ({ mediaType, digest, size }: Descriptor): Descriptor => ({
  mediaType,
  digest,
  size,
});

const formatRepository = ({ registry, repository }: Reference): string =>
  `${registry}/${repository}`;

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
