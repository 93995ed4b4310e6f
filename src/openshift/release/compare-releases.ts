import { withoutUndefined } from '../../base/lists.ts';

/** What is known of the release of a medium. */
export type KnownRelease = {
  /** As its ClusterImageSet names it. */
  readonly image: string;
  readonly version?: string;
  /** As in the tags of releases: `x86_64`. */
  readonly architecture?: string;
};

/**
 * Whether a reference means the release of a medium. Digests are compared wherever both have one, whatever registry they
 * stand in; a tag of the form VERSION or VERSION-ARCH says the release itself. Any other tag says nothing.
 */
export function compareReleases(given: string, known: KnownRelease): 'same' | 'other' | 'unknown' {
  const digests = [given, known.image].map((image) => image.split('@')[1]);
  const [wanted, found] = digests;
  if (given === known.image || (wanted !== undefined && wanted === found)) return 'same';
  if (!digests.includes(undefined)) return 'other';
  return compareTags(parseTag(given), { ...parseTag(known.image), ...known });
}

function compareTags(tag: Named = {}, known: Named): 'same' | 'other' | 'unknown' {
  if (tag.version === undefined || known.version === undefined) return 'unknown';
  if (tag.version !== known.version) return 'other';
  const { architecture = 'multi' } = tag;
  return ['multi', known.architecture ?? architecture].includes(architecture) ? 'same' : 'other';
}

type Named = Pick<KnownRelease, 'version' | 'architecture'>;

const TAG = /:(\d+\.\d+\.\d+[0-9A-Za-z._-]*)$/;
const SUFFIX = /-(x86_64|aarch64|ppc64le|s390x|multi)$/;

function parseTag(image: string): Named | undefined {
  const [, tag] = TAG.exec(image.split('@')[0] ?? '') ?? [];
  if (tag === undefined) return undefined;
  const [, architecture] = SUFFIX.exec(tag) ?? [];
  return { version: tag.replace(SUFFIX, ''), ...withoutUndefined({ architecture }) };
}
