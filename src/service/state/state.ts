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
