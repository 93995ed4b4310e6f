import { basename } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import type { ConfigIsosRequest, ConfigIsosTools } from './config-isos-request.ts';
import { runLanes } from './lanes.ts';
import { openRetained, type FindRetained, type RetainedSite } from './site/open-retained.ts';
import { beginRotation, endRotation, type Rotation } from './site/rotation.ts';
import { composeSite, type ComposedSite } from './site/compose-site.ts';
import { findingOfError, isOfOneSite, type SiteFinding } from './site/site-finding.ts';
import { createSiteMeter } from './site-meter.ts';
import { dropInPlaces, placesOf, type SitePlaces } from './site/site-places.ts';
import { isUpToDate, readRecord, type MadeIso, type Wanted } from './site/site-record.ts';
import { createSiteWriter, SITES_AT_ONCE, type SiteWriter } from './site/site-writer.ts';
import { isGood, type Survey, type SurveyedSite } from './survey-sites.ts';

/** How it went with one site. */
export type SiteOutcome =
  | {
      readonly kind: 'made' | 'kept';
      readonly made: MadeIso;
      /** Warnings of what happened while it was made. */
      readonly findings?: readonly SiteFinding[];
    }
  | { readonly kind: 'failed'; readonly finding: SiteFinding };

type Making = {
  readonly survey: Survey;
  readonly request: ConfigIsosRequest;
  readonly tools: ConfigIsosTools;
  readonly writer: SiteWriter;
  readonly rotation: Rotation | undefined;
  readonly findRetained: FindRetained;
};

/** Files of as many sites are synced together while as many more are composed. */
const LANES = 2 * SITES_AT_ONCE;

/**
 * Makes the ISOs of all sites that nothing speaks against, but for those that are there already. What
 * goes wrong with one stops only that one; a full disk or an abort stops all.
 *
 * @throws DiskError; ConfigError `retained.ambiguous`, `retained.empty`
 */
export async function makeSites(
  survey: Survey,
  request: ConfigIsosRequest,
  tools: ConfigIsosTools,
): Promise<ReadonlyMap<string, SiteOutcome>> {
  const good = survey.sites.filter(isGood);
  const findRetained = await openKept(survey, request, tools);
  const rotation = await decideRotation(request, tools);
  const writer = createSiteWriter();
  const making: Making = { survey, request, tools, writer, rotation, findRetained };
  const meter = createSiteMeter('make ISOs', good.length, tools);
  const outcomes = new Map<string, SiteOutcome>();
  const lanes = request.jobs + LANES;
  await runLanes(good, { lanes, signal: tools.signal }, async (site) => {
    outcomes.set(site.name, await tryToMake(site, making));
    meter.advance();
  });
  meter.end();
  const isComplete = good.length === survey.sites.length && [...outcomes.values()].every(isThere);
  if (isComplete) await endRotation(request.out);
  return outcomes;
}

const isThere = ({ kind }: SiteOutcome): boolean => kind !== 'failed';

async function openKept(
  { sites }: Survey,
  { retainFrom }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<FindRetained> {
  if (retainFrom === undefined) return () => Promise.resolve(undefined);
  const names = sites.map(({ name }) => name);
  const { find, strangers } = await openRetained(retainFrom, names);
  if (strangers.length > 0) {
    const message = `${retainFrom} keeps something of ${JSON.stringify(strangers)}, which are no sites of these inputs`;
    emit({ type: 'warning', message });
  }
  return find;
}

/** A run that is not to rotate puts an end to what an earlier one began. */
async function decideRotation(
  { rotate, out }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<Rotation | undefined> {
  if (!rotate) {
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

async function tryToMake(site: SurveyedSite, making: Making): Promise<SiteOutcome> {
  try {
    return await makeUnlessMade(site, making);
  } catch (error) {
    if (!isOfOneSite(error)) throw error;
    return { kind: 'failed', finding: findingOfError(site.name, error) };
  }
}

async function makeUnlessMade(
  site: SurveyedSite,
  { survey, request, tools, writer, rotation, findRetained }: Making,
): Promise<SiteOutcome> {
  const places = placesFor(request, site.name);
  const retained = await findRetained(site.name);
  const wanted = describeWanted(site, rotation, retained);
  const record = readRecord(places);
  const before = record?.made;
  if (record && before && isUpToDate(record, places, wanted)) return { kind: 'kept', made: before };
  const { keys, signal } = tools;
  const composed = await composeSite(await survey.recall(site), {
    ...{ places, wanted, keys, signal, epoch: request.epoch },
    ...(retained && { retained: retained.identity }),
  });
  await writer.write(composed);
  const findings = [
    ...(rotation ? [] : tellNewKeys(places, before, composed)),
    ...tellOverridden(places, composed.overridden),
  ];
  return { kind: 'made', made: composed.made, findings };
}

const describeWanted = (
  { inputs }: SurveyedSite,
  rotation: Rotation | undefined,
  retained: RetainedSite | undefined,
): Wanted => ({
  inputs: digestOf(`${inputs ?? ''} ${retained?.digest ?? ''}`),
  ...(rotation && { rotation: rotation.id }),
});

/** Ids are drawn with the keys: other ids, other keys. */
function tellNewKeys(
  { iso, state, stateBefore }: SitePlaces,
  before: MadeIso | undefined,
  { made: { clusterId, infraId }, files }: ComposedSite,
): readonly SiteFinding[] {
  if (!before || (before.clusterId === clusterId && before.infraId === infraId)) return [];
  const isKept = files.some(({ path }) => path === stateBefore);
  const problem = isKept
    ? 'has new keys: name, domain or ids of the cluster are others than before, or ' +
      `${basename(state)} was damaged; those of before are in ${basename(stateBefore)}`
    : `has new keys: ${basename(state)} was gone, and those of before with it`;
  return [{ severity: 'warning', file: basename(iso), problem }];
}

/** Where a request puts what is made of a site. */
export const placesFor = ({ dropIn, out }: ConfigIsosRequest, name: string): SitePlaces =>
  dropIn ? dropInPlaces(out) : placesOf(out, name);

/** What was kept goes on the ISO as it is: nobody should think that a change of the inputs did. */
function tellOverridden({ iso }: SitePlaces, keys: readonly string[]): readonly SiteFinding[] {
  if (keys.length === 0) return [];
  const problem = `has the manifest that was kept, in which the inputs differ: ${keys.join(', ')}`;
  return [{ severity: 'warning', file: basename(iso), problem }];
}
