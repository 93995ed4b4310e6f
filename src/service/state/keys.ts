import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import { KEY_SIZE, openSealedBytes, sealBytes } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';

/*
 * Owns the keys of the service, in an envelope: `--key` encrypts a root key and one key for each
 * tenant, and nothing else. A new `--key` encrypts those few keys again; no record is touched.
 */

/** The key of an operator: it wraps keys. */
export type MasterKey = {
  /** Name of the key in what it has wrapped; it says nothing about the key. */
  readonly id: string;
  readonly wrap: (key: Uint8Array, subject: string) => string;
  /** Undefined if another key wrapped it, or for another subject. */
  readonly unwrap: (wrapped: string, subject: string) => Buffer | undefined;
  /** The given bytes, from which everything was derived in the first format. */
  readonly given: Uint8Array;
};

/** Keys of `--key` and `--previous-key`. */
export type MasterKeys = { readonly key: MasterKey; readonly previous?: MasterKey };

/** Short texts by name, beside the records. */
export type Texts = {
  readonly get: (name: string) => Promise<string | undefined>;
  /** Stores a text unless one of that name exists, and returns the stored one. */
  readonly keepFirst: (name: string, text: string) => Promise<string>;
  /** Replaces a text; false if it is not the expected one. */
  readonly swap: (name: string, before: string, after: string) => Promise<boolean>;
  /** Names that begin with this text. */
  readonly list: (prefix: string) => Promise<readonly string[]>;
};

export type ServiceKey = {
  /** Derives the key for a purpose from the root key: 32 bytes. */
  readonly derive: (purpose: string) => Uint8Array;
};

export type KeyRing = ServiceKey & {
  /**
   * The data key of a tenant, made when it is first needed: 32 bytes.
   *
   * @throws IntegrityError `service.key-wrong`
   */
  readonly ofTenant: (tenant: string) => Promise<Uint8Array>;
};

/** Minimum bytes of a key; passwords that people make up are shorter. */
const LEAST = 32;

/**
 * @param option that names the key
 * @throws ConfigError `service.key-short`
 */
export function readMasterKey(secret: Secret, option = '--key'): MasterKey {
  const given = Buffer.from(secret.reveal());
  if (given.length < LEAST) {
    throw new ConfigError('service.key-short', `${option} has ${given.length} bytes`, {
      expected: `at least ${LEAST} bytes`,
      found: `${given.length} bytes`,
      hint: 'make one with "openssl rand -hex 32"',
    });
  }
  const wrapping = deriveFrom(given, 'wrap keys');
  const id = Buffer.from(deriveFrom(given, 'name of the key')).toString('hex').slice(0, 16);
  return {
    id,
    wrap: (key, subject) => `${id}.${sealBytes(key, wrapping, subject).toString('base64')}`,
    unwrap(wrapped, subject) {
      const [by, sealed = ''] = wrapped.split('.');
      if (by !== id) return undefined;
      return openSealedBytes(Buffer.from(sealed, 'base64'), wrapping, subject);
    },
    given,
  };
}

