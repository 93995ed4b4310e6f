import { mapStage } from '../../engine/map-stage.ts';
import { openRetained, type FindRetained } from '../../sites/state/retained.ts';
import { beginRotation, endRotation, type Rotation } from '../../sites/state/generations.ts';
import { placesFor } from '../../sites/state/generations.ts';
import { openStates, takesPart } from '../../sites/state/provide.ts';
import { createSiteWriter, SITES_AT_ONCE } from '../../sites/state/writer.ts';
import type { ListedIds } from '../../sites/state/claim.ts';
import { makeIsos, type SiteOutcome } from '../../stages/each-site/make-isos.ts';
import { readProgramDigest } from '../../base/program.ts';
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
      digest,
      record: placesFor(request, name).record,
    })),
    {
      ...tools,
      tools: {
        reader,
        findRetained,
        keys: tools.keys,
        writer: createSiteWriter(),
        stateOf: openStates({ ...request, rotation, inputs: listInputs(request) }),
      },
      atOnce: request.jobs + AT_ONCE,
      program: tools.program ?? (await readProgramDigest()),
    },
  );
  const isDone = (name: string): boolean => (outcomes.get(name)?.kind ?? 'failed') !== 'failed';
  const rotated = names.filter((name) => takesPart(request, name));
  if (rotated.every(isDone)) await endRotation(request.out);
  return outcomes;
}

async function openRetainedOf(
  names: readonly string[],
  request: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<FindRetained> {
  const { find, strangers } = await openRetained(request, names);
  if (strangers.length > 0) {
    const message = `${request.retainFrom ?? ''} has retained files for ${JSON.stringify(strangers)}, which are not sites in these inputs`;
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
