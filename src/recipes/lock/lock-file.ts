import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { isDigest, type Digest } from '../../base/digest.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import type { Places } from '../../iso/extent.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { TagDigests } from '../../registry/tag-ledger.ts';

export const LOCK_NAME = 'sealift.lock.json';

/** Everything that a build resolved, by digest. It has no secret: it belongs beside the configuration in Git. */
export type Lock = {
  readonly kind: 'SealiftLock';
  readonly format: 1;
  readonly product: string;
  /** Digest of the program: another one may make other bytes. */
  readonly program: string;
  /** Absent on media that are made from none. */
  readonly release?: {
    readonly version: string;
    /** Absent where a pullspec is given. */
    readonly channel?: string;
    readonly architecture: string;
    /** By digest. */
    readonly reference: string;
  };
  /** What upgrade ISOs lead from and to, as the update graph had it. */
  readonly path?: UpgradePath;
  /** What installation ISOs install. */
  readonly seed?: LockedSeed;
  /** By version: fingerprint of the key, and digest of the messages; or `unsigned`. */
  readonly signatures: Readonly<Record<string, { readonly key: string; readonly digest: string }>>;
  /** Absent on media that do not boot. */
  readonly base?: LockedBase;
  readonly installer?: { readonly digest: string };
  readonly registryImage?: string;
  readonly catalogs: Readonly<Record<string, string>>;
  /** Every image on the medium, by digest, sorted. */
  readonly images: readonly string[];
  readonly tags: TagDigests;
  /** By stage: digest of what was drawn at random. */
  readonly drawn: Readonly<Record<string, string>>;
  /** What was drawn, as `sealSecrets` encrypts it, where a key was given; else it is in a file of its own. */
  readonly secrets?: string;
  /** See `digestContents`. */
  readonly contents: string;
  /** Absent on media without an index. */
  readonly places?: Places;
};

export type LockedSeed = {
  readonly version: string;
  /** As it is configured. */
  readonly reference: string;
  readonly architecture: string;
};

/** The live ISO that a medium grew from; `url` where a CoreOS stream named it. */
export type LockedBase = { readonly digest: string; readonly url?: string };

/** One line a value: of two locks, Git shows what is different. */
export const formatLock = ({ places, ...lock }: Lock): string =>
  formatReadableJson({
    ...lock,
    ...(places && {
      places: { areas: places.areas, offsets: Object.fromEntries(places.offsets) },
    }),
  });

/** Bytes; 130,000 places take 12 MB. */
const LIMIT = 32 << 20;

/**
 * @returns undefined where there is none
 * @throws ConfigError `lock.unreadable`, `lock.too-large`, `lock.malformed`
 */
export function readLock(path: string): Lock | undefined {
  const value = readJson(path);
  if (value === undefined) return undefined;
  if (value === null) {
    throw new ConfigError('lock.malformed', `"${path}" is not a lock: it is not JSON`, {
      hint: 'settle the conflict of a merge, or restore it, or remove it and run "sealift lock"',
    });
  }
  if (!isObject(value) || value['kind'] !== 'SealiftLock') {
    throw malformed(path, { field: 'kind', expected: 'SealiftLock', found: value });
  }
  for (const [field, { expected, isRight }] of Object.entries(FIELDS)) {
    if (!isRight(value[field])) throw malformed(path, { field, expected, found: value[field] });
  }
  const { places, ...stored } = value as unknown as Omit<Lock, 'places'> & {
    readonly places?: StoredPlaces;
  };
  if (!places) return stored;
  const { areas, offsets } = places;
  return { ...stored, places: { areas, offsets: Object.entries(offsets) as [Digest, number][] } };
}

type StoredPlaces = Pick<Places, 'areas'> & { readonly offsets: Readonly<Record<Digest, number>> };

/**
 * The parsed text of the lock, or of its secrets; undefined where there is none, null for what is not JSON.
 *
 * @throws ConfigError `lock.unreadable`, `lock.too-large`
 */
export function readJson(path: string): Json | undefined {
  try {
    return JSON.parse(
      readInputFile(path, { domain: 'lock', limit: LIMIT }).toString('utf8'),
    ) as Json;
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    if (isErrno(cause, 'ENOENT', 'ENOTDIR')) return undefined;
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('lock.unreadable', `"${path}" cannot be read`, {
      cause,
      hint: 'correct or remove it',
    });
  }
}

type Rule = { readonly expected: string; readonly isRight: (value: unknown) => boolean };