/** RFC 5869: the randomness may be anywhere in the given text, not in every byte. */
const deriveFrom = (given: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', given, 'sealift serve', purpose, KEY_SIZE));

const ROOT = 'root-key';
const TENANT = 'tenant-key-';

/** Text with which the first format checked its key. */
const FORMER_CHECK = 'key-check';

/**
 * Opens the keys of stored records; new ones are made if there are no records.
 *
 * @throws IntegrityError `service.key-wrong`
 */
export async function openKeyRing(texts: Texts, keys: MasterKeys): Promise<KeyRing> {
  const root = unwrap(keys, await openRoot(texts, keys), ROOT);
  const known = new Map<string, Promise<Uint8Array>>();
  const open = async (tenant: string): Promise<Uint8Array> => {
    const name = nameOf(tenant);
    const stored = await texts.get(name);
    if (stored !== undefined) return unwrap(keys, stored, subjectOf(name));
    // While replicas change their keys, new keys are wrapped by the one that all of them have.
    const active = (await texts.get(ROOT))?.split('.')[0];
    const master = active === keys.previous?.id ? keys.previous : keys.key;
    const made = (master ?? keys.key).wrap(randomBytes(KEY_SIZE), subjectOf(name));
    return unwrap(keys, await texts.keepFirst(name, made), subjectOf(name));
  };
  return {
    derive: (purpose) => deriveFrom(root, purpose),
    ofTenant(tenant) {
      const key = known.get(tenant) ?? open(tenant);
      known.set(tenant, key);
      key.catch(() => known.delete(tenant));
      return key;
    },
  };
}

/** With records of the first format it is the given key itself: URLs and overlays of before stay valid. */
async function openRoot(texts: Texts, keys: MasterKeys): Promise<string> {
  const stored = await texts.get(ROOT);
  if (stored !== undefined) return stored;
  const check = await texts.get(FORMER_CHECK);
  const root = check === undefined ? randomBytes(KEY_SIZE) : findFormer(keys, check);
  return texts.keepFirst(ROOT, keys.key.wrap(root, ROOT));
}

function findFormer({ key, previous }: MasterKeys, check: string): Uint8Array {
  for (const master of previous ? [key, previous] : [key]) {
    const opened = openFormer(master.given, check, FORMER_CHECK);
    if (opened !== undefined) return master.given;
  }
  throw wrong();
}

/** Decrypts a text of the first format: bound to its owner alone. */
const openFormer = (root: Uint8Array, sealed: string, owner: string): string | undefined =>
  openFormerText({ derive: (purpose) => deriveFrom(root, purpose) }, sealed, owner);

/** Decrypts a text of the first format; undefined if the key is another one. */
export const openFormerText = (
  { derive }: ServiceKey,
  sealed: string,
  owner: string,
): string | undefined =>
  openSealedBytes(Buffer.from(sealed, 'base64'), derive('records'), owner)?.toString('utf8');

function unwrap({ key, previous }: MasterKeys, wrapped: string, subject: string): Uint8Array {
  const opened = key.unwrap(wrapped, subject) ?? previous?.unwrap(wrapped, subject);
  if (opened) return opened;
  throw wrong();
}

const wrong = (): IntegrityError =>
  new IntegrityError('service.key-wrong', '--key does not decrypt the stored keys', {
    hint: 'give the key that the service was first started with, or that "serve rekey" changed it to',
  });

/** Name of a tenant's key; tenants may have any characters. */
const nameOf = (tenant: string): string =>
  TENANT + createHash('sha256').update(tenant).digest('hex').slice(0, 32);

/** Binds a wrapped key to its tenant, whose digest is in the name. */
const subjectOf = (name: string): string => `data key ${name}`;

/** Attempts at a key that replicas change at the same time. */
const ATTEMPTS = 5;

/**
 * Wraps every key by `keys.key`; returns the number of keys that another key had wrapped. It may be killed
 * and run again, and services that have both keys go on meanwhile.
 *
 * @throws IntegrityError `service.key-wrong`
 */
export async function rewrapKeys(texts: Texts, keys: MasterKeys): Promise<number> {
  // The root is first: from then on, new keys are wrapped by the new one.
  let changed = await rewrapOne(texts, keys, ROOT);
  for (const name of await texts.list(TENANT)) changed += await rewrapOne(texts, keys, name);
  return changed;
}

async function rewrapOne(texts: Texts, keys: MasterKeys, name: string): Promise<number> {
  const subject = name === ROOT ? ROOT : subjectOf(name);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const stored = await texts.get(name);
    if (stored === undefined || keys.key.unwrap(stored, subject)) return 0;
    const wrapped = keys.key.wrap(unwrap(keys, stored, subject), subject);
    if (await texts.swap(name, stored, wrapped)) return 1;
  }
  throw wrong();
}
