import type { Sealed, Stage } from '../../engine/stage.ts';
import { drawSalt } from '../../openshift/node/install.ts';

/**
 * The salt of core's password: random, so that nobody hashes a dictionary for all media of a release, and
 * stored with the password that it belongs to, so that the same password gives the same medium.
 */
export const drawPasswordSalt: Stage<{ readonly password: Sealed }, string, unknown> = {
  name: 'draw password salt',
  reuse: { kind: 'drawn' },
  run: () => Promise.resolve(drawSalt()),
};