/** Characters of a name, a version or a reference. */
const MAX_TEXT = 4096;

const isText = (value: unknown): boolean =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT;
const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && /^[A-Za-z0-9+/]+={0,2}$/.test(value);
const isDigestText = (value: unknown): boolean => typeof value === 'string' && isDigest(value);
const isPinned = (value: unknown): boolean =>
  isText(value) && isDigestText(String(value).replace(/^[^@]+@/, ''));
const isOffset = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const hasMembers = (value: unknown, members: Readonly<Record<string, Rule['isRight']>>): boolean =>
  isObject(value) && Object.entries(members).every(([name, isRight]) => isRight(value[name]));
const isRecord = (value: unknown, isRight: Rule['isRight']): boolean =>
  isObject(value) && Object.values(value).every(isRight);
const isListOf = (value: unknown, isRight: Rule['isRight']): boolean =>
  Array.isArray(value) && value.every(isRight);
const isRisk = (value: unknown): boolean =>
  isObject(value) && ['name', 'message', 'url'].every((name) => typeof value[name] === 'string');
const isHop = (value: unknown): boolean =>
  hasMembers(value, {
    version: isText,
    image: isPinned,
    risks: (risks) => isListOf(risks, isRisk),
  });
const isDigestObject = (value: unknown): boolean => hasMembers(value, { digest: isDigestText });

const digests: Rule = {
  expected: 'digests by name',
  isRight: (value) => isRecord(value, isDigestText),
};
const isOptional =
  (isRight: Rule['isRight']): Rule['isRight'] =>
  (value) =>
    value === undefined || isRight(value);
const optional = ({ expected, isRight }: Rule): Rule => ({
  expected,
  isRight: isOptional(isRight),
});
const digestObject: Rule = { expected: 'a digest', isRight: isDigestObject };
const digest: Rule = { expected: 'a digest', isRight: isDigestText };

const FIELDS: Readonly<Record<Exclude<keyof Lock, 'kind'>, Rule>> = {
  format: { expected: '1', isRight: (value) => value === 1 },
  product: { expected: 'a product', isRight: isText },
  program: digest,
  release: optional({
    expected: 'version, channel, architecture and a reference by digest',
    isRight: (value) =>
      hasMembers(value, {
        version: isText,
        channel: isOptional(isText),
        architecture: isText,
        reference: isPinned,
      }),
  }),
  path: optional({
    expected: 'the version of the cluster, and updates with an image by digest',
    isRight: (value) =>
      hasMembers(value, { from: isOptional(isText), hops: (hops) => isListOf(hops, isHop) }),
  }),
  seed: optional({
    expected: 'version, reference and architecture',
    isRight: (value) =>
      hasMembers(value, { version: isText, reference: isText, architecture: isText }),
  }),
  signatures: {
    expected: 'keys and digests by version',
    isRight: (value) =>
      isRecord(value, (one) => hasMembers(one, { key: isText, digest: isDigestText })),
  },
  base: optional({
    expected: 'a digest',
    isRight: (value) => hasMembers(value, { digest: isDigestText, url: isOptional(isText) }),
  }),
  installer: optional(digestObject),
  registryImage: optional({ expected: 'a reference by digest', isRight: isPinned }),
  catalogs: digests,
  images: {
    expected: 'references by digest',
    isRight: (value) => isListOf(value, isPinned),
  },
  tags: digests,
  drawn: digests,
  secrets: optional({ expected: 'base64', isRight: isBase64 }),
  contents: digest,
  places: optional({
    expected: 'areas, and offsets by digest',
    isRight: (value) =>
      hasMembers(value, {
        areas: (areas) =>
          hasMembers(areas, {
            structures: isOffset,
            files: isOffset,
            index: isOffset,
            smallBlobs: isOffset,
            blobs: isOffset,
          }),
        offsets: (offsets) =>
          isRecord(offsets, isOffset) && Object.keys(offsets as object).every(isDigestText),
      }),
  }),
};

function malformed(
  path: string,
  { field, expected, found }: { field: string; expected: string; found: unknown },
): ConfigError {
  return new ConfigError('lock.malformed', `"${path}" is not a lock: see its member "${field}"`, {
    expected,
    found: describeFound(found),
    hint: 'restore it, or remove it and run "sealift lock"',
  });
}

function describeFound(found: unknown): string {
  if (found === undefined) return 'none';
  if (typeof found === 'object') return found === null ? 'null' : 'something else';
  return JSON.stringify(found).slice(0, 100);
}
