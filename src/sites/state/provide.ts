import { basename } from 'node:path';
import { hasFile } from '../../base/disk/files.ts';
import { ConfigError, type SealiftError, type FileProblem } from '../../base/errors.ts';
import { maxOf, withoutUndefined } from '../../base/lists.ts';
import {
  formatState,
  type IdentityState,
  type StateSite,
  type RetainedIdentity,
  type SiteIdentity,
} from '../identity/identity.ts';
import type { Keys } from '../identity/keys.ts';
import { makeIdentity } from '../identity/make.ts';
import { isOfOneSite, warnOfFile } from '../site.ts';
import { hasIdentity, takeBack, type ListedIds } from './claim.ts';
import {
  chooseGeneration,
  commandOf,
  holdsWhole,
  type WholeGeneration,
  formatOrder,
  readGenerations,
  type Generation,
  STATE_DIRECTORY,
  type SitePlaces,
  indexGenerations,
  type Rotation,
  placesFor,
  type OutputFolder,
} from './generations.ts';
import type { NewStateFile } from './writer.ts';

/*
 * Main file of the state: a site and the requirements for its identity come in, and the identity
 * that it is made with leaves. It must not know the content of an ISO beyond its identity.
 */

export type IdentityRequest = {
  readonly name: string;
  readonly places: SitePlaces;
  readonly site: StateSite;
  /** Numbers of the existing generations, in the order of their use. */
  readonly numbers: readonly number[];
  readonly listed?: ListedIds | undefined;
  readonly keys: Keys;
  /** Seconds since 1970, for an identity that is made now. */
  readonly epoch: number;
  readonly retained?: RetainedIdentity | undefined;
  readonly use?: number | undefined;
  readonly rotation?: string | undefined;
  /** True if new keys may replace lost ones. */
  readonly mayBeNew: boolean;
  readonly signal: AbortSignal;
};

export type ProvidedIdentity = WholeGeneration & {
  /** Files that must be on the disk before the files made from them appear. */
  readonly files: readonly NewStateFile[];
  /** All identities that the state has or gets. */
  readonly known: readonly SiteIdentity[];
  /** True if a previous identity is in none of them, but perhaps in the files made with it. */
  readonly isLost: boolean;
  /** Findings for a user who knows the previous identity. */
  readonly findings: readonly FileProblem[];
};

export type SiteState = Omit<IdentityRequest, 'name' | 'site' | 'retained' | 'keys' | 'signal'> & {
  /** True if foreign files are replaced. */
  readonly force: boolean;
  /** Files and directories that are never written; absolute paths. */
  readonly inputs: readonly string[];
};

export type WantedIdentities = {
  readonly rotate: boolean;
  readonly newIdentities?: ReadonlySet<string>;
};

export type WantedStates = OutputFolder &
  WantedIdentities &
  Pick<SiteState, 'epoch' | 'inputs'> & {
    readonly force?: boolean;
    readonly useGenerations?: ReadonlyMap<string, number>;
    /** Ids in the list of an earlier run, by the names of sites. */
    readonly listed: ReadonlyMap<string, ListedIds>;
    readonly rotation: Rotation | undefined;
  };

/**
 * Provides a generation that fits the site, or a new one. If the one in use is missing or damaged and the
 * files made with it exist, it is taken back from them; new keys never replace lost ones by themselves.
 *
 * @throws ConfigError `config-iso.identity-lost`, `config-iso.generation`
 */
export async function provideIdentity(request: IdentityRequest): Promise<ProvidedIdentity> {
  const { places, numbers } = request;
  const kept = readGenerations(places, numbers);
  const { back, isLost } = await takeBackIfLost(kept, request);
  const known = back ? [...kept, back] : kept;
  const chosen = chooseGeneration(known, request);
  const used = chosen ?? (await makeGeneration(nextNumber(known), request));
  const added = [back, chosen ? undefined : used].filter((one) => one !== undefined);
  const isReordered = chosen !== undefined && chosen.number !== known.at(-1)?.number;
  return {
    ...used,
    isLost,
    known: [...known, used].flatMap(({ state }) => (state ? [state.identity] : [])),
    files: [
      ...added.map(({ number, state }) => ({
        path: places.generation(number),
        data: formatState(state),
        isNew: true,
      })),
      ...(isReordered ? [describeOrder(places, known, used)] : []),
    ],
    findings: [
      ...(back ? [tellBack(places, back)] : []),
      ...tellChange(request, { known, used, isNew: chosen === undefined }),
    ],
  };
}

