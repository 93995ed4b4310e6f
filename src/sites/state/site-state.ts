import { indexGenerations } from './generations.ts';
import type { IdentityRequest } from './provide-identity.ts';
import type { Rotation } from './rotation.ts';
import { placesFor, type OutputFolder } from './site-places.ts';
import type { ListedIds } from './take-back.ts';

/** What was made of a site before, where its files go, and what is wanted of its identity. */
export type SiteState = Omit<IdentityRequest, 'name' | 'site' | 'retained' | 'keys' | 'signal'> & {
  /** Whether foreign files are replaced. */
  readonly force: boolean;
  /** Files and directories that are never written; absolute paths. */
  readonly inputs: readonly string[];
};

/** Of which sites new identities are wanted. */
export type WantedIdentities = {
  readonly rotate: boolean;
  readonly newIdentities?: ReadonlySet<string>;
};

export const takesPart = ({ rotate, newIdentities }: WantedIdentities, name: string): boolean =>
  rotate || (newIdentities?.has(name) ?? false);

/** What is asked of the states of all sites of a folder. */
export type WantedStates = OutputFolder &
  WantedIdentities &
  Pick<SiteState, 'epoch' | 'inputs'> & {
    readonly force?: boolean;
    readonly useGenerations?: ReadonlyMap<string, number>;
    /** What the list of an earlier run says of sites, by their names. */
    readonly listed: ReadonlyMap<string, ListedIds>;
    readonly rotation: Rotation | undefined;
  };

/** What the state directory has of each site, and what is asked of it. */
export function openStates(wanted: WantedStates): (name: string) => SiteState {
  const { epoch, inputs, useGenerations, newIdentities, listed, rotation, force = false } = wanted;
  const numbersOf = indexGenerations(wanted.out);
  return (name) => {
    const places = placesFor(wanted, name);
    return {
      places,
      inputs,
      force,
      epoch,
      numbers: numbersOf(name, places),
      listed: listed.get(name),
      use: useGenerations?.get(name),
      rotation: takesPart(wanted, name) ? rotation?.id : undefined,
      mayBeNew: newIdentities?.has(name) ?? false,
    };
  };
}
