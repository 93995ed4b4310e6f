import type { LedgerLine } from './ledger.ts';
import type { Texts } from './keys.ts';
import type { Collection, RecordHead } from './state.ts';

/* Owns the interface of what stores rows and the ledger: files, or PostgreSQL. It knows no key. */

/** A record as it is stored. */
export type Row = Omit<RecordHead, 'id'> & {
  /** JSON text. */
  readonly body: string;
};

export type RowPlace = { readonly collection: Collection; readonly id: string };

export type PlacedRow = RowPlace & {
  /** Absent: it cannot be read. */
  readonly row: Row | undefined;
};

/** Stored lines and a row, both of one moment. */
export type Look = {
  /** Lines of the ledger from the given number on. */
  readonly lines: readonly LedgerLine[];
  /** Number of lines at the end whose rows may not have been written. */
  readonly unsettled: number;
  readonly row?: Row;
};

export type Change = {
  readonly lines: readonly LedgerLine[];
  /** True if the first line begins the ledger, so that earlier lines are removed. */
  readonly isBase?: boolean;
  readonly put?: readonly (RowPlace & { readonly row: Row })[];
  readonly gone?: readonly RowPlace[];
};

export type Backend = Texts & {
  /** @param since number of the first line to return */
  readonly look: (since: number, place?: RowPlace) => Promise<Look>;
  readonly readMany: (
    collection: Collection,
    ids: readonly string[],
  ) => Promise<ReadonlyMap<string, Row>>;
  /**
   * Makes a change while no other process or call makes one: `plan` gets lines from `since` on, and returns
   * undefined if there is nothing to change.
   */
  readonly change: (
    since: () => number,
    plan: (lines: readonly LedgerLine[]) => Change | undefined,
  ) => Promise<void>;
  readonly scan: () => AsyncIterable<PlacedRow>;
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
};
