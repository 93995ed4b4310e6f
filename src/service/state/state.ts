import type { Json } from '../../base/text/json.ts';
import { INTEGER, LEFT_OUT, optional, record, TEXT, type Shape } from '../../shape/shape.ts';

/* Owns the interface of stored records. */

export type Collection = 'clusters' | 'infra-envs' | 'image-urls';

export const COLLECTIONS: readonly Collection[] = ['clusters', 'infra-envs', 'image-urls'];

/** Facts about a record that are known without its body. */
export type RecordHead = {
  /** A UUID. */
  readonly id: string;
  /** Tenant that may see it. */
  readonly tenant: string;
  /** Starts at 1; each replacement increments it. */
  readonly revision: number;
  /** Id of the cluster that an InfraEnv is bound to. */
  readonly parent?: string;
};

/** A document. All of its body is stored encrypted. */
export type StoredRecord = RecordHead & { readonly body: Json };

export type RecordQuery = {
  readonly tenant: string;
  /** Only records with this parent. */
  readonly parent?: string;
  /** Only records after this id. */
  readonly after?: string;
  /** Most records of the page; fewer if their bodies are large. */
  readonly limit?: number;
};

export type RecordPage = {
  /** In the order of their ids. */
  readonly records: readonly StoredRecord[];
  /** Ids of records in between that cannot be read. */
  readonly damaged: readonly string[];
  /** Last id of the page, if more records follow. */
  readonly next?: string;
};

/** The state of all records at one moment; each change leads to another one. */
export type LedgerHead = { readonly seq: number; readonly mac: string };

/** Most records of a tenant, and most bytes of them as they are stored. */
export type TenantLimits = { readonly records: number; readonly bytes: number };

/**
 * Storage of the service's records. A resolved call survives any end of this process; a killed call has
 * taken effect completely or not at all. Every call may throw IntegrityError `service.rolled-back`,
 * `service.ledger-damaged`.
 */
export type State = {
  /** Finds a record without reading it, so also one that is damaged. */
  readonly find: (collection: Collection, id: string) => Promise<RecordHead | undefined>;
  /** `tenant`: records of others are not found, nor read; default: all are found. */
  readonly read: (
    collection: Collection,
    id: string,
    tenant?: string,
  ) => Promise<StoredRecord | undefined>;
  readonly list: (collection: Collection, query: RecordQuery) => Promise<RecordPage>;
  readonly create: (collection: Collection, record: StoredRecord) => Promise<void>;
  /** Replaces a record; false if the stored one is missing or does not have the previous revision. */
  readonly replace: (collection: Collection, record: StoredRecord) => Promise<boolean>;
  /** Removes a record, also one that is damaged; false if there is no such record. */
  readonly remove: (collection: Collection, id: string) => Promise<boolean>;
  /** Gives all records of a tenant to another one. */
  readonly adopt: (former: string, tenant: string) => Promise<void>;
  /** Encrypts records of the first format as the later ones are; returns their number. */
  readonly reseal: () => Promise<number>;
  readonly head: () => LedgerHead;
  /** Rejects while records cannot be read. */
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
};

const describeBody = (...texts: readonly string[]): Shape<Json> =>
  record(Object.fromEntries(texts.map((name) => [name, TEXT])), { others: 'kept' });

/** Bodies in the first format: only private members of InfraEnvs were encrypted, in `sealed`. */
export const FORMER_BODIES: Readonly<Record<Collection, Shape<Json>>> = {
  'clusters': describeBody('name', 'openshift_version', 'created_at'),
  'infra-envs': describeBody('name', 'sealed', 'updated_at'),
  'image-urls': describeBody('updated_at'),
};

export const RECORD_FILE: Shape<StoredRecord> = record(
  {
    id: TEXT,
    tenant: TEXT,
    revision: INTEGER,
    parent: optional(TEXT),
    body: record({}, { others: 'kept' }),
  },
  LEFT_OUT,
);
