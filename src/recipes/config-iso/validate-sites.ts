import { refuseNothing } from './build-config-isos.ts';
import type { SitesRequest, SiteTools } from './config-isos-request.ts';
import { openSites } from './open-sites.ts';
import type { FileProblem } from '../../base/errors.ts';
import { isGood, surveySites } from './survey-sites.ts';

/** What is to be said of the inputs of sites. */
export type SitesVerdict = {
  /** Number of sites that an ISO could be made of. */
  readonly good: number;
  /** Those of which no ISO could be made. */
  readonly failed: readonly string[];
  /** Only sites that there is something to say of. */
  readonly sites: readonly {
    readonly name: string;
    readonly findings: readonly FileProblem[];
  }[];
  /** What belongs to no site. */
  readonly findings: readonly FileProblem[];
};

/**
 * Everything that a build would say of the inputs, without making or writing anything.
 *
 * @throws ConfigError `config-iso.no-sites`, those of `listSites`; UsageError `usage.drop-in`
 */
export async function validateSites(
  request: SitesRequest,
  tools: SiteTools,
): Promise<SitesVerdict> {
  const list = await openSites(request, tools.signal);
  try {
    const survey = await surveySites(list, request, tools);
    refuseNothing(survey, request.sites);
    const failed = survey.sites.filter((site) => !isGood(site));
    return {
      good: survey.sites.length - failed.length,
      failed: failed.map(({ name }) => name),
      sites: survey.sites
        .filter(({ findings }) => findings.length > 0)
        .map(({ name, findings }) => ({ name, findings })),
      findings: survey.findings,
    };
  } finally {
    await list.close();
  }
}
