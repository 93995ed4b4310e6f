import { ConfigError } from '../../base/errors.ts';
import { compileGoPattern } from '../../base/text/go-pattern.ts';
import { formatReference } from '../../registry/reference.ts';
import { RELEASE_IMAGE, type ImageSet, type WantedImage } from './image-set.ts';

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
 * Takes away what a pattern matches anywhere in the source or the destination of an image. Patterns
 * are regular expressions as Go writes them, as far as JavaScript knows the same.
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

/** An image of a mirror is known by digest; its tags are those that it had where it is from. */
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
