import { hkdfSync } from 'node:crypto';
import { KEY_SIZE, openSealedBytes, sealBytes } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import type { Json } from '../../base/text/json.ts';
import { INTEGER, LEFT_OUT, record, TEXT, type Shape } from '../../shape/shape.ts';

/* Owns the interface of stored records, and the key that encrypts them. */

export type Collection = 'clusters' | 'infra-envs' | 'image-urls';

/** A document, with the members that the state itself reads. Secrets in it are sealed by the caller. */
export type StoredRecord = {
  /** A UUID. */
  readonly id: string;
  /** Tenant that may see it. */
  readonly tenant: string;
  /** Starts at 1; each replacement increments it. */
  readonly revision: number;
  readonly body: Json;
};

/**
 * Storage of the service's records. A resolved call survives any end of this process; a killed call has
 * taken effect completely or not at all.
 */
export type State = {
  readonly read: (collection: Collection, id: string) => Promise<StoredRecord | undefined>;
  /** Lists records in the order of their ids. */
  readonly list: (collection: Collection, tenant: string) => Promise<readonly StoredRecord[]>;
  readonly create: (collection: Collection, record: StoredRecord) => Promise<void>;
  /** Replaces a record; false if the stored one is missing or does not have the previous revision. */
  readonly replace: (collection: Collection, record: StoredRecord) => Promise<boolean>;
  /** Removes a record; false if there is no such record. */
  readonly remove: (collection: Collection, id: string) => Promise<boolean>;
  /** Stores a text by name unless one exists, and returns the stored one. */
  readonly keepFirst: (name: string, text: string) => Promise<string>;
  /** Rejects while records cannot be read. */
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Keys derived from `--key`; each use has its own key. */
export type ServiceKey = {
  /** @param owner record that the text belongs to: it opens for no other owner */
  readonly seal: (text: string, owner: string) => string;
  /** @throws IntegrityError `service.key-wrong` */
  readonly open: (sealed: string, owner: string) => string;
  /** Derives the key for another purpose: 32 bytes. */
  readonly derive: (purpose: string) => Uint8Array;
};

export const COLLECTIONS: readonly Collection[] = ['clusters', 'infra-envs', 'image-urls'];

const describeRecord = (...texts: readonly string[]) => {
  const members = Object.fromEntries(texts.map((name) => [name, TEXT]));
  const body: Shape<Json> = record(members, { others: 'kept' });
  return record({ id: TEXT, tenant: TEXT, revision: INTEGER, body }, LEFT_OUT);
};

/** Stored records, with the members of the body that are always there. */
export const RECORDS: Readonly<Record<Collection, Shape<StoredRecord>>> = {
  'clusters': describeRecord('name', 'openshift_version', 'created_at'),
  'infra-envs': describeRecord('name', 'sealed', 'updated_at'),
  'image-urls': describeRecord('updated_at'),
};

/** Minimum bytes of a key; passwords that people make up are shorter. */
const LEAST = 32;

/** @throws ConfigError `service.key-short` */
export function readServiceKey(secret: Secret): ServiceKey {
  const given = Buffer.from(secret.reveal());
  if (given.length < LEAST) {
    throw new ConfigError('service.key-short', `--key has ${given.length} bytes`, {
      expected: `at least ${LEAST} bytes`,
      found: `${given.length} bytes`,
      hint: 'make one with "openssl rand -hex 32"',
    });
  }
  // RFC 5869: the randomness may be anywhere in the given text, not in every byte.
  const derive = (purpose: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', given, 'sealift serve', purpose, KEY_SIZE));
  const records = derive('records');
  return {
    seal: (text, owner) => sealBytes(Buffer.from(text), records, owner).toString('base64'),
    open(sealed, owner) {
      const bytes = openSealedBytes(Buffer.from(sealed, 'base64'), records, owner);
      if (bytes) return bytes.toString('utf8');
      throw new IntegrityError(
        'service.key-wrong',
        `--key does not decrypt the stored data: ${owner}`,
        {
          hint: 'give the key that the service was first started with',
        },
      );
    },
    derive,
  };
}

const CHECKED = 'key-check';

/**
 * Checks that the records were made with this key; the first key is accepted.
 *
 * @throws IntegrityError `service.key-wrong`
 */
export async function checkServiceKey(key: ServiceKey, state: State): Promise<void> {
  key.open(await state.keepFirst(CHECKED, key.seal('', CHECKED)), CHECKED);
}
