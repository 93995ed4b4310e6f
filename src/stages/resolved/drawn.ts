import { type Digest, digestOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { type Json, formatCanonicalJson } from '../../base/text/json.ts';
import type { StageStore, StageEntry } from '../../engine/index.ts';
import { type Drawn, type LockSecrets, type Lock, nameField, mismatch } from './record.ts';

/* Owns the values that a run draws at random, and those that a lock holds. */

/** Values drawn at random in this run, or for it before; by stage. */
export type DrawnLedger = {
  readonly store: StageStore;
  readonly list: () => Readonly<Record<string, Drawn>>;
};

export type DrawnSource = {
  /**
   * Secrets that were drawn for the lock; they take precedence over the values in this work
   * directory.
   */
  readonly secrets?: LockSecrets;
  /** Present in a build that draws nothing: the digests of the values that it may use. */
  readonly locked?: Lock['drawn'];
};

export const digestOfDrawn = (value: Json): Digest => digestOf(formatCanonicalJson(value));

/** Creates a store that records drawn values, and takes the values that were drawn for the lock. */
export function createDrawnLedger(store: StageStore, source: DrawnSource = {}): DrawnLedger {
  const seen = new Map<string, Drawn>();
  const { secrets, locked } = source;
  return {
    list: () => Object.fromEntries([...seen].sort(([a], [b]) => (a < b ? -1 : 1))),
    store: {
      ...store,
      async readDrawn(entry) {
        const { stage, fingerprint } = entry;
        const held = secrets?.drawn[stage];
        const isHeld = held?.fingerprint === fingerprint;
        const known = isHeld ? { result: held.value } : await store.readDrawn(entry);
        if (locked) requireLockedDrawn(entry, known?.result, { ...source, locked });
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
