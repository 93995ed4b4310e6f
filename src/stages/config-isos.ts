import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sweepDirectory } from '../base/disk/aside.ts';
import { checkOutputPlace, claimOutput } from '../base/disk/claim-output.ts';
import { explainOutputError } from '../base/disk/disk-errors.ts';
import { syncDirectory, unlessAbsent } from '../base/disk/files.ts';
import { withLease } from '../base/disk/lease.ts';
import type { Lease } from '../base/disk/succession.ts';
import { readRegularFile } from '../base/disk/open-file.ts';
import { ConfigError, DiskError, UsageError, isErrno, type FileProblem } from '../base/errors.ts';
import {
  adoptOldState,
  makeStateDirectory,
  isOurReadme,
  isStateFile,
  readmeOf,
} from '../sites/state/directory.ts';
import { placesFor, stateDirectoryOf } from '../sites/state/generations.ts';
import { openSites, surveySites, type Survey, isGood } from './1-resolve/check-sites.ts';
import { concludeRotation, makeSites, type SiteOutcome } from './5-pour/make-config-isos.ts';
import {
  listOutcomes,
  readListedSites,
  removeListing,
  writeListing,
  type SiteListing,
  isListing,
  listFileOf,
} from './report/sites.ts';
import {
  ONLY_SITE,
  type ConfigIsosRequest,
  type ConfigIsosTools,
  listInputs,
  type SitesRequest,
  type SiteTools,
} from './request.ts';
import { leaseOptionsOf } from './tools.ts';

/*
 * The configuration ISOs of sites as a product: it claims the output directory, has the ISOs of all good
 * sites made, and writes the list of all sites. It also validates sites without writing anything.
 */

export type ConfigIsosReport = SiteListing & {
  readonly out: string;
  /** ISOs that this run made. */
  readonly made: number;
  /** ISOs that already existed, made of the same inputs. */
  readonly reused: number;
};

export type SitesVerdict = {
  /** Number of sites that an ISO could be made of. */
  readonly good: number;
  /** Sites of which no ISO could be made. */
  readonly failed: readonly string[];
  /** Only sites with findings. */
  readonly sites: readonly {
    readonly name: string;
    readonly findings: readonly FileProblem[];
  }[];
  /** Findings that belong to no site. */
  readonly findings: readonly FileProblem[];
  /** True if nmstatectl was missing to check a network configuration. */
  readonly isUnseen: boolean;
};

/**
 * Makes a configuration ISO of each site, with kubeconfig and password next to it, and a list of all. A bad
 * site never stops the others: it is among `failed`. After being killed at any moment, the same request makes
 * what is missing, with the same keys. Two builds of one output directory exclude each other.
 *
 * @throws ConfigError `config-iso.no-sites`, the errors of `listSites` and `openRetained`; DiskError;
 * UsageError `usage.drop-in`, `usage.use-generation`, the errors of `claimFolder`
 */
export async function buildConfigIsos(
  request: ConfigIsosRequest,
  tools: ConfigIsosTools,
): Promise<ConfigIsosReport> {
  const { out } = request;
  try {
    await claimFolder(request);
    const state = await makeStateDirectory(out);
    const lease = leaseOptionsOf(tools);
    return await withLease(join(state, 'build.lock'), lease, async (held) => {
      await sweepDirectory(out, { alone: true });
      await sweepDirectory(state, { alone: true });
      await adoptOldState(out, lease);
      return buildLocked(request, tools, held);
    });
  } catch (error) {
    throw explainObstacle(error, out);
  }
}

/**
 * Reports everything that a build would report about the inputs, without making or writing anything.
 *
 * @throws ConfigError `config-iso.no-sites`, the errors of `listSites`; UsageError `usage.drop-in`
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
      isUnseen: survey.isUnseen,
    };
  } finally {
    await list.close();
  }
}

/** Explains an obstacle for all sites; a problem with the place of one site was reported for that site. */
function explainObstacle(cause: unknown, out: string): unknown {
  if (!isErrno(cause, 'EEXIST', 'ENOTDIR', 'EISDIR', 'ERR_FS_EISDIR')) {
    return explainOutputError(cause, out);
  }
  return new DiskError('output.in-the-way', `an existing file or folder is in the way in ${out}`, {
    cause,
    hint: 'choose another folder with --out, or move it away',
  });
}

