import type { Digest } from '../../../base/digest.ts';
import { checkSite, type CheckOptions, type SiteFacts } from '../../../config/sites/check-site.ts';
import type { Site, SiteInput } from '../../../config/sites/site.ts';
import { composeSite, type ComposedSite, type ComposeSite } from '../site/compose-site.ts';
import { findingOf, type SiteFinding } from '../site/site-finding.ts';
import { digestInputs, findMade, type MadeIso, type Wanted } from '../site/site-record.ts';
import type { ComposeOrder, SiteRequest } from './requests.ts';
import type { SitePlaces } from '../site/site-places.ts';

/** What is known of a site after it was looked at. */
export type CheckedSite = {
  readonly inputs: Digest;
  readonly facts?: SiteFacts;
  readonly findings: readonly SiteFinding[];
  /** Only of inputs without a problem. */
  readonly site?: Site;
};

/** Does what a site costs CPU for: in the thread that asks, or in others. */
export type SiteWorker = {
  readonly check: (input: SiteInput, options: CheckOptions) => Promise<CheckedSite>;
  /** What was made before of the same inputs, if all of it is still there. */
  readonly find: (places: SitePlaces, wanted: Wanted) => Promise<MadeIso | undefined>;
  readonly compose: (site: Site, order: ComposeOrder) => Promise<ComposedSite>;
};

type SiteWorkerTools = Pick<ComposeSite, 'keys' | 'signal'>;

/** Does it in the thread that asks. */
export const createSiteWorker = (tools: SiteWorkerTools): SiteWorker => ({
  check: (input, options) =>
    new Promise((resolve) => {
      resolve(check(input, options));
    }),
  find: (places, wanted) =>
    new Promise((resolve) => {
      resolve(findMade(places, wanted));
    }),
  compose: (site, order) => composeSite(site, { ...order, ...tools }),
});

/** What a request asks for. */
export function obeyRequest(worker: SiteWorker, request: SiteRequest): Promise<unknown> {
  switch (request.op) {
    case 'check':
      return worker.check(request.input, request.options);
    case 'find':
      return worker.find(request.places, request.wanted);
    case 'compose':
      return worker.compose(request.site, request.order);
  }
}

function check(input: SiteInput, options: CheckOptions): CheckedSite {
  const { site, facts, problems, warnings } = checkSite(input, options);
  const findings = limit([
    ...problems.map((problem) => findingOf('error', problem)),
    ...warnings.map((problem) => findingOf('warning', problem)),
  ]);
  // A text cut out of a file keeps the whole file in memory; a clone does not.
  const small = structuredClone({ findings, ...(facts && { facts }) });
  return { inputs: digestInputs(input), ...small, ...(site && { site }) };
}

/** More than these of one site are counted, not kept. */
const MAX_FINDINGS = 50;

/** Errors come first: a site that has one never looks good for want of room. */
function limit(findings: readonly SiteFinding[]): SiteFinding[] {
  const rest = findings.length - MAX_FINDINGS;
  const last = findings[MAX_FINDINGS - 1];
  if (rest <= 0 || !last) return [...findings];
  const { severity, file } = last;
  const more: SiteFinding = { severity, file, problem: `and ${rest + 1} more` };
  return [...findings.slice(0, MAX_FINDINGS - 1), more];
}