export const takesPart = ({ rotate, newIdentities }: WantedIdentities, name: string): boolean =>
  rotate || (newIdentities?.has(name) ?? false);

/** Opens the state directory: for each site, its existing state and the requirements for it. */
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

function describeOrder(
  { order: path }: SitePlaces,
  known: readonly Generation[],
  { number: last }: WholeGeneration,
): NewStateFile {
  const others = known.map(({ number }) => number).filter((number) => number !== last);
  return { path, data: formatOrder([...others, last]), isNew: false };
}

const nextNumber = (generations: readonly Generation[]): number =>
  maxOf(
    generations.map(({ number }) => number),
    0,
  ) + 1;

async function makeGeneration(
  number: number,
  { site, keys, epoch, retained, signal, rotation }: IdentityRequest,
): Promise<WholeGeneration> {
  const identity = await makeIdentity(site, {
    keys,
    epoch,
    signal,
    ...(retained && { retained }),
  });
  const state: IdentityState = { identity, site, ...withoutUndefined({ rotation }) };
  return { number, state };
}

/** An identity that could not be taken back is lost. */
type TakenBack = { readonly isLost: boolean; readonly back?: WholeGeneration };

async function takeBackIfLost(
  generations: readonly Generation[],
  request: IdentityRequest,
): Promise<TakenBack> {
  const inUse = generations.at(-1);
  if (inUse?.state || (inUse === undefined && !(await wasMade(request)))) return { isLost: false };
  try {
    const state = await takeBack(request);
    if (isRetained(state, request)) return { isLost: false };
    return { isLost: false, back: { number: nextNumber(generations), state } };
  } catch (error) {
    if (!isOfOneSite(error)) throw error;
    if (request.mayBeNew || request.retained) return { isLost: true };
    throw refuse(request, inUse, error);
  }
}

/** True if the retained identity has all of this one, and so does the generation made from it. */
const isRetained = ({ identity }: IdentityState, { retained }: IdentityRequest): boolean =>
  retained?.whole !== undefined && holdsWhole(retained.whole, identity);

/** A foreign file is not part of an identity. */
const wasMade = async ({ places, listed }: IdentityRequest): Promise<boolean> =>
  listed !== undefined || (await hasFile(places.record)) || (await hasIdentity(places));

function refuse(
  { name, places }: IdentityRequest,
  inUse: Generation | undefined,
  cause: SealiftError,
): ConfigError {
  const file = places.generation(inUse?.number ?? 1);
  const state = inUse ? `${file} is damaged` : `${file} does not exist`;
  const { expected, found } = cause;
  return new ConfigError(
    'config-iso.identity-lost',
    `the keys of ${name} are lost: ${state}, and the files made with them cannot restore them: ${cause.message}`,
    {
      cause,
      hint: hintOf(name),
      ...withoutUndefined({ expected, found }),
    },
  );
}

const hintOf = (name: string): string =>
  `restore the state, or name a source of the keys with --retain-from, or give up the deployed cluster with --new-identity ${name}`;

const tellBack = (places: SitePlaces, { number }: WholeGeneration): FileProblem =>
  warnOfFile(
    basename(places.iso),
    `has the keys that were on it before: ${STATE_DIRECTORY} had none, and they were taken ` +
      `back from the ISO, kubeconfig and password as generation ${number}`,
  );

type Change = {
  readonly known: readonly Generation[];
  readonly used: WholeGeneration;
  readonly isNew: boolean;
};

/** Reports a change of identity, except to a user who asked for it. */
function tellChange(
  { name, places, use, rotation, retained }: IdentityRequest,
  { known, used, isNew }: Change,
): readonly FileProblem[] {
  const before = known.at(-1);
  if (!before || use !== undefined || rotation !== undefined || before.number === used.number) {
    return [];
  }
  const stays = `generation ${before.number} stays`;
  const drawn = retained
    ? `has the keys of --retain-from (generation ${used.number}); ${stays}`
    : `has new keys (generation ${used.number}): cluster name, base domain or ids have changed; ${stays}`;
  const problem = isNew
    ? drawn
    : `has the keys of generation ${used.number} again, whose cluster name, base domain and ids fit the inputs; it had the keys of generation ${before.number}`;
  const hint = `list all: ${commandOf(places, name)}`;
  return [warnOfFile(basename(places.iso), problem, hint)];
}
