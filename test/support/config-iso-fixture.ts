import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { ConfigIsosReport } from '../../src/stages/config-isos.ts';
import {
  createConfigIsoWorld,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from './config-iso-world.ts';
import { makeKeyRing, type KeyRing } from './site-identity.ts';

/** Two good sites and a bad one. */
export const ALPHA = siteTree('alpha', { number: 1, manifests: { 'a.yaml': manifestOf('A') } });
export const BETA = siteTree('beta', { number: 2 });
export const BAD = siteTree('gamma', { number: 3, install: ['unknownField: 1'] });

/** Keys for all tests of a file, and a directory for each test; valid while a test runs. */
export function useConfigIsoWorld(
  begin: (made: { readonly world: ConfigIsoWorld; readonly keys: KeyRing }) => void,
): void {
  let keys: KeyRing;
  let world: ConfigIsoWorld;
  beforeAll(async () => {
    keys = await makeKeyRing();
  }, 60_000);
  afterAll(() => keys.close());
  beforeEach(async () => {
    world = await createConfigIsoWorld();
    begin({ world, keys });
  });
  afterEach(() => world.close());
}

/** Of the ISOs, in the order of the sites. */
export const digestsOf = ({ sites }: ConfigIsosReport): string[] =>
  sites.map(({ sha256 }) => sha256);

/** What was found of the sites that were made or kept. */
export const warningsOf = ({ sites }: ConfigIsosReport): string[] =>
  sites.flatMap(({ findings }) => findings.map(({ problem }) => problem));
