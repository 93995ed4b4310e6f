import {
  ConfigError,
  type FileProblem,
  formatNames,
  formatProblem,
  isError,
} from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { toPrintable } from '../../base/text/words.ts';
import { findNetworkTool } from '../../nmstate/index.ts';
import type { SitesVerdict } from '../../stages/config-isos.ts';
import type { SiteTools } from '../../stages/request.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { showEvent, showMessage } from '../terminal/output.ts';
import { createProgress, type LogFormat } from '../terminal/progress.ts';
import { type Phrase, type Report, say, writeReport } from '../terminal/report.ts';
import type { SitesOptions } from './request.ts';

/* This file owns what the commands for sites have in common: tools, progress, and the end with findings and exit code. */

export async function runSites<Result>(
  host: CliHost,
  { logFormat }: Pick<SitesOptions, 'logFormat'>,
  work: (tools: SiteTools) => Promise<Result>,
): Promise<Result> {
  const { signal, now } = host;
  keepGarbageSmall(100);
  const nmstate = await findNetworkTool(host);
  const progress = createProgress(host, logFormat);
  try {
    return await work({ signal, now, emit: progress.listener, nmstate });
  } finally {
    progress.close();
  }
}

type SitesResult = Pick<SitesVerdict, 'findings'> & {
  readonly sites: readonly SiteFindings[];
  /** Sites that failed, by name or with their findings. */
  readonly failed: readonly (string | SiteFindings)[];
};

type Ending = {
  readonly host: CliHost;
  readonly options: SitesOptions;
  /** Number of good sites, what happened to the others, and what to do. */
  readonly failure: { readonly good: number; readonly what: string; readonly hint: string };
};

/**
 * Writes findings and report.
 *
 * @throws ConfigError `config-iso.sites` if sites failed
 */
export async function finishSites<Result extends SitesResult>(
  result: Result,
  describe: (result: Result) => Report,
  { host, options, failure }: Ending,
): Promise<void> {
  const { findings, sites, failed } = result;
  const ofFailed = failed.filter((each) => typeof each !== 'string');
  writeFindings(host, options.logFormat, [{ name: '', findings }, ...sites, ...ofFailed]);
  await writeReport({ host, ...options }, result, describe);
  if (failed.length === 0 && !findings.some(isError)) return;
  const message =
    failed.length === 0
      ? 'some of the inputs belong to no site and are refused'
      : `${failed.length} of ${failure.good + failed.length} sites ${failure.what}`;
  throw new ConfigError('config-iso.sites', message, { hint: failure.hint });
}

/** Most failed sites that a report names. */
const NAMED = 10;

/** The names of failed sites in one phrase; none if all are good. */
export function nameFailed(failed: readonly { readonly name: string }[]): readonly Phrase[] {
  const names = failed.slice(0, NAMED).map(({ name }) => toPrintable(name));
  const more = failed.length > NAMED ? ` and ${failed.length - NAMED} more` : '';
  return failed.length === 0 ? [] : [say`${names.join(', ')}${[more]}`];
}

type SiteFindings = { readonly name: string; readonly findings: readonly FileProblem[] };

/** Most errors shown, more than a person fixes at once. */
const SHOWN_ERRORS = 500;
const SHOWN_WARNINGS = 20;
/** Least number of warnings in different places that are alike, and are printed as one. */
const MANY = 4;
/** Most sites that are named for one finding. */
const SHOWN_SITES = 5;

/** Writes the findings to stderr, errors last; in JSON, one per line and all of them. */
function writeFindings(host: CliHost, format: LogFormat, found: readonly SiteFindings[]): void {
  const isQuiet = host.log?.level() === 'quiet';
  const shown = isQuiet
    ? found.map(({ name, findings }) => ({ name, findings: findings.filter(isError) }))
    : found;
  for (const event of listAsEvents(found)) host.log?.record(event);
  if (format === 'json') {
    for (const event of listAsEvents(shown)) showEvent(host, event);
    return;
  }
  const lines = listAsText(shown);
  if (lines.length > 0) showMessage(host, `${lines.join('\n')}\n`);
}

const listAsEvents = (found: readonly SiteFindings[]): readonly object[] =>
  found.flatMap(({ name, findings }) =>
    findings.map((finding) => ({ type: 'finding', site: name, ...finding })),
  );

function listAsText(found: readonly SiteFindings[]): readonly string[] {
  const causes = groupByCause(found);
  const errors = causes.filter(({ finding }) => isError(finding));
  const others = groupAlike(causes.filter(({ finding }) => !isError(finding)));
  return [
    ...cut(others, SHOWN_WARNINGS, 'warnings'),
    ...cut(errors.map(formatCause), SHOWN_ERRORS, 'errors'),
  ];
}

type Cause = { readonly finding: FileProblem; readonly sites: readonly string[] };

/** Joins findings of sites at one place: a line of their template, or a cell. */
function groupByCause(found: readonly SiteFindings[]): readonly Cause[] {
  const all = found.flatMap(({ name, findings }) => findings.map((finding) => ({ name, finding })));
  const groups = groupBy(all, ({ finding }) => {
    const { severity, file, line, path, problem } = finding;
    return JSON.stringify([severity, file, line, path, problem]);
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const sites = [...new Set(group.map(({ name }) => name))];
    return first ? [{ finding: first.finding, sites }] : [];
  });
}

function formatCause({ finding, sites }: Cause): string {
  const text = formatProblem(finding);
  if (sites.length < 2) return text;
  return `${text}\n  in ${sites.length} sites: ${formatNames(sites.map(toPrintable), SHOWN_SITES)}`;
}

/** Formats warnings that are alike as one: ten thousand sites may all have the same. */
function groupAlike(warnings: readonly Cause[]): readonly string[] {
  const groups = groupBy(warnings, ({ finding }) => `${finding.path ?? ''}\n${finding.problem}`);
  return [...groups.values()].flatMap((group) => {
    const [first, ...rest] = group;
    if (!first || group.length < MANY) return group.map(formatCause);
    return [`${formatCause(first)}\n  and ${rest.length} more times`];
  });
}

const cut = (texts: readonly string[], most: number, what: string): readonly string[] =>
  texts.length <= most
    ? texts
    : [...texts.slice(0, most), `and ${texts.length - most} more ${what}; -o json lists all`];
