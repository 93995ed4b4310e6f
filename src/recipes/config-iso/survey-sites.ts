import type { Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import { checkAcrossSites } from '../../sites/check-sites.ts';
import type { CheckOptions, SiteFacts } from '../../sites/check-site.ts';
import type { SiteList } from '../../sites/sources/read-list.ts';
import type { Site, SiteInput } from '../../sites/site.ts';
import type { SitesRequest, SiteTools } from './config-isos-request.ts';
import { runLanes } from './lanes.ts';
import { createSiteMeter } from './site-meter.ts';
import {
  findingOfError,
  findingOfList,
  isError,
  type SiteFinding,
} from '../../sites/site-finding.ts';
import { lookAtSite } from '../../sites/look-at-site.ts';

/** What is known of a site after it was looked at; small, for there may be ten thousand. */
export type SurveyedSite = {
  readonly name: string;
  /** Of its inputs; absent where they could not be read. */
  readonly inputs?: Digest;
  readonly findings: readonly SiteFinding[];
};

export type Survey = {
  /** In the order of the source; what could not be listed comes last. */
  readonly sites: readonly SurveyedSite[];
  /** What belongs to no site. */
  readonly findings: readonly SiteFinding[];
  /** Gives a checked site again, reading it once more where it was not remembered. */
  readonly recall: (site: SurveyedSite) => Promise<Site>;
};

type SurveyRequest = Pick<SitesRequest, 'epoch' | 'isLenient' | 'seedVersion' | 'env' | 'shared'>;

/** What is kept of it until all sites were looked at. */
type Looked = {
  readonly inputs?: Digest;
  readonly facts?: SiteFacts;
  readonly findings: SiteFinding[];
};

/** Files of sites are read a few ahead; checking them is what takes long. */
const LANES = 4;
/** Bytes of inputs whose sites are kept in memory: those of a thousand or so. */
const REMEMBERED = 4 << 20;

const UNSEEN =
  'nmstatectl is not installed: network configurations were checked, but nmstate did not see them';

/**
 * Reads and checks every site of a list, each for itself and then against each other. Sites that
 * collide are refused together: nobody can tell which of them is right.
 */
export async function surveySites(
  list: SiteList,
  { shared, ...options }: SurveyRequest,
  tools: SiteTools,
): Promise<Survey> {
  const meter = createSiteMeter('check sites', list.names.length, tools);
  const looked = new Map<string, Looked>(list.names.map((name) => [name, { findings: [] }]));
  const remembered = new Map<string, Site>();
  let room = REMEMBERED;
  const unseen: string[] = [];
  await runLanes(list.names, { lanes: LANES, signal: tools.signal }, async (name) => {
    const input = await openSite(list, name);
    if (input instanceof ConfigError) {
      looked.set(name, { findings: [findingOfError(name, input)] });
    } else {
      const { site, findings, ...more } = lookAtSite(input, options);
      const kept = { ...more, findings: [...findings] };
      looked.set(name, kept);
      if (site?.imageBased.networkConfig !== undefined) {
        if (!tools.nmstate) unseen.push(name);
        append(kept.findings, await askNmstate(site, input, tools));
      }
      room -= sizeOf(input);
      if (site && room > 0) remembered.set(name, site);
    }
    meter.advance();
  });
  compare(looked, shared);
  meter.end();
  if (unseen.length > 0) tools.emit({ type: 'warning', message: UNSEEN });
  return {
    ...gather(list, looked),
    recall: async ({ name, inputs }) => {
      const site = remembered.get(name);
      remembered.delete(name);
      return site ?? reread(list, { name, inputs }, options);
    },
  };
}

async function openSite(list: SiteList, name: string): Promise<SiteInput | ConfigError> {
  try {
    return await list.open(name);
  } catch (error) {
    if (error instanceof ConfigError) return error; // of this site only
    throw error;
  }
}

async function askNmstate(
  { imageBased: { networkConfig } }: Site,
  { files }: SiteInput,
  { nmstate, signal }: SiteTools,
): Promise<readonly SiteFinding[]> {
  if (!nmstate || networkConfig === undefined) return [];
  const problem = await nmstate.ask(networkConfig, signal);
  if (problem === undefined) return [];
  const file = files.find(({ path }) => path === 'image-based-config.yaml');
  return [{ severity: 'error', file: file?.shownAs ?? '', path: 'networkConfig', problem }];
}

const sizeOf = ({ files }: SiteInput): number =>
  files.reduce((sum, { bytes }) => sum + bytes.length, 0);

function compare(looked: ReadonlyMap<string, Looked>, shared: SitesRequest['shared']): void {
  const facts = [...looked.values()].flatMap((site) => (site.facts ? [site.facts] : []));
  for (const { name, ...finding } of checkAcrossSites(facts, shared)) {
    looked.get(name)?.findings.push(finding);
  }
}

function gather(
  list: SiteList,
  looked: ReadonlyMap<string, Looked>,
): Pick<Survey, 'sites' | 'findings'> {
  const findings: SiteFinding[] = [];
  const listed = new Map<string, SiteFinding[]>();
  for (const problem of list.problems) {
    if (problem.name === '') findings.push(findingOfList(problem));
    else listed.set(problem.name, [...(listed.get(problem.name) ?? []), findingOfList(problem)]);
  }
  const names = new Set([...list.names, ...listed.keys()]);
  const sites = [...names].map((name) => {
    const { inputs, findings = [] } = looked.get(name) ?? {};
    return {
      name,
      findings: [...(listed.get(name) ?? []), ...findings],
      ...(inputs && { inputs }),
    };
  });
  return { sites, findings };
}

type Seen = { readonly name: string; readonly inputs: Digest | undefined };

/** @throws ConfigError `sites.changed` */
async function reread(
  list: SiteList,
  { name, inputs }: Seen,
  options: CheckOptions,
): Promise<Site> {
  const found = lookAtSite(await list.open(name), options);
  if (found.site && found.inputs === inputs) return found.site;
  throw new ConfigError('sites.changed', `the inputs of ${name} changed while sites were built`, {
    hint: 'run the same command again',
  });
}

/** Whether nothing speaks against making it. */
export const isGood = ({ findings }: SurveyedSite): boolean => !findings.some(isError);
