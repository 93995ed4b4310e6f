import type { Keyfile } from '../../src/nmstate/keyfile.ts';
import { profilesOf } from '../../src/nmstate/plan.ts';

/** The profiles of a document whose interfaces have their names already. */
export const renderKeyfiles = (networkConfig: string): readonly Keyfile[] =>
  profilesOf({ networkConfig, interfaces: [] });
