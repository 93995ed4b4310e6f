import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import { mapStage } from '../../engine/map-stage.ts';
import type { RetainedIdentity } from '../../sites/identity/retained/retain-identity.ts';
import { indexGenerations } from '../../sites/state/generations.ts';
import { openRetained, type FindRetained } from '../../sites/state/open-retained.ts';
import { beginRotation, endRotation, type Rotation } from '../../sites/state/rotation.ts';
import { dropInPlaces, placesOf, type SitePlaces } from '../../sites/state/site-places.ts';
import { createSiteWriter, SITES_AT_ONCE } from '../../sites/state/site-writer.ts';
import type { ListedIds } from '../../sites/state/take-back.ts';
import { makeIsos, type SiteOutcome, type SiteState } from '../../stages/each-site/make-isos.ts';
import { readProgramDigest } from '../program-digest.ts';
import { listInputs, type ConfigIsosRequest, type ConfigIsosTools } from './config-isos-request.ts';
import { isGood, type Survey } from './survey-sites.ts';

/** What the list of an earlier run says of sites, by their names. */
export type ListedSites = ReadonlyMap<string, ListedIds>;

export type ListedRequest = ConfigIsosRequest & { readonly listed: ListedSites };

/** Files of as many sites are synced together while as many more are composed. */
const AT_ONCE = 2 * SITES_AT_ONCE;

/**
 * Makes the ISOs of all sites that nothing speaks against, but for those that are there already.
 *
 * @throws DiskError; ConfigError `retained.ambiguous`, `retained.empty`
 */
export async function makeSites(
  { sites, reader }: Survey,
  request: ListedRequest,
  tools: ConfigIsosTools,
): Promise<ReadonlyMap<string, SiteOutcome>> {
  const names = sites.map(({ name }) => name);
  const findRetained = await openRetainedOf(names, request, tools);
  const rotation = await decideRotation(request, tools);
  const good = sites.filter(isGood);
  const outcomes = await mapStage(
    makeIsos,
    good.map(({ name, inputs: digest }) => ({
      name,
      bind: async () => ({ name, digest, ...(await findFor(name, request, findRetained)) }),
    })),
    {
      ...tools,
      tools: {
        reader,
        keys: tools.keys,
        writer: createSiteWriter(),
        stateOf: openStates(request, rotation),
      },
      atOnce: request.jobs + AT_ONCE,
      records: {
        pathOf: (name) => placesFor(request, name).record,
        program: tools.program ?? (await readProgramDigest()),
      },
    },
  );
  const isDone = (name: string): boolean => (outcomes.get(name)?.kind ?? 'failed') !== 'failed';
  const rotated = names.filter((name) => takesPart(request, name));
  if (rotated.every(isDone)) await endRotation(request.out);
  return outcomes;
}

async function openRetainedOf(
  names: readonly string[],
  { retainFrom, kubeconfig }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<FindRetained> {
  if (retainFrom === undefined) return () => Promise.resolve(undefined);
  const { find, strangers } = await openRetained({ from: retainFrom, kubeconfig }, names);
  if (strangers.length > 0) {
    const message = `${retainFrom} has retained files for ${JSON.stringify(strangers)}, which are not sites in these inputs`;
    emit({ type: 'warning', message });
  }
  return find;
}

/** A run that is not to rotate puts an end to what an earlier one began. */
async function decideRotation(
  { rotate, newIdentities, out }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<Rotation | undefined> {
  if (!rotate && newIdentities === undefined) {
    await endRotation(out);
    return undefined;
  }
  const rotation = await beginRotation(out);
  if (rotation.isContinued) {
    const message =
      'an earlier rotation did not reach all sites: it goes on with those that are left';
    emit({ type: 'warning', message });
  }
  return rotation;
}

const takesPart = ({ rotate, newIdentities }: ConfigIsosRequest, name: string): boolean =>
  rotate || (newIdentities?.has(name) ?? false);

/** @throws ConfigError `config-iso.new-identity`, those of `FindRetained` */
async function findFor(
  name: string,
  { newIdentities }: ConfigIsosRequest,
  findRetained: FindRetained,
): Promise<{ readonly retained?: RetainedIdentity }> {
  const retained = await findRetained(name);
  if (retained && newIdentities?.has(name)) {
    throw new ConfigError('config-iso.new-identity', `${name} has an identity in --retain-from`, {
      hint: `leave out --new-identity ${name}, or take it out of --retain-from`,
    });
  }
  return withoutUndefined({ retained });
}

/** What the state directory has of each site, and what is asked of it. */
function openStates(
  request: ListedRequest,
  rotation: Rotation | undefined,
): (name: string) => SiteState {
  const { out, epoch, useGenerations, newIdentities, listed, force = false } = request;
  const numbersOf = indexGenerations(out);
  const inputs = listInputs(request);
  return (name) => {
    const places = placesFor(request, name);
    return {
      places,
      inputs,
      force,
      epoch,
      numbers: numbersOf(name, places),
      listed: listed.get(name),
      use: useGenerations?.get(name),
      rotation: takesPart(request, name) ? rotation?.id : undefined,
      mayBeNew: newIdentities?.has(name) ?? false,
    };
  };
}

/** Where a request puts what is made of a site. */
export const placesFor = ({ dropIn, out }: ConfigIsosRequest, name: string): SitePlaces =>
  dropIn ? dropInPlaces(out) : placesOf(out, name);
