import { hkdfSync } from 'node:crypto';
import { KEY_SIZE, openSealedBytes, sealBytes } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import type { Json } from '../../base/text/json.ts';

export type Collection = 'clusters' | 'infra-envs';

export const COLLECTIONS: readonly Collection[] = ['clusters', 'infra-envs'];

/** Texts that each body has. */
export const MEMBERS: Readonly<Record<Collection, readonly string[]>> = {
  'clusters': ['name', 'openshift_version', 'created_at'],
  'infra-envs': ['name', 'sealed', 'updated_at'],
};

/** A document with what the state itself looks at. Secrets in it are sealed before they come here. */
export type StoredRecord = {
  /** A UUID. */
  readonly id: string;
  /** Who may see it. */
  readonly tenant: string;
  /** From 1 on; each replacement is the next. */
  readonly revision: number;
  readonly body: Json;
};

/**
 * Where the service keeps its records. What a call resolved for survives any end of this process; what a
 * killed call left is either all there or not at all.
 */
export type State = {
  readonly read: (collection: Collection, id: string) => Promise<StoredRecord | undefined>;
  /** In the order of their ids. */
  readonly list: (collection: Collection, tenant: string) => Promise<readonly StoredRecord[]>;
  readonly create: (collection: Collection, record: StoredRecord) => Promise<void>;
  /** False where the record before it is not of the revision before, or there is none. */
  readonly replace: (collection: Collection, record: StoredRecord) => Promise<boolean>;
  /** False where there is none. */
  readonly remove: (collection: Collection, id: string) => Promise<boolean>;
  /** A text by name, of whoever came first: this one, unless there is one. */
  readonly keepFirst: (name: string, text: string) => Promise<string>;
  /** Rejects while records cannot be read. */
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Bytes that a key must have: what people think up is shorter. */
const LEAST = 32;

/** What the service makes of `--key`; each use has a key of its own. */
export type ServiceKey = {
  /** @param owner what the text belongs to: it opens for nothing else */
  readonly seal: (text: string, owner: string) => string;
  /** @throws IntegrityError `service.key-wrong` */
  readonly open: (sealed: string, owner: string) => string;
  /** The key for another purpose: 32 bytes. */
  readonly derive: (purpose: string) => Uint8Array;
};

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
  // RFC 5869: the given text has its randomness somewhere, not in every byte.
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
        `--key does not open what is stored: ${owner}`,
        {
          hint: 'give the key that the service was started with before',
        },
      );
    },
    derive,
  };
}

const CHECKED = 'key-check';

/**
 * Whether it is the key that the records are of; the first one is.
 *
 * @throws IntegrityError `service.key-wrong`
 */
export async function checkServiceKey(key: ServiceKey, state: State): Promise<void> {
  key.open(await state.keepFirst(CHECKED, key.seal('', CHECKED)), CHECKED);
}
