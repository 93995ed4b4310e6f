import { IntegrityError } from '../../base/errors.ts';
import type { Backend, PlacedRow } from './backend.ts';
import { openKeyRing, type KeyRing, type MasterKeys } from './keys.ts';
import { createLedger, type EntryChange } from './ledger.ts';
import { createRecords, toEntry } from './records.ts';
import { isFormer, isReadableFormer, parentOfFormer } from './sealing.ts';
import type { LedgerHead, State, TenantLimits } from './state.ts';

/* Owns the opening of records, and the beginning of their ledger. */

export type RecordSettings = {
  readonly keys: MasterKeys;
  readonly limits: TenantLimits;
  /** A state of the ledger that was seen before, by something outside of it. */
  readonly expected?: LedgerHead;
  readonly warn: (message: string) => void;
};

/** Opens records with their keys. Closes the backend if that is not possible. */
export async function openRecords(
  backend: Backend,
  { keys, limits, expected, warn }: RecordSettings,
): Promise<{ readonly state: State; readonly ring: KeyRing }> {
  try {
    const ring = await openKeyRing(backend, keys);
    const ledger = createLedger(ring.derive('ledger'), expected);
    if ((await backend.look(0)).lines.length === 0) {
      const found = await listFormer(backend, warn);
      await backend.change(
        () => 0,
        (lines) => (lines.length === 0 ? { lines: ledger.extend(found) } : undefined),
      );
    }
    const state = createRecords({ backend, ring, ledger, limits });
    await state.check();
    ledger.requireExpected();
    return { state, ring };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Lists the records from before there was a ledger. Those that cannot be read stay out of it. */
async function listFormer(
  backend: Backend,
  warn: (message: string) => void,
): Promise<readonly EntryChange[]> {
  const found: EntryChange[] = [];
  for await (const placed of backend.scan()) {
    const entry = readFormer(placed);
    const { collection, id } = placed;
    if (entry) found.push({ collection, id, entry });
    else warn(`${id} of ${collection} is not a record of the service, and is left out`);
  }
  return found;
}

function readFormer({ collection, row }: PlacedRow): EntryChange['entry'] {
  if (!row) return undefined;
  if (!isFormer(row)) {
    throw new IntegrityError('service.ledger-damaged', 'the ledger of the records is missing', {
      hint: 'restore records and ledger from one backup',
    });
  }
  return isReadableFormer(collection, row) ? toEntry(row, parentOfFormer(row)) : undefined;
}
