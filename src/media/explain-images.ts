import { UsageError } from '../base/errors.ts';
import { sumSizes } from '../base/lists.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Need } from '../openshift/mirror/sets.ts';

/** What `sealift why` tells. Sizes are bytes. */
export type Explanation = {
  readonly images: readonly ExplainedImage[];
  /** Blobs that were asked for by digest. */
  readonly blobs: readonly {
    readonly digest: string;
    readonly size: number;
    readonly users: readonly string[];
  }[];
};

export type ExplainedImage = {
  readonly name: string;
  /** By digest. */
  readonly reference: string;
  readonly repository: string;
  readonly tags: readonly string[];
  /** Manifests and blobs. */
  readonly size: number;
  /** What no other image needs. */
  readonly marginalSize: number;
  readonly neededBy: readonly Need[];
  /** What a medium does not say about it, as a sentence. */
  readonly unknown?: string;
};

type Piece = { readonly digest: string; readonly size: number };

/** An image that can be explained, of a plan or of a medium. */
export type ExplainableImage = Omit<ExplainedImage, 'size' | 'marginalSize'> & {
  /** It is found by a part of each. */
  readonly names: readonly string[];
  readonly manifests: readonly Piece[];
  readonly blobs: readonly Piece[];
};

/**
 * All images that the words mean: a digest or its first digits, a reference, or a part of an image's name.
 * A blob brings the images that have it.
 *
 * @param where what has them, for the error
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

/** `sha256:4f2a...` or its hex, at least four digits of it. */
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
  new UsageError('why.nothing', `${where} has nothing named "${what}"`, {
    expected: `one of ${images} images or of their blobs`,
    found: what,
    hint: 'name a digest, its first digits, or a part of a reference',
  });
