import { ConfigError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import type { Backend, RowPlace, Row } from './backend.ts';
import { createChanges, type RecordChanges } from './changes.ts';
import type { KeyRing } from './keys.ts';
import { digestRow, type LedgerEntry, type Ledger } from './ledger.ts';
import { createReading, isDamage } from './reading.ts';
import { isFormer, sealRecord } from './sealing.ts';
import { COLLECTIONS, type State, type StoredRecord, type TenantLimits } from './state.ts';

/* Owns the records: they are stored sealed, and held to the ledger. */

type RecordTools = {
  readonly backend: Backend;
  readonly ring: KeyRing;
  readonly ledger: Ledger;
  readonly limits: TenantLimits;
};

export function createRecords({ backend, ring, ledger, limits }: RecordTools): State {
  const changes = createChanges(backend, ledger);
  const reading = createReading({ backend, ring, ledger, changes });
  const storeAgain = createAgain({ ring, ledger, changes, reading });
  /** Stores a record if the one before it allows it. */
  const store = async (
    place: RowPlace,
    record: StoredRecord,
    isWanted: (before: LedgerEntry | undefined) => boolean,
  ): Promise<boolean> => {
    const row = await sealRecord(ring, place.collection, record);
    const entry = toEntry(row);
    return changes.commit(() => {
      const before = ledger.find(place.collection, place.id);
      if (!isWanted(before)) return undefined;
      requireRoom(ledger, limits, { entry, before });
      return [{ ...place, entry, row }];
    });
  };
  return {
    ...reading,
    async find(collection, id) {
      await changes.look();
      const entry = ledger.find(collection, id);
      if (!entry) return undefined;
      const { tenant, revision, parent } = entry;
      return { id, tenant, revision, ...(parent !== undefined && { parent }) };
    },
    async create(collection, record) {
      const place = { collection, id: record.id };
      if (await store(place, record, (before) => !before)) return;
      throw new Error(`${record.id} already exists`);
    },
    replace: (collection, record) =>
      store(
        { collection, id: record.id },
        record,
        (before) => before?.revision === record.revision - 1 && before.tenant === record.tenant,
      ),
    remove: (collection, id) =>
      changes.commit(() => (ledger.find(collection, id) ? [{ collection, id }] : undefined)),
    ...createConversions({ backend, ledger }, storeAgain),
    head: ledger.head,
    async check() {
      await backend.check();
      await changes.look();
    },
    close: backend.close,
  };
}

function createConversions(
  { backend, ledger }: Pick<RecordTools, 'backend' | 'ledger'>,
  storeAgain: (place: RowPlace, tenant: string) => Promise<void>,
): Pick<State, 'adopt' | 'reseal'> {
  return {
    async adopt(former, tenant) {
      for (const collection of COLLECTIONS) {
        for (const id of ledger.idsOf(collection, former)) {
          await storeAgain({ collection, id }, tenant);
        }
      }
    },
    async reseal() {
      let count = 0;
      for (const { collection, id, entry } of ledger.all()) {
        const row = (await backend.readMany(collection, [id])).get(id);
        if (!row || !entry || !isFormer(row)) continue;
        await storeAgain({ collection, id }, entry.tenant);
        count += 1;
      }
      return count;
    },
  };
}

type AgainTools = Pick<RecordTools, 'ring' | 'ledger'> & {
  readonly changes: RecordChanges;
  readonly reading: Pick<State, 'read'>;
};

/** Encrypts a record again, for a tenant. One that is damaged stays so, and changes its tenant. */
function createAgain({ ring, ledger, changes, reading }: AgainTools) {
  return async (place: RowPlace, tenant: string): Promise<void> => {
    const { collection, id } = place;
    const entry = ledger.find(collection, id);
    if (!entry) return;
    const record = await reading.read(collection, id).catch((error: unknown) => {
      if (isDamage(error)) return undefined;
      throw error;
    });
    const row = record && (await sealRecord(ring, collection, { ...record, tenant }));
    await changes.commit(() =>
      ledger.find(collection, id) === entry
        ? [{ ...place, entry: row ? toEntry(row) : { ...entry, tenant }, ...(row && { row }) }]
        : undefined,
    );
  };
}

export const toEntry = (row: Row, parent = row.parent): LedgerEntry => ({
  tenant: row.tenant,
  revision: row.revision,
  digest: digestRow(row, row.body),
  size: row.body.length,
  ...(parent !== undefined && { parent }),
});

function requireRoom(
  ledger: Ledger,
  limits: TenantLimits,
  { entry, before }: { readonly entry: LedgerEntry; readonly before: LedgerEntry | undefined },
): void {
  const { records, bytes } = ledger.usageOf(entry.tenant);
  if (!before && records >= limits.records) {
    throw tooMuch(`there are ${records} records already, and no more are allowed`);
  }
  const after = bytes + entry.size - (before?.size ?? 0);
  if (after <= limits.bytes || entry.size <= (before?.size ?? 0)) return;
  throw tooMuch(`the records would have more than ${formatSize(limits.bytes)}`);
}

const tooMuch = (problem: string): ConfigError =>
  new ConfigError('service.tenant-limit', `${problem}: delete some that are not used`);
