import { Secret } from '../../src/base/secret.ts';
import { openFileBackend } from '../../src/service/state/files.ts';
import { readMasterKey } from '../../src/service/state/keys.ts';
import { openRecords, type RecordSettings } from '../../src/service/state/open.ts';
import type { State } from '../../src/service/state/state.ts';
import { LEASE } from './lease.ts';

export const RECORD_SETTINGS: RecordSettings = {
  keys: { key: readMasterKey(new Secret('0123456789abcdef0123456789abcdef')) },
  limits: { records: 1000, bytes: 1 << 28 },
  warn: () => undefined,
};

/** Records in files below a folder. */
export async function openFileRecords(directory: string): Promise<State> {
  const backend = await openFileBackend(directory, LEASE);
  return (await openRecords(backend, RECORD_SETTINGS)).state;
}