async function buildLocked(
  request: ConfigIsosRequest,
  tools: ConfigIsosTools,
  lease: Lease,
): Promise<ConfigIsosReport> {
  const { out, dropIn } = request;
  const list = await openSites(request, tools.signal);
  try {
    const survey = await surveySites(list, request, tools);
    refuseNothing(survey, request.sites);
    const named = nameGenerations(survey, request);
    refuseStrangers(survey, named);
    const listed = dropIn ? new Map<never, never>() : await readListedSites(out);
    // A table that cannot be read as sites says nothing about the ISOs that exist.
    const isListed = !dropIn && (survey.sites.length > 0 || listed.size === 0);
    await lease.requireHeld();
    if (isListed) await removeListing(out);
    const { sites, reader } = survey;
    const names = sites.map(({ name }) => name);
    const good = sites.filter(isGood);
    const outcomes = await makeSites(
      { names, good, reader },
      { ...named, listed },
      { ...tools, lease },
    );
    await lease.requireHeld();
    await syncNames(survey, outcomes, request);
    const listing = await listOutcomes(survey, outcomes, { ...named, listed });
    if (isListed) await writeListing(out, listing);
    await concludeRotation({ names }, outcomes, request);
    const count = (wanted: string): number =>
      [...outcomes.values()].filter(({ kind }) => kind === wanted).length;
    return { out, ...listing, made: count('made'), reused: count('reused') };
  } finally {
    await list.close();
  }
}

/** Syncs each directory once, for all its names; files were synced as they were made. */
async function syncNames(
  { sites }: Survey,
  outcomes: ReadonlyMap<string, SiteOutcome>,
  request: ConfigIsosRequest,
): Promise<void> {
  const made = sites.filter(({ name }) => outcomes.get(name)?.kind === 'made');
  const directories = made.map(({ name }) => dirname(placesFor(request, name).kubeconfig));
  const { out } = request;
  for (const path of [...directories, out, stateDirectoryOf(out)]) await syncDirectory(path);
}

/** Names the site of each number: a number without a name belongs to the only site. */
function nameGenerations({ sites }: Survey, request: ConfigIsosRequest): ConfigIsosRequest {
  const { useGenerations } = request;
  const number = useGenerations?.get(ONLY_SITE);
  if (number === undefined) return request;
  const [only, ...others] = sites;
  if (only && others.length === 0) {
    return { ...request, useGenerations: new Map([[only.name, number]]) };
  }
  throw new UsageError(
    'usage.use-generation',
    `--use-generation ${number} does not name its site`,
    {
      found: `${sites.length} sites`,
      hint: `write --use-generation NAME=${number}`,
    },
  );
}

function refuseStrangers(
  { sites }: Survey,
  { newIdentities, useGenerations }: ConfigIsosRequest,
): void {
  const names = new Set(sites.map(({ name }) => name));
  const options = {
    '--new-identity': newIdentities ?? [],
    '--use-generation': useGenerations?.keys() ?? [],
  };
  for (const [option, named] of Object.entries(options)) {
    const unknown = [...named].find((name) => !names.has(name));
    if (unknown === undefined) continue;
    throw new ConfigError('config-iso.unknown-site', `${option} names a site that does not exist`, {
      expected: 'the name of a site of these inputs',
      found: unknown,
    });
  }
}

export function refuseNothing({ sites, findings }: Survey, shownAs: string): void {
  if (sites.length > 0 || findings.some(({ severity }) => severity === 'error')) return;
  throw new ConfigError('config-iso.no-sites', `${shownAs} has no site`, {
    hint: 'give a folder with install-config.yaml and image-based-config.yaml or agent-config.yaml, or a folder of such folders',
  });
}

/**
 * Decides, before anything is made, if the list of all sites and the state may be written: each
 * may be absent, empty, or made by a build; anything else only with `force`.
 */
async function claimFolder(request: ConfigIsosRequest): Promise<void> {
  const { out, dropIn, force = false } = request;
  const inputs = listInputs(request);
  const state = stateDirectoryOf(out);
  if (unlessAbsent(() => lstatSync(state))?.isSymbolicLink()) {
    await checkOutputPlace({ path: state });
  }
  await claimOutput(
    { path: readmeOf(state), inputs },
    {
      force,
      expected: 'the README of an earlier build',
      isReplaceable: () => isOurReadme(state),
    },
  );
  if (!force) await refuseForeignState(state);
  if (dropIn) return;
  const path = listFileOf(out);
  await claimOutput(
    { path, inputs },
    { force, expected: 'the list of an earlier build', isReplaceable: () => isListing(path) },
  );
}

/** A state whose README was lost is recognized by the names of its files. */
async function refuseForeignState(state: string): Promise<void> {
  if ((await readRegularFile(readmeOf(state))) !== undefined) return;
  const names = unlessAbsent(() => lstatSync(state)) ? await readdir(state) : [];
  const foreign = names.find((name) => !isStateFile(name));
  if (foreign === undefined) return;
  throw new UsageError('output.exists', `"${state}" exists and is not the state of a build`, {
    expected: 'nothing, an empty folder, or the state of an earlier build',
    found: join(state, foreign),
    hint: 'name another folder with --out, or use this one with --force, which keeps its contents',
  });
}
