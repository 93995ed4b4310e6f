import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../base/errors.ts';
import { maxOf } from '../../base/lists.ts';
import { fingerprintOf } from '../../sites/identity/identity.ts';
import { parseState } from '../../sites/identity/identity.ts';
import {
  indexGenerations,
  readGenerations,
  type Generation,
} from '../../sites/state/generations.ts';
import { placesOf, stateDirectoryOf } from '../../sites/state/generations.ts';
import { listOldStates } from '../../sites/state/directory.ts';

/** One identity of a site, without its secrets. */
export type ListedGeneration = {
  readonly number: number;
  /** Whether the next build uses it, if it fits the inputs. */
  readonly isInUse: boolean;
  /** Undefined where the file is damaged. */
  readonly identity?: {
    /** ISO 8601. */
    readonly madeAt: string;
    readonly clusterName: string;
    readonly baseDomain: string;
    readonly clusterId: string;
    readonly infraId: string;
    /** SHA-256 of the public keys of all signers, and of each. */
    readonly fingerprint: string;
    readonly signers: Readonly<Record<string, string>>;
  };
};

/**
 * All generations of a site's identity below an output directory, in the order of their numbers; a
 * state that an earlier version left has the numbers that the next build gives it.
 *
 * @throws ConfigError `config-iso.generation` where there is none
 */
export async function listGenerations(
  out: string,
  name: string,
): Promise<readonly ListedGeneration[]> {
  const places = placesOf(out, name);
  const numbers = indexGenerations(out)(name, places);
  const generations = [...readGenerations(places, numbers)];
  for (const path of listOldStates(out, name)) {
    const state = parseState(await readFile(path, 'utf8'));
    const number =
      maxOf(
        generations.map((one) => one.number),
        0,
      ) + 1;
    generations.push({ number, state });
  }
  const inUse = generations.at(-1)?.number;
  if (inUse === undefined) {
    const message = `${name} has no generation in ${stateDirectoryOf(out)}`;
    throw new ConfigError('config-iso.generation', message, {
      hint: 'check the name of the site and what --out names',
    });
  }
  return generations
    .sort((a, b) => a.number - b.number)
    .map((generation) => describe(generation, generation.number === inUse));
}

function describe({ number, state }: Generation, isInUse: boolean): ListedGeneration {
  if (!state) return { number, isInUse };
  const { identity, site } = state;
  const { clusterId, infraId, madeAt } = identity;
  const { all, signers } = fingerprintOf(identity);
  return {
    number,
    isInUse,
    identity: {
      madeAt: new Date(madeAt * 1000).toISOString(),
      clusterName: site.clusterName,
      baseDomain: site.baseDomain,
      clusterId,
      infraId,
      fingerprint: all,
      signers,
    },
  };
}
