import { isDigest, type Digest, digestOf } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { formatReadableJson, type Json, formatCanonicalJson } from '../../base/text/json.ts';
import type { StageEntry, StageStore } from '../../engine/index.ts';
import type { Places } from '../../iso/index.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { TagDigests } from './tags.ts';

/* The format of the lock and of its secrets, and the ledger of values drawn at random. */

export const LOCK_NAME = 'sealift.lock.json';

/**
 * Everything that a build resolved, by digest. It has no secret: it belongs next to the
 * configuration in Git.
 */
export type Lock = {
  readonly kind: 'SealiftLock';
  readonly format: 1;
  readonly product: string;
  /** Digest of the program: another one may make other bytes. */
  readonly program: string;
  /** Absent on media that are made without a release. */
  readonly release?: {
    readonly version: string;
    /** Absent if a pullspec is given. */
    readonly channel?: string;
    readonly architecture: string;
    /** Reference by digest. */
    readonly reference: string;
  };
  /** The releases that upgrade ISOs lead from and to, as the update graph had them. */
  readonly path?: UpgradePath;
  /** The seed that installation ISOs install. */
  readonly seed?: LockedSeed;
  /** Signatures by version: fingerprint of the key, and digest of the messages; or `unsigned`. */
  readonly signatures: Readonly<Record<string, { readonly key: string; readonly digest: string }>>;
  /** Absent on media that do not boot. */
  readonly base?: LockedBase;
  readonly installer?: { readonly digest: string };
  readonly registryImage?: string;
  readonly catalogs: Readonly<Record<string, string>>;
  /** Every image on the medium, by digest, sorted. */
  readonly images: readonly string[];
  readonly tags: TagDigests;
  /** Digest of the randomly drawn value, by stage; the values are in `LockSecrets`. */
  readonly drawn: Readonly<Record<string, string>>;
  /** Digest; see `digestContents`. */
  readonly contents: string;
  /** Absent on media without an index. */
  readonly places?: Places;
};

export type LockedSeed = {
  readonly version: string;
  /** Reference as it is configured. */
  readonly reference: string;
  readonly architecture: string;
};

/** The live ISO that a medium grew from; `url` is present if a CoreOS stream named it. */
export type LockedBase = { readonly digest: string; readonly url?: string };

/**
 * Formats a lock with one value in each line, so that Git shows the differences between two locks.
 */
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
 * Reads a lock.
 * @returns undefined if there is no lock
 * @throws ConfigError `lock.unreadable`, `lock.too-large`, `lock.malformed`,
 * `lock.secrets-encrypted`
 */
