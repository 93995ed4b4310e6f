import { digestOf, type Digest } from '../base/digest.ts';
import { checkSite, type CheckOptions, type SiteFacts } from './check-site.ts';
import type { Site, SiteInput } from './site.ts';
import { findingOf, type SiteFinding } from './site-finding.ts';
import { digestInputs } from './state/site-record.ts';

/** What is known of a site after it was looked at. */
export type SeenSite = {
  readonly inputs: Digest;
  readonly facts?: SiteFacts;
  readonly findings: readonly SiteFinding[];
  /** Only of inputs without a problem. */
  readonly site?: Site;
};

/** More than these of one site are counted, not kept. */
const MAX_FINDINGS = 50;

/** Checks a site by itself. But for the site, what comes back is small: there may be ten thousand. */
export function lookAtSite(input: SiteInput, options: CheckOptions): SeenSite {
  const { site, facts, references, problems, warnings } = checkSite(input, options);
  const findings = limit([
    ...problems.map((problem) => findingOf('error', problem)),
    ...warnings.map((problem) => findingOf('warning', problem)),
  ]);
  // A text cut out of a file keeps the whole file in memory; a clone does not.
  const small = structuredClone({ findings, ...(facts && { facts }) });
  return { inputs: digestAll(input, references), ...small, ...(site && { site }) };
}

/** A site is made from its files and from what they refer to. */
const digestAll = (input: SiteInput, references: ReadonlyMap<string, string>): Digest =>
  references.size === 0
    ? digestInputs(input)
    : digestOf(JSON.stringify([digestInputs(input), ...references]));

/** Errors come first: a site that has one never looks good for want of room. */
function limit(findings: readonly SiteFinding[]): SiteFinding[] {
  const rest = findings.length - MAX_FINDINGS;
  const last = findings[MAX_FINDINGS - 1];
  if (rest <= 0 || !last) return [...findings];
  const { severity, file } = last;
  const more: SiteFinding = { severity, file, problem: `and ${rest + 1} more` };
  return [...findings.slice(0, MAX_FINDINGS - 1), more];
}
