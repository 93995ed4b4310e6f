import { join } from 'node:path';
import { withoutUndefined } from '../../base/lists.ts';
import type { Secret } from '../../base/secret.ts';
import type { Backend } from './backend.ts';
import { claimDataDirectory } from './data-directory.ts';
import { openFileBackend } from './files.ts';
import { readMasterKey, rewrapKeys, type MasterKeys } from './keys.ts';
import { openRecords } from './open.ts';
import { openPostgresBackend } from './postgres.ts';

/* Owns the place of records, and the change of the key that wraps their keys. */

export type RecordPlace = {
  readonly data: string;
  /** URL of PostgreSQL; absent: records are files below `data`. */
  readonly database?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

/** Opens the place of records. @throws errors of `claimDataDirectory` and of both backends */
export async function openBackend(place: RecordPlace): Promise<Backend> {
  const { data, database, env, signal, warn } = place;
  await claimDataDirectory(data, warn);
  return database === undefined
    ? openFileBackend(join(data, 'records'), { signal, warn })
    : openPostgresBackend(database, { env, warn });
}

/** @throws ConfigError `service.key-short` */
export const readMasterKeys = (key: Secret, previous: Secret | undefined): MasterKeys => ({
  key: readMasterKey(key),
  ...withoutUndefined({ previous: previous && readMasterKey(previous, '--previous-key') }),
});

/**
 * Wraps all keys by the new key, and encrypts records of the first format; returns the numbers of both. It
 * may be killed and run again. Services that have both keys go on meanwhile.
 *
 * @throws IntegrityError `service.key-wrong`; DiskError `service.data-in-use`
 */
export async function rekeyRecords({
  key,
  previousKey,
  ...place
}: RecordPlace & { readonly key: Secret; readonly previousKey?: Secret }): Promise<{
  readonly keys: number;
  readonly records: number;
}> {
  const keys = readMasterKeys(key, previousKey);
  const backend = await openBackend(place);
  const { state } = await openRecords(backend, {
    keys,
    limits: { records: Infinity, bytes: Infinity },
    warn: place.warn,
  });
  try {
    return { keys: await rewrapKeys(backend, keys), records: await state.reseal() };
  } finally {
    await state.close();
  }
}
