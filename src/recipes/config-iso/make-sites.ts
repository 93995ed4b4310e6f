import { basename, join } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { Site } from '../../sites/site.ts';
import type { StateSite } from '../../sites/identity/identity-state.ts';
import { listInputs, type ConfigIsosRequest, type ConfigIsosTools } from './config-isos-request.ts';
import { runLanes } from './lanes.ts';
import {
  openRetained,
  type FindRetained,
  type RetainedSite,
} from '../../sites/state/open-retained.ts';
import { beginRotation, endRotation, type Rotation } from '../../sites/state/rotation.ts';
import { claimFiles } from '../../sites/state/claim-files.ts';
import { composeSite } from '../../sites/compose/compose-site.ts';
import { indexGenerations, type GenerationIndex } from '../../sites/state/generations.ts';
import { provideIdentity, type ProvidedIdentity } from '../../sites/state/provide-identity.ts';
import { findingOfError, isOfOneSite, type SiteFinding } from '../../sites/site-finding.ts';
import { createSiteMeter } from './site-meter.ts';
import {
  dropInPlaces,
  placesOf,
  STATE_DIRECTORY,
  type SitePlaces,
} from '../../sites/state/site-places.ts';
import {
  isUpToDate,
  readRecord,
  type MadeIso,
  type Wanted,
} from '../../sites/state/site-record.ts';
import type { ListedIds } from '../../sites/state/take-back.ts';
import { createSiteWriter, SITES_AT_ONCE, type SiteWriter } from '../../sites/state/site-writer.ts';
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

/** What the list of an earlier run says of sites, by their names. */
export type ListedSites = ReadonlyMap<string, ListedIds>;

export type ListedRequest = ConfigIsosRequest & { readonly listed: ListedSites };

type Making = {
  readonly survey: Survey;
  readonly request: ConfigIsosRequest;
  readonly tools: ConfigIsosTools;
  readonly writer: SiteWriter;
  /** Of the sites that take part in it. */
  readonly rotationOf: (name: string) => string | undefined;
  readonly findRetained: FindRetained;
  readonly numbersOf: GenerationIndex;
  readonly listed: ListedSites;
  /** What is never written. */
  readonly inputs: readonly string[];
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
  request: ListedRequest,
  tools: ConfigIsosTools,
): Promise<ReadonlyMap<string, SiteOutcome>> {
  const good = survey.sites.filter(isGood);
  const findRetained = await openKept(survey, request, tools);
  const rotation = await decideRotation(request, tools);
  const making: Making = {
    survey,
    request,
    tools,
    findRetained,
    writer: createSiteWriter(),
    rotationOf: (name) => (takesPart(request, name) ? rotation?.id : undefined),
    numbersOf: indexGenerations(request.out),
    listed: request.listed,
    inputs: listInputs(request),
  };
  const meter = createSiteMeter('make ISOs', good.length, tools);
  const outcomes = new Map<string, SiteOutcome>();
  const lanes = request.jobs + LANES;
  await runLanes(good, { lanes, signal: tools.signal }, async (site) => {
    outcomes.set(site.name, await tryToMake(site, making));
    meter.advance();
  });
  meter.end();
  const rotated = survey.sites.filter(({ name }) => takesPart(request, name));
  if (rotated.every(({ name }) => isThere(outcomes.get(name)))) await endRotation(request.out);
  return outcomes;
}

const isThere = (outcome: SiteOutcome | undefined): boolean =>
  outcome !== undefined && outcome.kind !== 'failed';

const takesPart = ({ rotate, newIdentities }: ConfigIsosRequest, name: string): boolean =>
  rotate || (newIdentities?.has(name) ?? false);

