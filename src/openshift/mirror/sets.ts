import { hexOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { compileGoPattern } from '../../base/text/go-pattern.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';
import { digestOfRelease, type Release } from '../release/release.ts';

export type Destination = { readonly repository: string; readonly tags: readonly string[] };

/** A part of the configuration that wants an image and could be left out. */
export type Need = {
  /** `release`, `additional images`, or the package of an operator. */
  readonly part: string;
  /** Component of a release. */
  readonly component?: string;
  readonly bundle?: string;
  readonly catalog?: string;
};

export type WantedImage = {
  /** The component, or the name that the configuration or the bundle gives. */
  readonly name: string;
  /** Reference as it is named, by tag or digest or both. */
  readonly source: Reference;
  readonly destination: Destination;
  /** A second place, which nodes ask first, with the signatures that the other one may not have. */
  readonly signedCopy?: Destination;
  readonly neededBy: readonly Need[];
  /** Set for an image that is named in another way than other images of its set, or not at all. */
  readonly kind?: 'release-image' | 'catalog' | 'signature';
  /** True if it is made here or from an OCI layout: no registry has a signature of it. */
  readonly isMadeHere?: true;
};

export type ImageSetName = 'release' | 'operator' | 'additional' | 'workspace' | 'registry';

export type ImageSet = { readonly name: ImageSetName; readonly images: readonly WantedImage[] };

export type AdditionalImage = {
  readonly name: string;
  readonly targetRepo?: string;
  readonly targetTag?: string;
};

/** Repository of a release's images on the media, with oc-mirror's name. */
export const RELEASE_REPOSITORY = 'openshift/release';
export const RELEASE_IMAGES_REPOSITORY = 'openshift/release-images';

export const ADDITIONAL_IMAGES = 'additional images';

/** The name of the release image in its set; no component has this name. */
export const RELEASE_IMAGE = 'release-image';

const MAX_TAG_SIZE = 128;
const TRUNCATED_TAG_SIZE = 127;

/**
 * The release image is in two repositories, under one tag in each, the hex of its digest. In
 * `openshift/release-images` no other image may have a tag, because the machine config daemon makes a digest
 * of any tag there. Nodes ask `openshift/release` first, which has the signature next to the image.
 */
export function planReleaseSet(release: Release): ImageSet {
  const tag = hexOf(digestOfRelease(release));
  const neededBy = [{ part: 'release' }];
  return {
    name: 'release',
    images: [
      {
        name: RELEASE_IMAGE,
        source: release.reference,
        destination: { repository: RELEASE_IMAGES_REPOSITORY, tags: [tag] },
        signedCopy: { repository: RELEASE_REPOSITORY, tags: [tag] },
        neededBy,
        kind: 'release-image',
      },
      ...release.components.map(({ name, reference }) => ({
        name,
        source: reference,
        destination: { repository: RELEASE_REPOSITORY, tags: [truncateTag(`${tag}-${name}`)] },
        neededBy,
      })),
    ],
  };
}

/**
 * A release on the way to a later one. No tags: there is room for those of one release, and nodes pull by
 * digest.
 */
export function planPassedSet(release: Release): ImageSet {
  const { name, images } = planReleaseSet(release);
  const neededBy = [{ part: `release ${release.version}` }];
  return {
    name,
    images: images.map(({ destination, signedCopy, ...image }) => ({
      ...image,
      neededBy,
      destination: { ...destination, tags: [] },
      ...(signedCopy && { signedCopy: { ...signedCopy, tags: [] } }),
    })),
  };
}

/**
 * Images keep their path and tag. An image that is only named by digest gets a tag made of it.
 *
 * @throws ConfigError `mirror.no-version` for a name with neither tag nor digest, `mirror.twice`
 * when two names mean one image, `reference.malformed`
 */
export function planAdditionalSet(wanted: readonly AdditionalImage[]): ImageSet {
  const seen = new Map<string, string>();
  const images = wanted.map(({ name, targetRepo, targetTag }) => {
    const source = parseReference(name);
    checkVersion(name, source);
    const destination = planDestination(source, {
      ...withoutUndefined({ repository: targetRepo, tag: targetTag }),
    });
    const whole = JSON.stringify([formatReference(source), destination]);
    const earlier = seen.get(whole);
    if (earlier !== undefined) throw namedTwice(earlier, name);
    seen.set(whole, name);
    return { name, source, destination, neededBy: [{ part: ADDITIONAL_IMAGES }] };
  });
  return { name: 'additional', images };
}

/** oc-mirror's names for images outside the release, unless the configuration has its own. */
export function planDestination(
  source: Reference,
  target: { readonly repository?: string; readonly tag?: string } = {},
): Destination {
  const { digest } = source;
  const repository = target.repository ?? source.repository;
  const tag = target.tag ?? source.tag;
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

/** Joins equal references for one place: the image keeps its first set and name, and has every set's need. */
export function mergeSets(sets: readonly ImageSet[]): readonly ImageSet[] {
  const merged = new Map<string, { image: WantedImage; needs: Map<string, Need> }>();
  const order = sets.map(({ name, images }) => {
    const keys = new Set<string>();
    for (const image of images) {
      const key = keyOf(image);
      const known = merged.get(key);
      const entry = known ?? { image, needs: new Map<string, Need>() };
      if (known === undefined) keys.add(key);
      merged.set(key, entry);
      for (const need of image.neededBy) entry.needs.set(JSON.stringify(need), need);
    }
    return { name, keys };
  });
  return order.map(({ name, keys }) => ({
    name,
    images: [...keys].flatMap((key) => {
      const entry = merged.get(key);
      return entry ? [{ ...entry.image, neededBy: [...entry.needs.values()] }] : [];
    }),
  }));
}

const keyOf = ({ source, destination: { repository, tags } }: WantedImage): string =>
  JSON.stringify([formatReference(source), repository, tags]);

export type BlockedImage = { readonly image: string; readonly pattern: string };

/** The first pattern that matches one of the names of an image. */
export type FindBlocking = (names: readonly string[]) => string | undefined;

/**
 * @param patterns regular expressions as Go writes them
 * @throws ConfigError `pattern.malformed`
 */
export function compileBlocked(patterns: readonly string[]): FindBlocking {
  const compiled = patterns.map((pattern) => ({ pattern, expression: compileGoPattern(pattern) }));
  return (names) =>
    compiled.find(({ expression }) => names.some((name) => expression.test(name)))?.pattern;
}

/**
 * Removes the images whose source or destination a pattern matches at any position.
 *
 * @throws ConfigError `pattern.malformed`, `mirror.release-blocked`
 */
export function blockImages(
  sets: readonly ImageSet[],
  findBlocking: FindBlocking,
): { readonly sets: readonly ImageSet[]; readonly blocked: readonly BlockedImage[] } {
  const blocked: BlockedImage[] = [];
  const isKept = (image: WantedImage): boolean => {
    const pattern = findBlocking(namesOf(image));
    if (pattern === undefined) return true;
    if (image.name === RELEASE_IMAGE) throw releaseBlocked(pattern, image);
    blocked.push({ image: formatReference(image.source), pattern });
    return false;
  };
  const kept = sets.map((set) => ({ ...set, images: set.images.filter(isKept) }));
  return { sets: kept, blocked };
}

/** An image of a mirror is known by digest; its tags are the ones that it had at its origin. */
function namesOf({ source, destination: { repository, tags } }: WantedImage): string[] {
  const origin = `${source.registry}/${source.repository}`;
  return [
    formatReference(source),
    repository,
    ...tags.flatMap((tag) => [`${repository}:${tag}`, `${origin}:${tag}`]),
  ];
}

const releaseBlocked = (pattern: string, image: WantedImage): ConfigError =>
  new ConfigError(
    'mirror.release-blocked',
    `blocked image "${pattern}" matches the release image ${formatReference(image.source)}`,
    { hint: 'narrow the pattern: media without the release image install nothing' },
  );
