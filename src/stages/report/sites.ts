import { readdir, rm, stat, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { hasFile, writeFileAtomic } from '../../base/disk/files.ts';
import { readRegularFile } from '../../base/disk/open-file.ts';
import { isError, type FileProblem, ConfigError } from '../../base/errors.ts';
import { maxOf } from '../../base/lists.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import type { ComposedIso } from '../../sites/compose/compose.ts';
import { fingerprintIdentity, parseState } from '../../sites/identity/identity.ts';
import { warnOfFile } from '../../sites/site.ts';
import type { ListedIds } from '../../sites/state/claim.ts';
import { listOldStates } from '../../sites/state/directory.ts';
import {
  placesFor,
  sitePlacesOf,
  stateDirectoryOf,
  indexGenerations,
  readGenerations,
  type Generation,
} from '../../sites/state/generations.ts';
import type { Survey, SurveyedSite } from '../1-resolve/check-sites.ts';
import type { ListedRequest, ListedSites, SiteOutcome } from '../5-pour/make-config-isos.ts';

/* Lists of sites in the output directory and of their generations, and views of configuration ISOs. */

export type BuiltSite = Omit<ComposedIso, 'digest'> & {
  readonly name: string;
  /** File below the output directory. */
  readonly iso: string;
  /** 64 hex digits, as `sha256sum` prints them. */
  readonly sha256: string;
  readonly findings: readonly FileProblem[];
};

export type FailedSite = {
  readonly name: string;
  readonly findings: readonly FileProblem[];
  /** Ids in the list of an earlier run, if that run made the ISO. */
  readonly before?: ListedIds;
};

/** Every site of a run. Same inputs and same state, same list. */
export type SiteListing = {
  readonly sites: readonly BuiltSite[];
  readonly failed: readonly FailedSite[];
  /** Findings that belong to no site. */
  readonly findings: readonly FileProblem[];
};

/** Version of the list format, raised when a reader of an older list would misunderstand a newer one. */
const VERSION = 1;
const MODE = 0o644; // it has no secret

/** Lists sites and their outcomes, in the order of the source. */
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
 * Lists ISOs of sites that are no longer among the inputs: a person might still ship them.
 * Reports no such ISO if the inputs could not be listed as a whole.
 */
async function listLeft({ sites, findings }: Survey, out: string): Promise<FileProblem[]> {
  if (findings.some(isError)) return [];
  const known = new Set(sites.map(({ name }) => name));
  const left: FileProblem[] = [];
  for (const file of (await readdir(stateDirectoryOf(out))).sort()) {
    const name = file.slice(0, -RECORD.length);
    if (!file.endsWith(RECORD) || known.has(name)) continue;
    const { iso } = sitePlacesOf(out, name);
    const problem =
      'is from an earlier run and belongs to no site of these inputs: it was left unchanged';
    if (await hasFile(iso)) left.push(warnOfFile(basename(iso), problem));
  }
  return left;
}

/** Keys are reused without limit, but their certificates are not valid forever. */
function findOver(
  notAfter: string,
  { iso, epoch }: { readonly iso: string; readonly epoch: number },
): readonly FileProblem[] {
  if (Date.parse(notAfter) > epoch * 1000) return [];
  const problem = `has a certificate that expired at ${notAfter}`;
  const hint = 'make new keys with --rotate, which also replaces kubeconfig and password';
  return [warnOfFile(basename(iso), problem, hint)];
}

/** No file is removed: an ISO that an earlier run made may be the only one that a person has. */
async function describeFailed(
  { name, findings }: SurveyedSite,
  finding: FileProblem | undefined,
  iso: string,
): Promise<FailedSite> {
  const isStale = /^[a-z0-9-]+$/.test(name) && (await hasFile(iso));
  const stale = warnOfFile(
    basename(iso),
    'is from an earlier run and was left unchanged: do not use it with the inputs of this run',
  );
  return {
    name,
    findings: [...findings, ...(finding ? [finding] : []), ...(isStale ? [stale] : [])],
  };
}

/** The file name of the list. Only a build that has ended gives the list this name. */
export const listFileOf = (out: string): string => join(out, 'sites.json');

/** Reads the ids in the list of an earlier run; returns no ids if the list cannot be read. */
export async function readListedSites(out: string): Promise<ListedSites> {
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

/** Bytes; a list of ten thousand sites takes a twentieth of this. */
const MAX_LIST = 256 << 20;

/** True if a file is a list of an earlier run, of any version. */
export async function isListing(path: string): Promise<boolean> {
  if ((await stat(path)).size > MAX_LIST) return false;
  const listing = parseListing((await readRegularFile(path))?.toString('utf8') ?? '');
  const { sites, version } = listing as { readonly sites?: unknown; readonly version?: unknown };
  return Array.isArray(sites) && typeof version === 'number';
}

/** Removes the list of an earlier run, because it is about to become untrue for the ISOs. */
export const removeListing = (out: string): Promise<void> => rm(listFileOf(out), { force: true });

export const writeListing = (out: string, listing: SiteListing): Promise<void> =>
  writeFileAtomic(listFileOf(out), formatReadableJson({ ...listing, version: VERSION }), MODE);

/** One identity of a site, without its secrets. */
export type ListedGeneration = {
  readonly number: number;
  /** True if the next build uses the identity, if it fits the inputs. */
  readonly isInUse: boolean;
  /** Undefined if the file is damaged. */
  readonly identity?: {
    /** ISO 8601. */
    readonly madeAt: string;
    readonly clusterName: string;
    readonly baseDomain: string;
    readonly clusterId: string;
    readonly infraId: string;
    /** SHA-256 of the public keys of all signers, and of each. */
    readonly fingerprint: string;
    readonly signers: Readonly<Record<string, string>>;
  };
};

/**
 * Lists all generations of a site's identity below an output directory, in the order of their
 * numbers; a state that an earlier version left has the numbers that the next build gives it.
 *
 * @throws ConfigError `config-iso.generation` if there is no generation
 */
export async function listGenerations(
  out: string,
  name: string,
): Promise<readonly ListedGeneration[]> {
  const places = sitePlacesOf(out, name);
  const numbers = indexGenerations(out)(name, places);
  const generations = [...readGenerations(places, numbers)];
  for (const path of listOldStates(out, name)) {
    const state = parseState(await readFile(path, 'utf8'));
    const number =
      maxOf(
        generations.map((one) => one.number),
        0,
      ) + 1;
    generations.push({ number, state });
  }
  const inUse = generations.at(-1)?.number;
  if (inUse === undefined) {
    const message = `${name} has no generation in ${stateDirectoryOf(out)}`;
    throw new ConfigError('config-iso.generation', message, {
      hint: 'check the name of the site and the folder that --out names',
    });
  }
  return generations
    .sort((a, b) => a.number - b.number)
    .map((generation) => describe(generation, generation.number === inUse));
}

function describe({ number, state }: Generation, isInUse: boolean): ListedGeneration {
  if (!state) return { number, isInUse };
  const { identity, site } = state;
  const { clusterId, infraId, madeAt } = identity;
  const { all, signers } = fingerprintIdentity(identity);
  return {
    number,
    isInUse,
    identity: {
      madeAt: new Date(madeAt * 1000).toISOString(),
      clusterName: site.clusterName,
      baseDomain: site.baseDomain,
      clusterId,
      infraId,
      fingerprint: all,
      signers,
    },
  };
}
