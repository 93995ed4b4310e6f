import { describe, expect, it } from 'vitest';
import {
  changeBySealift,
  composePristine,
  DIFFERENT_SETS,
  listValueSets,
  readChanges,
  SETS_OF_NMSTATE,
} from '../../support/value-sets.ts';

const SETS = listValueSets()
  .filter(({ name }) => !SETS_OF_NMSTATE.includes(name))
  .map((set) => [set.name, set] as const);

describe.skipIf(SETS.length === 0)('the files for a set of values', () => {
  const pristine = SETS.length === 0 ? '' : composePristine();
  const isDifferent = (name: string): boolean => Object.hasOwn(DIFFERENT_SETS, name);

  it.each(SETS.filter(([name]) => !isDifferent(name)))(
    'are to the byte those that the installer writes: %s',
    (_, set) => {
      expect(changeBySealift(set, pristine)).toEqual(readChanges(set));
    },
  );

  it.each(SETS.filter(([name]) => isDifferent(name)))(
    "are others than the installer's, for a reason: %s",
    (_, set) => {
      expect(changeBySealift(set, pristine)).not.toEqual(readChanges(set));
    },
  );
});