async function openKept(
  { sites }: Survey,
  { retainFrom, kubeconfig }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<FindRetained> {
  if (retainFrom === undefined) return () => Promise.resolve(undefined);
  const names = sites.map(({ name }) => name);
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

async function tryToMake(site: SurveyedSite, making: Making): Promise<SiteOutcome> {
  try {
    return await makeUnlessMade(site, making);
  } catch (error) {
    if (!isOfOneSite(error)) throw error;
    return { kind: 'failed', finding: findingOfError(site.name, error) };
  }
}

/** What is there of a site, and what is wanted of it. */
type Sited = {
  readonly name: string;
  readonly places: SitePlaces;
  readonly retained: RetainedSite | undefined;
  readonly wanted: Wanted;
  readonly record: ReturnType<typeof readRecord>;
  /** Numbers of generations in the order of their use. */
  readonly numbers: readonly number[];
  readonly use: number | undefined;
};

async function makeUnlessMade(site: SurveyedSite, making: Making): Promise<SiteOutcome> {
  const { name } = site;
  const { request } = making;
  const places = placesFor(request, name);
  const retained = await making.findRetained(name);
  if (retained && request.newIdentities?.has(name)) throw contradicting(name);
  const wanted = describeWanted(site, making.rotationOf(name), retained);
  const sited: Sited = {
    name,
    places,
    retained,
    wanted,
    record: readRecord(places),
    numbers: making.numbersOf(name, places),
    use: request.useGenerations?.get(name),
  };
  const made = findMade(sited);
  return made ? { kind: 'kept', made } : makeSite(site, sited, making);
}

function findMade({ places, wanted, record, numbers, use }: Sited): MadeIso | undefined {
  const inUse = numbers.at(-1);
  if (!record?.made || inUse === undefined || (use ?? inUse) !== inUse) return undefined;
  const isThere = isUpToDate(record, { ...places, inUse }, wanted);
  return isThere ? { ...record.made, generation: inUse } : undefined;
}

async function makeSite(
  surveyed: SurveyedSite,
  { name, places, retained, wanted, record, numbers, use }: Sited,
  { survey, request, tools, writer, listed, inputs }: Making,
): Promise<SiteOutcome> {
  const { force = false } = request;
  const site = await survey.recall(surveyed);
  const provided = await provideIdentity({
    name,
    places,
    site: stateSiteOf(site),
    numbers,
    isRecorded: record?.made !== undefined,
    listed: listed.get(name),
    retained: retained?.identity,
    use,
    rotation: wanted.rotation,
    mayBeNew: request.newIdentities?.has(name) ?? false,
    keys: tools.keys,
    epoch: request.epoch,
    signal: tools.signal,
  });
  const composed = composeSite(site, { places, wanted, provided, retained: retained?.identity });
  const remains = composed.isThere ? [] : await claimFiles({ places, provided, inputs, force });
  await writer.write(composed);
  const findings = [
    ...provided.findings,
    ...tellRemains(places, remains),
    ...tellNoPassword(places, provided, retained),
  ];
  return { kind: composed.isThere ? 'kept' : 'made', made: composed.made, findings };
}

const contradicting = (name: string): ConfigError =>
  new ConfigError('config-iso.new-identity', `${name} has an identity in --retain-from`, {
    hint: `leave out --new-identity ${name}, or take it out of --retain-from`,
  });

const stateSiteOf = ({ install, imageBased }: Site): StateSite => ({
  clusterName: install.clusterName,
  baseDomain: install.baseDomain,
  ...withoutUndefined({ clusterId: imageBased.clusterId, infraId: imageBased.infraId }),
});

const describeWanted = (
  { inputs }: SurveyedSite,
  rotation: string | undefined,
  retained: RetainedSite | undefined,
): Wanted => ({
  inputs: digestOf(`${inputs ?? ''} ${retained?.digest ?? ''}`),
  ...withoutUndefined({ rotation }),
});

function tellRemains({ iso }: SitePlaces, names: readonly string[]): readonly SiteFinding[] {
  if (names.length === 0) return [];
  const kept = names.map((name) => join(STATE_DIRECTORY, name)).join(', ');
  const problem = `was of an identity that ${STATE_DIRECTORY} does not have: what was left of it is now ${kept}`;
  return [{ severity: 'warning', file: basename(iso), problem }];
}

function tellNoPassword(
  { iso, password }: SitePlaces,
  { state }: ProvidedIdentity,
  retained: RetainedSite | undefined,
): readonly SiteFinding[] {
  if (!retained || state.identity.password.text !== '') return [];
  const problem = `has a password of which only the hash is known: ${basename(password)} is empty`;
  return [{ severity: 'warning', file: basename(iso), problem }];
}

/** Where a request puts what is made of a site. */
export const placesFor = ({ dropIn, out }: ConfigIsosRequest, name: string): SitePlaces =>
  dropIn ? dropInPlaces(out) : placesOf(out, name);
