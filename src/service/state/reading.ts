import { IntegrityError } from '../../base/errors.ts';
import type { Backend, RowPlace, Row } from './backend.ts';
import type { RecordChanges } from './changes.ts';
import type { KeyRing } from './keys.ts';
import { digestRow, type LedgerEntry, type Ledger } from './ledger.ts';
import { damagedRecord, openRow } from './sealing.ts';
import type { Collection, RecordQuery, State, StoredRecord } from './state.ts';

/* Owns reading: bodies come from the backend, and recent ones from memory. */

type ReadingTools = {
  readonly backend: Pick<Backend, 'readMany'>;
  readonly ring: KeyRing;
  readonly ledger: Ledger;
  readonly changes: RecordChanges;
};

/** Bytes of bodies in memory. */
const MEMORY = 8 << 20;

/** Bytes of the bodies of a page; a single one may have more. */
const PAGE_BYTES = 4 << 20;

/** Most records of a page. */
const PAGE = 1000;

/** Attempts at a record that others change all the time. */
const ATTEMPTS = 20;

export function createReading(tools: ReadingTools): Pick<State, 'read' | 'list'> {
  const { backend, ring, ledger, changes } = tools;
  const memory = createMemory(MEMORY);
  const recall = (place: RowPlace): StoredRecord | undefined => {
    const digest = ledger.find(place.collection, place.id)?.digest;
    return digest === undefined ? undefined : memory.get(keyOf(place, digest));
  };
  /** Undefined if the row is not the one of the ledger. */
  const open = async (place: RowPlace, row: Row | undefined): Promise<StoredRecord | undefined> => {
    const { collection, id } = place;
    const entry = ledger.find(collection, id);
    if (!entry || !isStored(entry, row)) return undefined;
    const body = await openRow(ring, collection, { id, row });
    const { tenant, revision, parent } = entry;
    const record = { id, tenant, revision, ...(parent !== undefined && { parent }), body };
    memory.put(keyOf(place, entry.digest), record, entry.size);
    return record;
  };
  const read: State['read'] = async (collection, id, tenant) => {
    const place = { collection, id };
    let last: number | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const isKnown = recall(place) !== undefined;
      const { seq, row } = await changes.look(isKnown ? undefined : place);
      const entry = ledger.find(collection, id);
      if (!isOf(tenant, entry)) return undefined;
      const found = recall(place) ?? (await open(place, row));
      if (found) return found;
      // A change came between the ledger and the row, unless there was no change since.
      if (!isKnown && seq === last) break;
      last = isKnown ? last : seq;
      await changes.wait();
    }
    throw damagedRecord(collection, id);
  };
  return {
    read,
    async list(collection, query) {
      await changes.look();
      const { ids, next } = choosePage(ledger, collection, query);
      const unknown = ids.filter((id) => !recall({ collection, id }));
      const rows = await backend.readMany(collection, unknown);
      const records: StoredRecord[] = [];
      const damaged: string[] = [];
      for (const id of ids) {
        const place = { collection, id };
        const found = await unlessDamaged(
          async () =>
            recall(place) ??
            (await open(place, rows.get(id))) ??
            (await read(collection, id, query.tenant)),
        );
        if (found === 'damaged') damaged.push(id);
        else if (found) records.push(found);
      }
      return { records, damaged, ...(next !== undefined && { next }) };
    },
  };
}

const isOf = (tenant: string | undefined, entry: LedgerEntry | undefined): boolean =>
  entry !== undefined && (tenant === undefined || tenant === entry.tenant);

const isStored = ({ digest }: LedgerEntry, row: Row | undefined): row is Row =>
  row !== undefined && digestRow(row, row.body) === digest;

async function unlessDamaged<Value>(read: () => Promise<Value>): Promise<Value | 'damaged'> {
  try {
    return await read();
  } catch (error) {
    if (isDamage(error)) return 'damaged';
    throw error;
  }
}

export const isDamage = (error: unknown): boolean =>
  error instanceof IntegrityError && error.code === 'service.record-damaged';

/** Chooses the ids of a page by the index alone. */
function choosePage(
  ledger: Ledger,
  collection: Collection,
  { tenant, parent, after = '', limit = PAGE }: RecordQuery,
): { readonly ids: readonly string[]; readonly next?: string } {
  const ids: string[] = [];
  let bytes = 0;
  const isAsked = (id: string): boolean =>
    id > after && (parent === undefined || ledger.find(collection, id)?.parent === parent);
  for (const id of ledger.idsOf(collection, tenant).filter(isAsked).sort()) {
    bytes += ledger.find(collection, id)?.size ?? 0;
    const last = ids.at(-1);
    if (last !== undefined && (ids.length >= limit || bytes > PAGE_BYTES)) {
      return { ids, next: last };
    }
    ids.push(id);
  }
  return { ids };
}

const keyOf = ({ collection, id }: RowPlace, digest: string): string =>
  `${collection} ${id} ${digest}`;

/** Creates a memory of records; the one that was used longest ago leaves first. */
function createMemory(limit: number) {
  const known = new Map<string, { readonly record: StoredRecord; readonly size: number }>();
  let bytes = 0;
  return {
    get(key: string): StoredRecord | undefined {
      const found = known.get(key);
      if (!found) return undefined;
      known.delete(key);
      known.set(key, found);
      return found.record;
    },
    put(key: string, record: StoredRecord, size: number): void {
      if (known.has(key)) return;
      known.set(key, { record, size });
      bytes += size;
      for (const [oldest, { size: freed }] of known) {
        if (bytes <= limit) break;
        known.delete(oldest);
        bytes -= freed;
      }
    },
  };
}
