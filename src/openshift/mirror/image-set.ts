import { hexOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatReference, parseReference, type Reference } from '../../registry/reference.ts';
import type { Release } from '../release/release-payload.ts';

/** Where an image stands in the node's registry. */
export type Destination = { readonly repository: string; readonly tags: readonly string[] };

export type WantedImage = {
  /** The component, or the name that the configuration gives. */
  readonly name: string;
  readonly source: Reference;
  readonly destination: Destination;
};

/** Images that are wanted for one reason: the release, additional images, later an operator catalog. */
export type ImageSet = { readonly name: string; readonly images: readonly WantedImage[] };

/** What a release's images are called on the media, as oc-mirror calls them. */
const RELEASE_REPOSITORY = 'openshift/release';
const RELEASE_IMAGES_REPOSITORY = 'openshift/release-images';

/** The name of the release image in its set; no component is called so. */
export const RELEASE_IMAGE = 'release-image';

const MAX_TAG_SIZE = 128;
const TRUNCATED_TAG_SIZE = 127;

/**
 * The release image and its components. The release image has one tag and it is the hex of its
 * digest, because the machine config daemon makes a digest of whatever tag it finds there.
 */
export function planReleaseSet(release: Release): ImageSet {
  const { digest } = release.reference;
  if (digest === undefined) throw new TypeError('a resolved release has a digest');
  const tag = hexOf(digest);
  return {
    name: 'release',
    images: [
      {
        name: RELEASE_IMAGE,
        source: release.reference,
        destination: { repository: RELEASE_IMAGES_REPOSITORY, tags: [tag] },
      },
      ...release.components.map(({ name, reference }) => ({
        name,
        source: reference,
        destination: { repository: RELEASE_REPOSITORY, tags: [truncateTag(`${tag}-${name}`)] },
      })),
    ],
  };
}

/**
 * Additional images keep their path and tag. One that is only by digest gets a tag made of it.
 *
 * @throws ConfigError `mirror.no-version` for a name with neither tag nor digest, `mirror.twice` when
 * two names mean one image, `reference.malformed`
 */
export function planAdditionalSet(names: readonly string[]): ImageSet {
  const seen = new Map<string, string>();
  const images = names.map((name) => {
    const source = parseReference(name);
    checkVersion(name, source);
    const whole = formatReference(source);
    const earlier = seen.get(whole);
    if (earlier !== undefined) throw namedTwice(earlier, name);
    seen.set(whole, name);
    return { name, source, destination: planDestination(source) };
  });
  return { name: 'additional', images };
}

/** oc-mirror's names for images that are not the release's. */
function planDestination(source: Reference): Destination {
  const { repository, tag, digest } = source;
  if (tag !== undefined) return { repository, tags: [tag] };
  return { repository, tags: digest === undefined ? [] : [`sha256-${hexOf(digest)}`] };
}

const truncateTag = (tag: string): string =>
  tag.length > MAX_TAG_SIZE ? tag.slice(0, TRUNCATED_TAG_SIZE) : tag;

function checkVersion(name: string, { tag, digest }: Reference): void {
  if (tag !== undefined || digest !== undefined) return;
  throw new ConfigError(
    'mirror.no-version',
    `additional image "${name}" has no tag and no digest`,
    {
      expected: 'registry/repository:tag or registry/repository@sha256:...',
      found: name,
      hint: `write "${name}:latest" if that is meant`,
    },
  );
}

const namedTwice = (first: string, second: string): ConfigError =>
  new ConfigError(
    'mirror.twice',
    first === second
      ? `additional image "${first}" is named twice`
      : `additional images "${first}" and "${second}" are the same image`,
    { expected: first, found: second, hint: 'remove one of the two' },
  );