export function readLock(path: string): Lock | undefined {
  const value = readJson(path);
  if (value === undefined) return undefined;
  if (value === null) {
    throw new ConfigError('lock.malformed', `"${path}" is not a valid lock: it is not JSON`, {
      hint: 'resolve the merge conflict in it, restore it, or remove it and run "sealift lock"',
    });
  }
  if (!isObject(value) || value['kind'] !== 'SealiftLock') {
    throw malformed(path, { field: 'kind', expected: 'SealiftLock', found: value });
  }
  if (value['secrets'] !== undefined) throw encrypted(path);
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

/** Earlier versions encrypted the drawn values in the lock itself, under a key of the user. */
const encrypted = (path: string): ConfigError =>
  new ConfigError(
    'lock.secrets-encrypted',
    `"${path}" has encrypted secrets, which a lock no longer has`,
    {
      expected: `secrets in "${secretsPathOf(path)}"`,
      found: 'a member "secrets"',
      hint: 'remove the lock, run "sealift lock", and keep sealift.lock.secrets in the secret store of your CI',
    },
  );

type StoredPlaces = Pick<Places, 'areas'> & { readonly offsets: Readonly<Record<Digest, number>> };

/**
 * Reads the parsed text of the lock, or of its secrets; undefined if there is no file, null if it
 * is not JSON.
 *
 * @throws ConfigError `lock.unreadable`, `lock.too-large`
 */
function readJson(path: string): Json | undefined {
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
  return new ConfigError(
    'lock.malformed',
    `"${path}" is not a valid lock: its member "${field}" is wrong`,
    {
      expected,
      found: describeFound(found),
      hint: 'restore it, or remove it and run "sealift lock"',
    },
  );
}

function describeFound(found: unknown): string {
  if (found === undefined) return 'none';
  if (typeof found === 'object') return found === null ? 'null' : 'something else';
  return JSON.stringify(found).slice(0, 100);
}

/** Values that were drawn at random for a lock, which has only their digests. */
export type LockSecrets = {
  readonly kind: 'SealiftLockSecrets';
  readonly format: 1;
  /** 32 bytes, base64: the key for fingerprints of inputs. */
  readonly key: string;
  /** Values by stage. */
  readonly drawn: Readonly<Record<string, Drawn>>;
};

/** A value that was drawn, and a fingerprint of the inputs it was drawn for. */
export type Drawn = { readonly fingerprint: string; readonly value: Json };

/** Path of the secrets next to the lock: `sealift.lock.secrets` for `sealift.lock.json`. */
export const secretsPathOf = (lock: string): string => `${lock.replace(/\.json$/, '')}.secrets`;

export const formatLockSecrets = (secrets: LockSecrets): string => formatReadableJson(secrets);

/**
 * Reads the secrets of a lock.
 * @returns undefined if there are no secrets
 * @throws ConfigError `lock.unreadable`, `lock.too-large`, `lock.secrets-malformed`
 */
export function readLockSecrets(lock: string): LockSecrets | undefined {
  const path = secretsPathOf(lock);
  const value = readJson(path);
  return value === undefined ? undefined : requireSecrets(value, path);
}

function requireSecrets(value: Json, path: string): LockSecrets {
  if (isLockSecrets(value)) return value;
  throw new ConfigError(
    'lock.secrets-malformed',
    `"${path}" does not contain the secrets of a lock`,
    {
      hint: 'restore it, or remove it and run "sealift lock"',
    },
  );
}

function isLockSecrets(value: unknown): value is LockSecrets {
  if (!isObject(value) || value['kind'] !== 'SealiftLockSecrets' || value['format'] !== 1) {
    return false;
  }
  const { key, drawn } = value;
  if (typeof key !== 'string' || Buffer.from(key, 'base64').length !== 32) return false;
  return isObject(drawn) && Object.values(drawn).every(isDrawn);
}

const isDrawn = (value: unknown): boolean =>
  isObject(value) &&
  'value' in value &&
  typeof value['fingerprint'] === 'string' &&
  isDigest(value['fingerprint']);

/** Names a field of a lock: `release.channel`, `tags["quay.io/a:1"]`. */
export const nameField = (path: string, name: string): string =>
  /^\w+$/.test(name) ? `${path}.${name}` : `${path}["${name}"]`;

/**
 * Error for a result of a build that differs from the lock.
 * @param field its name in the lock
 */
export const mismatch = (
  field: string,
  values: { readonly expected: string; readonly found: string },
): ConfigError =>
  new ConfigError('lock.mismatch', `${field} differs from the lock`, {
    ...values,
    hint: 'restore the earlier value, or update the lock with "sealift lock"',
  });

/** Values drawn at random in this run, or for it before; by stage. */
export type DrawnLedger = {
  readonly store: StageStore;
  readonly list: () => Readonly<Record<string, Drawn>>;
};

export type DrawnSource = {
  /**
   * Secrets that were drawn for the lock; they take precedence over the values in this work
   * directory.
   */
  readonly secrets?: LockSecrets;
  /** Present in a build that draws nothing: the digests of the values that it may use. */
  readonly locked?: Lock['drawn'];
};

export const digestOfDrawn = (value: Json): Digest => digestOf(formatCanonicalJson(value));

/** Creates a store that records drawn values, and takes the values that were drawn for the lock. */
export function createDrawnLedger(store: StageStore, source: DrawnSource = {}): DrawnLedger {
  const seen = new Map<string, Drawn>();
  const { secrets, locked } = source;
  return {
    list: () => Object.fromEntries([...seen].sort(([a], [b]) => (a < b ? -1 : 1))),
    store: {
      ...store,
      async readDrawn(entry) {
        const { stage, fingerprint } = entry;
        const held = secrets?.drawn[stage];
        const isHeld = held?.fingerprint === fingerprint;
        const known = isHeld ? { result: held.value } : await store.readDrawn(entry);
        if (locked) requireLockedDrawn(entry, known?.result, { ...source, locked });
        if (known) seen.set(stage, { fingerprint, value: known.result });
        return known;
      },
      async writeDrawn(entry, result) {
        const stored = await store.writeDrawn(entry, result);
        seen.set(entry.stage, { fingerprint: entry.fingerprint, value: stored });
        return stored;
      },
    },
  };
}

function requireLockedDrawn(
  { stage, fingerprint }: StageEntry,
  value: Json | undefined,
  { secrets, locked }: DrawnSource & { readonly locked: Lock['drawn'] },
): void {
  const field = nameField('drawn', stage);
  const expected = locked[stage];
  if (expected === undefined) throw mismatch(field, { expected: 'none', found: 'needed' });
  if (value !== undefined && digestOfDrawn(value) === expected) return;
  const held = secrets?.drawn[stage];
  if (held && held.fingerprint !== fingerprint) {
    throw mismatch(field, {
      expected: 'the inputs that it was drawn for',
      found: 'other inputs',
    });
  }
  if (held) throw mismatch(field, { expected, found: digestOfDrawn(held.value) });
  throw new ConfigError('lock.secrets-missing', `${field} is in no sealift.lock.secrets`, {
    expected,
    found: 'none',
    hint: 'put the sealift.lock.secrets that was written with the lock beside it',
  });
}
