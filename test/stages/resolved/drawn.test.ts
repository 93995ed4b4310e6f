import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { StageStore } from '../../../src/engine/index.ts';
import { createDrawnLedger, digestOfDrawn } from '../../../src/stages/resolved/drawn.ts';
import type { Lock, LockSecrets } from '../../../src/stages/resolved/record.ts';

const entry = { stage: 'draw', fingerprint: digestOf('inputs') };

/** A ledger of a locked build: the lock names a value, its secrets and the work directory have others. */
const createLocked = (values: { readonly secret?: string; readonly stored?: string }) => {
  const { secret, stored } = values;
  const store = {
    readDrawn: () => Promise.resolve(stored === undefined ? undefined : { result: stored }),
  } as unknown as StageStore;
  const locked = { drawn: { draw: digestOfDrawn('locked') } } as unknown as Lock;
  const secrets = {
    drawn: { draw: { fingerprint: entry.fingerprint, value: secret } },
  } as unknown as LockSecrets;
  const lock = { path: 'lock', isLocked: true, ...(secret !== undefined && { secrets }) };
  return createDrawnLedger(store, { lock, locked }).store;
};

describe('a value that was drawn for a lock', () => {
  it('is taken from the secrets of the lock before the work directory', async () => {
    const known = createLocked({ secret: 'locked', stored: 'other' }).readDrawn(entry);
    expect(await known).toEqual({ result: 'locked' });
  });

  it('is taken from the work directory if it is the one of the lock', async () => {
    expect(await createLocked({ stored: 'locked' }).readDrawn(entry)).toEqual({ result: 'locked' });
  });

  it.each([
    [{ secret: 'edited', stored: 'locked' }, 'lock.mismatch'],
    [{ stored: 'other' }, 'lock.secrets-missing'],
    [{}, 'lock.secrets-missing'],
  ])('is refused if it is another one: %j', async (values, code) => {
    await expect(createLocked(values).readDrawn(entry)).rejects.toMatchObject({ code });
  });
});
