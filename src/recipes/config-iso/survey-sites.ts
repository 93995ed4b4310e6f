import type { Digest } from '../../base/digest.ts';
import { append } from '../../base/lists.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { mapStage } from '../../engine/map-stage.ts';
import { checkAcrossSites } from '../../sites/facts.ts';
import { isError, type FileProblem } from '../../base/errors.ts';
import { createSiteReader, type SiteReader } from '../../sites/reader.ts';
import type { SiteList } from '../../sites/sources/list.ts';
import { checkSites } from '../../stages/each-site/check-sites.ts';
import type { SitesRequest, SiteTools } from './config-isos-request.ts';

/** What is known of a site after it was looked at; small, for there may be ten thousand. */
export type SurveyedSite = {
  readonly name: string;
  /** Of its inputs; absent where they could not be read. */
  readonly inputs?: Digest;
  readonly findings: readonly FileProblem[];
};

export type Survey = {
  /** In the order of the source; what could not be listed comes last. */
  readonly sites: readonly SurveyedSite[];
  /** What belongs to no site. */
  readonly findings: readonly FileProblem[];
  readonly reader: SiteReader;
};

/** Files of sites are read a few ahead; checking them is what takes long. */
const AT_ONCE = 4;

const UNSEEN =
  'nmstatectl is not installed: network configurations were checked, but nmstate did not see them';

/**
 * Reads and checks every site of a list, each for itself and then against each other. Sites that
 * collide are refused together: nobody can tell which of them is right.
 */
export async function surveySites(
  list: SiteList,
  { shared, ...options }: SitesRequest,
  tools: SiteTools,
): Promise<Survey> {
  const reader = createSiteReader(list, options);
  const items = list.names.map((name) => ({ name }));
  const { nmstate } = tools;
  const checked = await mapStage(checkSites, items, {
    ...tools,
    tools: { reader, nmstate },
    atOnce: AT_ONCE,
  });
  const all = [...checked.values()];
  if (all.some(({ isUnseen }) => isUnseen)) tools.emit({ type: 'warning', message: UNSEEN });
  const facts = all.flatMap((site) => site.facts ?? []);
  const found = new Map<string, FileProblem[]>(list.names.map((name) => [name, []]));
  const add = (name: string, findings: Iterable<FileProblem>): void => {
    const known = found.get(name) ?? [];
    append(known, findings);
    found.set(name, known);
  };
  for (const { name, ...problem } of list.problems) add(name, [problem]);
  for (const [name, { findings }] of checked) add(name, findings);
  for (const { name, ...finding } of checkAcrossSites(facts, shared)) add(name, [finding]);
  const ofNone = found.get(OF_NONE) ?? [];
  found.delete(OF_NONE);
  const sites = [...found].map(([name, findings]) => {
    const { inputs } = checked.get(name) ?? {};
    return { name, findings, ...withoutUndefined({ inputs }) };
  });
  return { sites, findings: ofNone, reader };
}

/** The name of what belongs to no site. */
const OF_NONE = '';

/** Whether nothing speaks against making it. */
export const isGood = (site: SurveyedSite): site is SurveyedSite & { readonly inputs: Digest } =>
  site.inputs !== undefined && !site.findings.some(isError);
