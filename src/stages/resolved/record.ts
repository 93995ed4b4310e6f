import { isDigest } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import type { Places } from '../../iso/index.ts';
import { decode, requireDecoded } from '../../shape/decode.ts';
import {
  DIGEST,
  FILLED,
  FREE,
  integerFrom,
  list,
  mapping,
  oneOf,
  optional,
  record,
  refine,
  TEXT,
  transform,
  type Shape,
  type TypeOf,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';

/* Owns the format of the lock and of its secrets. */

export const LOCK_NAME = 'sealift.lock.json';

const KEPT = { others: 'kept' } as const;

/** Characters of a name, a version or a reference. */
const MAX_TEXT = 4096;

const NAME = refine(FILLED, ({ length }) =>
  length <= MAX_TEXT ? undefined : `has more than ${MAX_TEXT} characters`,
);
const PINNED = refine(NAME, (reference) =>
  isDigest(reference.replace(/^[^@]+@/, '')) ? undefined : 'is not a reference by digest',
);
const SUM: Shape<string> = DIGEST;
const OFFSET = integerFrom(0);

const PATH = record(
  {
    from: optional(NAME),
    fromImage: optional(PINNED),
    hops: list(
      record(
        {
          version: NAME,
          image: PINNED,
          risks: list(record({ name: TEXT, message: TEXT, url: TEXT }, KEPT)),
        },
        KEPT,
      ),
    ),
  },
  KEPT,
);

const AREAS = record(
  { structures: OFFSET, files: OFFSET, index: OFFSET, smallBlobs: OFFSET, blobs: OFFSET },
  KEPT,
);

const OFFSETS = transform(
  refine(mapping(OFFSET), (offsets) =>
    Object.keys(offsets).every(isDigest) ? undefined : 'has a name that is not a digest',
  ),
  (offsets) => Object.entries(offsets) as Places['offsets'],
);

const LOCK = record(
  {
    kind: oneOf('SealiftLock'),
    format: oneOf(1),
    product: NAME,
    /** Digest of the program: another one may make other bytes. */
    program: SUM,
    /** Absent on media that are made without a release. */
    release: optional(
      record(
        {
          version: NAME,
          /** Absent if a pullspec is given. */
          channel: optional(NAME),
          architecture: NAME,
          reference: PINNED,
        },
        KEPT,
      ),
    ),
    /** The releases that upgrade ISOs lead from and to, as the update graph had them. */
    path: optional(PATH),
    /** The seed that installation ISOs install; its reference is as it is configured. */
    seed: optional(record({ version: NAME, reference: NAME, architecture: NAME }, KEPT)),
    /** Signatures by version: fingerprint of the key, and digest of the messages; or `unsigned`. */
    signatures: mapping(record({ key: NAME, digest: SUM }, KEPT)),
    /** Live ISO that a medium grew from, absent if it does not boot; `url` is from a CoreOS stream. */
    base: optional(record({ digest: SUM, url: optional(NAME) }, KEPT)),
    installer: optional(record({ digest: SUM }, KEPT)),
    registryImage: optional(PINNED),
    catalogs: mapping(SUM),
    /** Every image on the medium, by digest, sorted. */
    images: list(PINNED),
    tags: mapping(DIGEST),
    /** Digest of the randomly drawn value, by stage; the values are in `LockSecrets`. */
    drawn: mapping(SUM),
    /** Digest; see `digestContents`. */
    contents: SUM,
    /** Absent on media without an index. */
    places: optional(record({ areas: AREAS, offsets: OFFSETS }, { others: 'left-out' })),
  },
  KEPT,
);

/** Everything that a build resolved, by digest. Has no secret: belongs next to the configuration in Git. */
export type Lock = TypeOf<typeof LOCK>;

/** Formats a lock with one value in each line, so that Git shows the differences between two locks. */
export const formatLock = ({ places, ...lock }: Lock): string =>
  formatReadableJson({
    ...lock,
    ...(places && {
      places: { areas: places.areas, offsets: Object.fromEntries(places.offsets) },
    }),
  });

/** Bytes; 130,000 places take 12 MB. */
const LIMIT = 32 << 20;

/** Undefined if there is no lock. */
export function readLock(path: string): Lock | undefined {
  const value = readJson(path);
  if (value === undefined) return undefined;
  if (value === null) {
    throw new ConfigError('lock.malformed', `"${path}" is not a valid lock: it is not JSON`, {
      hint: 'resolve the merge conflict in it, restore it, or remove it and run "sealift lock"',
    });
  }
  const { kind, secrets } = objectOrEmpty(value);
  if (kind === 'SealiftLock' && secrets !== undefined) throw encrypted(path);
  return requireDecoded(decode(LOCK, value), ([first]) => {
    const message = `"${path}" is not a valid lock: ${describeFinding(first)}`;
    const hint = 'restore it, or remove it and run "sealift lock"';
    return new ConfigError('lock.malformed', message, { hint });
  });
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

/** Parsed text of the lock or of its secrets; undefined if there is no file, null if it is not JSON. */
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

/** Every value that a stage draws is a text. */
const VALUE: Shape<Json> = refine(FREE, (value) =>
  typeof value === 'string' ? undefined : 'is not a text',
);
const DRAWN = record({ fingerprint: SUM, value: VALUE }, KEPT);

/** Bytes of the key for fingerprints of inputs. */
const KEY_SIZE = 32;

const LOCK_SECRETS = record(
  {
    kind: oneOf('SealiftLockSecrets'),
    format: oneOf(1),
    /** The key for fingerprints of inputs, base64. */
    key: refine(TEXT, (key) =>
      Buffer.from(key, 'base64').length === KEY_SIZE ? undefined : `is not ${KEY_SIZE} bytes`,
    ),
    /** Values by stage. */
    drawn: mapping(DRAWN),
  },
  KEPT,
);

/** Values that were drawn at random for a lock, which has only their digests. */
export type LockSecrets = TypeOf<typeof LOCK_SECRETS>;

/** A value that was drawn, and a fingerprint of the inputs it was drawn for. */
export type Drawn = TypeOf<typeof DRAWN>;

/** Path of the secrets next to the lock: `sealift.lock.secrets` for `sealift.lock.json`. */
export const secretsPathOf = (lock: string): string => `${lock.replace(/\.json$/, '')}.secrets`;

export const formatLockSecrets = (secrets: LockSecrets): string => formatReadableJson(secrets);

/** Undefined if there are no secrets. */
export function readLockSecrets(lock: string): LockSecrets | undefined {
  const path = secretsPathOf(lock);
  const value = readJson(path);
  if (value === undefined) return undefined;
  return requireDecoded(decode(LOCK_SECRETS, value), () => {
    const message = `"${path}" does not contain the secrets of a lock`;
    const hint = 'restore it, or remove it and run "sealift lock"';
    return new ConfigError('lock.secrets-malformed', message, { hint });
  });
}

/** Names a field of a lock: `release.channel`, `tags["quay.io/a:1"]`. */
export const nameField = (path: string, name: string): string =>
  /^\w+$/.test(name) ? `${path}.${name}` : `${path}["${name}"]`;

/** `field` is its name in the lock. */
export const mismatch = (
  field: string,
  values: { readonly expected: string; readonly found: string },
): ConfigError =>
  new ConfigError('lock.mismatch', `${field} differs from the lock`, {
    ...values,
    hint: 'restore the earlier value, or update the lock with "sealift lock"',
  });
