import { readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { formatReadableJson } from '../../base/text/json.ts';
import { hexOf } from '../../base/digest.ts';
import { hasFile, writeFileAtomic } from '../../base/disk/files.ts';
import { readRegularFile } from '../../base/disk/open-file.ts';
import type { ListedRequest, ListedSites } from './make-sites.ts';
import { placesFor, placesOf, stateDirectoryOf } from '../../sites/state/generations.ts';
import { isError, type FileProblem } from '../../base/errors.ts';
import { warnOfFile } from '../../sites/site.ts';
import type { MadeIso } from '../../sites/compose/compose.ts';
import type { SiteOutcome } from '../../stages/each-site/make-isos.ts';
import type { ListedIds } from '../../sites/state/claim.ts';
import type { Survey, SurveyedSite } from './survey-sites.ts';

/** A site whose ISO is there. */
export type BuiltSite = Omit<MadeIso, 'digest'> & {
  readonly name: string;
  /** File below the output directory. */
  readonly iso: string;
  /** 64 hex digits, as `sha256sum` prints them. */
  readonly sha256: string;
  /** Warnings. */
  readonly findings: readonly FileProblem[];
};

export type FailedSite = {
  readonly name: string;
  readonly findings: readonly FileProblem[];
  /** What an earlier run wrote of it, if one made it. */
  readonly before?: ListedIds;
};

/** Every site of a run. Same inputs and same state, same list. */
export type SiteListing = {
  readonly sites: readonly BuiltSite[];
  readonly failed: readonly FailedSite[];
  /** What belongs to no site. */
  readonly findings: readonly FileProblem[];
};

/** Raised when a reader of an older list would misunderstand a newer one. */
const VERSION = 1;
const MODE = 0o644; // it has no secret

/** Sites and what became of them, in the order of the source. */
export async function listOutcomes(
  survey: Survey,
  outcomes: ReadonlyMap<string, SiteOutcome>,
  request: ListedRequest,
): Promise<SiteListing> {
  const sites: BuiltSite[] = [];
  const failed: FailedSite[] = [];
  for (const site of survey.sites) {
    const outcome = outcomes.get(site.name);
    const { iso } = placesFor(request, site.name);
    if (outcome !== undefined && outcome.kind !== 'failed') {
      const { digest, ...made } = outcome.made;
      const over = findOver(made.validity.notAfter, { iso, epoch: request.epoch });
      const findings = [...site.findings, ...outcome.findings, ...over];
      const { name } = site;
      sites.push({ name, iso: basename(iso), sha256: hexOf(digest), ...made, findings });
    } else {
      const before = request.listed.get(site.name);
      const described = await describeFailed(site, outcome?.finding, iso);
      failed.push({ ...described, ...(before && { before }) });
    }
  }
  const left = request.dropIn ? [] : await listLeft(survey, request.out);
  return { sites, failed, findings: [...survey.findings, ...left] };
}

const RECORD = '.made.json';

/**
 * ISOs of sites that are among the inputs no more: someone would ship them all the same. Nothing is
 * said where the inputs could not be listed as a whole.
 */
async function listLeft({ sites, findings }: Survey, out: string): Promise<FileProblem[]> {
  if (findings.some(isError)) return [];
  const known = new Set(sites.map(({ name }) => name));
  const left: FileProblem[] = [];
  for (const file of (await readdir(stateDirectoryOf(out))).sort()) {
    const name = file.slice(0, -RECORD.length);
    if (!file.endsWith(RECORD) || known.has(name)) continue;
    const { iso } = placesOf(out, name);
    const problem = 'is of an earlier run and of no site of these inputs: it was left as it is';
    if (await hasFile(iso)) left.push(warnOfFile(basename(iso), problem));
  }
  return left;
}

/** Kept keys are used for ever, but their certificates are not valid for ever. */
function findOver(
  notAfter: string,
  { iso, epoch }: { readonly iso: string; readonly epoch: number },
): readonly FileProblem[] {
  if (Date.parse(notAfter) > epoch * 1000) return [];
  const problem = `has a certificate that was valid until ${notAfter}`;
  const hint = 'make new keys with --rotate: kubeconfig and password become new, too';
  return [warnOfFile(basename(iso), problem, hint)];
}

/** Nothing is removed: an ISO that a former run made may be all that someone has. */
async function describeFailed(
  { name, findings }: SurveyedSite,
  finding: FileProblem | undefined,
  iso: string,
): Promise<FailedSite> {
  const isStale = /^[a-z0-9-]+$/.test(name) && (await hasFile(iso));
  const stale = warnOfFile(
    basename(iso),
    'is of an earlier run and was left as it is: do not use it for the inputs of this one',
  );
  return {
    name,
    findings: [...findings, ...(finding ? [finding] : []), ...(isStale ? [stale] : [])],
  };
}

/** Named by a build that has ended, and by no other. */
export const listFileOf = (out: string): string => join(out, 'sites.json');

/** The ids that the list of an earlier run has; a list that cannot be read has none. */
export async function readListed(out: string): Promise<ListedSites> {
  const text = (await readRegularFile(listFileOf(out)))?.toString('utf8') ?? '';
  const { sites = [], failed = [] } = parseListing(text);
  const listed = new Map<string, ListedIds>();
  for (const { name, before } of failed) if (before) listed.set(name, before);
  for (const { name, clusterId, infraId } of sites) listed.set(name, { clusterId, infraId });
  return listed;
}

function parseListing(text: string): Partial<SiteListing> {
  try {
    const listing: unknown = JSON.parse(text);
    return typeof listing === 'object' && listing !== null ? listing : {};
  } catch {
    return {};
  }
}

/** Bytes; a list of ten thousand sites has a twentieth. */
const MAX_LIST = 256 << 20;

/** Whether a file is a list of an earlier run, of any version. */
export async function isListing(path: string): Promise<boolean> {
  if ((await stat(path)).size > MAX_LIST) return false;
  const listing = parseListing((await readRegularFile(path))?.toString('utf8') ?? '');
  const { sites, version } = listing as { readonly sites?: unknown; readonly version?: unknown };
  return Array.isArray(sites) && typeof version === 'number';
}

/** What an earlier run said of the ISOs is about to become untrue. */
export const removeListing = (out: string): Promise<void> => rm(listFileOf(out), { force: true });

export const writeListing = (out: string, listing: SiteListing): Promise<void> =>
  writeFileAtomic(listFileOf(out), formatReadableJson({ ...listing, version: VERSION }), MODE);
