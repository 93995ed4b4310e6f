import type { Backend, Change, Look, RowPlace, Row } from './backend.ts';
import { digestRow, type LedgerEntry, type EntryChange, type Ledger } from './ledger.ts';

/* Owns the order of changes: the ledger and the rows change together, and the ledger is followed. */

export type PlannedChange = RowPlace & {
  /** Absent: the record is removed. */
  readonly entry?: LedgerEntry;
  /** Absent: the stored row stays. */
  readonly row?: Row;
};

export type RecordChanges = {
  /** Follows the changes of other processes, and looks for a row at the same moment. */
  readonly look: (place?: RowPlace) => Promise<{ readonly seq: number; readonly row?: Row }>;
  /** Makes changes, planned from the newest ledger; false if there was nothing to change. */
  readonly commit: (plan: () => readonly PlannedChange[] | undefined) => Promise<boolean>;
  /** Waits for every change that has begun. */
  readonly wait: () => Promise<void>;
};

/** Lines of the ledger, beyond two for each record, after which it is restated. */
const SPARE = 512;

export function createChanges(backend: Backend, ledger: Ledger): RecordChanges {
  /** Records whose last change may be in the ledger alone, as they were before it. */
  const owed = new Map<string, EntryChange>();
  const since = (): number => ledger.head().seq;

  const apply = async (plan: () => Change | undefined): Promise<boolean> => {
    let planned: Change | undefined;
    await backend.change(since, (lines) => {
      ledger.follow(lines);
      planned = plan();
      return planned;
    });
    if (planned) ledger.follow(planned.lines);
    return planned !== undefined;
  };

  /** Finishes, or takes back, changes that were cut off between the ledger and the row. */
  const settle = async (): Promise<void> => {
    for (const [key, before] of owed) {
      const row = (await backend.readMany(before.collection, [before.id])).get(before.id);
      await apply(() => planSettlement(ledger, before, row));
      owed.delete(key);
    }
  };

  const follow = async ({ lines, unsettled }: Look): Promise<void> => {
    const settled = lines.length - unsettled;
    ledger.follow(lines.slice(0, settled));
    for (const before of ledger.follow(lines.slice(settled))) {
      owed.set(`${before.collection} ${before.id}`, before);
    }
    await settle();
  };

  const look: RecordChanges['look'] = async (place) => {
    const from = since();
    const found = await backend.look(from, place);
    await follow(found);
    const seq = found.lines.at(-1)?.seq ?? from;
    return { seq, ...(found.row && { row: found.row }) };
  };

  return {
    look,
    async commit(plan) {
      const isDone = await apply(() => {
        const changes = plan();
        return changes && toChange(ledger, changes);
      });
      if (isLong(ledger)) await apply(() => planRestatement(ledger));
      return isDone;
    },
    wait: () => backend.change(since, (lines) => void ledger.follow(lines)),
  };
}

function isLong(ledger: Ledger): boolean {
  const { lines, records } = ledger.size();
  return lines > SPARE + 2 * records;
}

/** Another process may have restated it meanwhile. */
const planRestatement = (ledger: Ledger): Change | undefined =>
  isLong(ledger) ? { lines: ledger.restate(), isBase: true } : undefined;

function toChange(ledger: Ledger, changes: readonly PlannedChange[]): Change {
  const stated = changes.map(({ collection, id, entry }) => ({
    collection,
    id,
    ...(entry && { entry }),
  }));
  return {
    lines: ledger.extend(stated),
    put: changes.flatMap(({ collection, id, row }) => (row ? [{ collection, id, row }] : [])),
    gone: changes.filter(({ entry }) => !entry),
  };
}

function planSettlement(
  ledger: Ledger,
  before: EntryChange,
  row: Row | undefined,
): Change | undefined {
  const { collection, id, entry } = before;
  const now = ledger.find(collection, id);
  if (!now) return row && { lines: [], gone: [{ collection, id }] };
  const digest = row && digestRow(row, row.body);
  if (digest === now.digest || digest !== entry?.digest) return undefined;
  return { lines: ledger.extend([before]) };
}
