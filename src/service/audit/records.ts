import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Backend } from '../state/backend.ts';
import type { KeyRing } from '../state/keys.ts';
import { openRecords, type RecordSettings } from '../state/open.ts';
import type { LedgerHead, State } from '../state/state.ts';
import type { AuditSettings, OpenedAudit } from './open.ts';

/* Owns the anchor of the records outside of them: they are not older than the audit log. */

type AuditedRecords = Omit<RecordSettings, 'expected'> & {
  readonly audit: OpenedAudit | undefined;
} & Pick<AuditSettings, 'acceptRestore'>;

/**
 * Opens records that are at least as new as the audit log; an accepted restore is an entry of it. `open` is
 * called again after a refusal.
 */
export async function openAuditedRecords(
  open: () => Promise<Backend>,
  { audit, acceptRestore = false, ...settings }: AuditedRecords,
): Promise<{ readonly state: State; readonly ring: KeyRing }> {
  const expected = audit?.expected;
  try {
    const opened = await openRecords(await open(), {
      ...settings,
      ...withoutUndefined({ expected }),
    });
    audit?.useHead(opened.state.head);
    return opened;
  } catch (error) {
    if (!audit || !expected || codeOf(error) !== 'service.rolled-back') {
      audit?.log.add({ event: 'records.refuse', code: codeOf(error) });
      throw error;
    }
    if (acceptRestore) return openRestored(await open(), settings, { audit, expected });
    audit.log.add({ event: 'records.refuse', code: 'service.restored' });
    throw restored(expected, error);
  }
}

async function openRestored(
  backend: Backend,
  settings: RecordSettings,
  { audit, expected }: { readonly audit: OpenedAudit; readonly expected: LedgerHead },
): Promise<{ readonly state: State; readonly ring: KeyRing }> {
  const opened = await openRecords(backend, settings);
  const { head } = opened.state;
  settings.warn(
    `records of change ${head().seq} are accepted; the audit log had seen ${expected.seq}`,
  );
  audit.useHead(head);
  await audit.log.write({ event: 'records.restore', expected: expected.seq, found: head().seq });
  return opened;
}

const codeOf = (error: unknown): string => (error instanceof SealiftError ? error.code : '');

const restored = ({ seq }: LedgerHead, cause: unknown): IntegrityError =>
  new IntegrityError(
    'service.restored',
    `the records and their ledger are not those that the audit log has seen at change ${seq}`,
    {
      cause,
      hint: 'restore the newest backup, or accept these with --accept-restore, which the log notes',
    },
  );
