import { hexOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import { RELEASE_IMAGES_REPOSITORY, type Destination, type Need } from './image-set.ts';

/** An image that claims tags of the node's registry. */
type Claimant = {
  readonly name: string;
  /** As it is named. */
  readonly origin: Reference;
  /** By digest. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly neededBy: readonly Need[];
};

/**
 * Gives every tag to one digest. Bundles name images as `repository:tag@digest`, and those of two
 * versions often share the tag: nodes pull them by digest, so the tag is only a name that keeps the
 * image. The first image of the list keeps the tag, and the others get the one that an image by
 * digest alone has, `sha256-HEX`. What nodes pull by tag, and what the configuration names itself,
 * keeps its tag wherever it stands in the list.
 *
 * @throws ConfigError `mirror.conflict` when two images cannot do without the same tag, or a second one
 * would stand beside the release image
 */
export function settleTags<Image extends Claimant>(images: readonly Image[]): readonly Image[] {
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

/** Whatever has a tag beside the release image is a release to the machine config daemon. */
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
