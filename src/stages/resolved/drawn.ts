import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Digest, digestOf } from '../../base/digest.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { type Json, formatCanonicalJson } from '../../base/text/json.ts';
import type { StageStore, StageEntry } from '../../engine/index.ts';
import type { Held } from './held.ts';
import { type Drawn, type LockSecrets, type Lock, nameField, mismatch } from './record.ts';

/* Owns the values that a run draws at random, those that a lock holds, and the key that both are stored under. */

/** Values drawn at random in this run, or for it before; by stage. */
export type DrawnLedger = {
  readonly store: StageStore;
  readonly list: () => Readonly<Record<string, Drawn>>;
};

type DrawnSource = {
  /** Secrets that were drawn for the lock; they take precedence over the values in this work directory. */
  readonly secrets?: LockSecrets | undefined;
  /** Present in a build that draws nothing: the digests of the values that it may use. */
  readonly locked?: Lock['drawn'] | undefined;
};

export const digestOfDrawn = (value: Json): Digest => digestOf(formatCanonicalJson(value));

/**
 * Reads the key for fingerprints. Values that were drawn elsewhere are recognized by the key that
 * they were drawn under.
 */
export async function readSealKey(workDir: string, secrets?: LockSecrets): Promise<Uint8Array> {
  if (secrets) return Buffer.from(secrets.key, 'base64');
  const path = join(workDir, 'seal.key');
  const known = await readOwnFile(path);
  if (known?.length === 32) return known;
  const key = randomBytes(32);
  await writeFileAtomic(path, key, 0o600);
  return key;
}

/** Creates a store that records drawn values, and takes the values that were drawn for the lock. */
export function createDrawnLedger(store: StageStore, { lock, ...held }: Held): DrawnLedger {
  const seen = new Map<string, Drawn>();
  const secrets = lock?.secrets;
  const locked = lock?.drawsAgain === true ? undefined : held.locked?.drawn;
  return {
    list: () => Object.fromEntries([...seen].sort(([a], [b]) => (a < b ? -1 : 1))),
    store: {
      ...store,
      async readDrawn(entry) {
        const { stage, fingerprint } = entry;
        const held = secrets?.drawn[stage];
        const isHeld = held?.fingerprint === fingerprint;
        const known = isHeld ? { result: held.value } : await store.readDrawn(entry);
        if (locked) requireLockedDrawn(entry, known?.result, { secrets, locked });
        if (known) seen.set(stage, { fingerprint, value: known.result });
        return known;
      },
      async writeDrawn(entry, result) {
        const stored = await store.writeDrawn(entry, result);
        seen.set(entry.stage, { fingerprint: entry.fingerprint, value: stored });
        return stored;
      },
    },
  };
}

function requireLockedDrawn(
  { stage, fingerprint }: StageEntry,
  value: Json | undefined,
  { secrets, locked }: DrawnSource & { readonly locked: Lock['drawn'] },
): void {
  const field = nameField('drawn', stage);
  const expected = locked[stage];
  if (expected === undefined) throw mismatch(field, { expected: 'none', found: 'needed' });
  if (value !== undefined && digestOfDrawn(value) === expected) return;
  const held = secrets?.drawn[stage];
  if (held && held.fingerprint !== fingerprint) {
    throw mismatch(field, {
      expected: 'the inputs that it was drawn for',
      found: 'other inputs',
    });
  }
  if (held) throw mismatch(field, { expected, found: digestOfDrawn(held.value) });
  throw new ConfigError('lock.secrets-missing', `${field} is in no sealift.lock.secrets`, {
    expected,
    found: 'none',
    hint: 'put the sealift.lock.secrets that was written with the lock beside it',
  });
}
