import type { Command } from 'commander';
import { resolve } from 'node:path';
import {
  ConfigError,
  isError,
  formatNames,
  formatProblem,
  type FileProblem,
  DifferenceError,
  ToolError,
} from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { toPrintable } from '../../base/text/words.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../media/config-image.ts';
import { findNetworkTool } from '../../nmstate/index.ts';
import { validateSites, type SitesVerdict } from '../../stages/config-isos.ts';
import type { CliHost } from '../host.ts';
import { createStrictOption, harden } from '../options.ts';
import {
  showEvent,
  showMessage,
  createOutputOption,
  type OutputFormat,
} from '../terminal/output.ts';
import { createProgress, type LogFormat } from '../terminal/progress.ts';
import { listCluster } from '../medium/held-image-rows.ts';
import { addSitesOptions, readSitesRequest, type SitesOptions } from './request.ts';
import {
  type Phrase,
  type Report,
  lineOf,
  listRows,
  say,
  writeReport,
  quoteProblems,
  rowsOf,
} from '../terminal/report.ts';

/* This file owns `config-iso validate` and `config-iso check`, and the printing of findings. */

/** Registers `sealift config-iso validate SITES`: writes no file; exit code 3 when there are problems. */
export function registerConfigIsoValidate(parent: Command, host: CliHost): void {
  addSitesOptions(parent.command('validate'))
    .description('check each site, and the sites against each other, without making anything')
    .addOption(createStrictOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso validate sites.zip')
    .action(async (sites: string, options: SitesOptions & { readonly strict: boolean }) => {
      const { isUnseen, ...found } = await run(sites, options, host);
      const verdict = options.strict ? hardenVerdict(found) : found;
      const { findings } = verdict;
      writeFindings(host, options.logFormat, [{ name: '', findings }, ...verdict.sites]);
      await writeReport({ host, ...options }, verdict, ({ good, failed }) => ({
        title: say`Check of ${sites}`,
        body: [
          lineOf([
            `${countSites(good)} valid${failed.length === 0 ? '' : `, ${failed.length} not`}`,
          ]),
        ],
      }));
      const hint = 'fix the problems above';
      refuseFailed(verdict, { of: verdict.good, what: 'have problems', hint });
      if (options.strict && isUnseen) throw refuseUnseen();
    });
}

const refuseUnseen = (): ToolError =>
  new ToolError(
    'tool.missing',
    'nmstatectl is not installed: nmstate checked no network configuration',
    {
      expected: 'every check that nodes make, as --strict asks',
      found: 'no nmstatectl in PATH',
      hint: 'install nmstate, or leave --strict out',
    },
  );

type Verdict = Omit<SitesVerdict, 'isUnseen'>;

function hardenVerdict({ good, failed, sites, findings }: Verdict): Verdict {
  const bad = new Set([...failed, ...sites.map(({ name }) => name)]);
  return {
    good: good + failed.length - bad.size,
    failed: [...bad],
    sites: sites.map(({ name, findings }) => ({ name, findings: findings.map(harden) })),
    findings: findings.map(harden),
  };
}

async function run(sites: string, options: SitesOptions, host: CliHost): Promise<SitesVerdict> {
  const nmstate = await findNetworkTool(host);
  const progress = createProgress(host, options.logFormat);
  const { signal, now } = host;
  try {
    const request = await readSitesRequest(sites, options, host);
    return await validateSites(request, { signal, now, emit: progress.listener, nmstate });
  } finally {
    progress.close();
  }
}

/** `failure`: number of good sites, what happened to the others, and what to do. */
export function refuseFailed(
  { failed, findings }: Pick<SitesVerdict, 'findings'> & { readonly failed: readonly unknown[] },
  failure: { readonly of: number; readonly what: string; readonly hint: string },
): void {
  if (failed.length === 0 && !findings.some(isError)) return;
  const message =
    failed.length === 0
      ? 'some of the inputs belong to no site and are refused'
      : `${failed.length} of ${failure.of + failed.length} sites ${failure.what}`;
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

const countSites = (count: number): string => (count === 1 ? '1 site is' : `${count} sites are`);

type SiteFindings = { readonly name: string; readonly findings: readonly FileProblem[] };

/** Most errors shown, more than a person fixes at once. */
const SHOWN_ERRORS = 500;
const SHOWN_WARNINGS = 20;
/** Least number of warnings in different places that are alike, and are printed as one. */
const MANY = 4;
/** Most sites that are named for one finding. */
const SHOWN_SITES = 5;

/** Writes the findings to stderr, errors last; in JSON, one per line and all of them. */
export function writeFindings(
  host: CliHost,
  format: LogFormat,
  found: readonly SiteFindings[],
): void {
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

type CheckOptions = { readonly medium: string; readonly outputFormat: OutputFormat };

/** Registers `sealift config-iso check IMAGE --medium ISO`: exit code 8 when the medium does not take it. */
export function registerConfigIsoCheck(parent: Command, host: CliHost): void {
  parent
    .command('check')
    .description('check whether a live ISO accepts a configuration image of openshift-install')
    .argument('<image>', 'agentconfig.noarch.iso')
    .requiredOption('--medium <iso>', 'live ISO that the hosts boot')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nApplies the rules of the live system on the medium: label, release, required files. Lists the\n' +
        'nodes, the rendezvous IP and the dates of the certificates. Prints no secret.\n' +
        '\nExit code 8: the medium does not accept the image.\n' +
        '\nExample:\n  $ sealift config-iso check site/agentconfig.noarch.iso --medium appliance.iso',
    )
    .action(async (image: string, { medium, outputFormat }: CheckOptions) => {
      const named = (shownAs: string) => ({ path: resolve(host.cwd, shownAs), shownAs });
      const value = await checkConfigImage(named(image), named(medium));
      await writeReport({ host, outputFormat }, value, (value) =>
        describeCheck(value, { image, medium }),
      );
      if (value.fits) return;
      throw new DifferenceError('config-image.refused', `${medium} does not accept ${image}`, {
        expected: 'no obstacles',
        found: value.obstacles.map(({ code }) => code).join(', '),
        hint: 'remove the obstacles listed above and check again',
      });
    });
}

type Names = { readonly image: string; readonly medium: string };

export const describeCheck = (check: ConfigImageCheck, { image, medium }: Names): Report => ({
  title: say`Check of ${image}`,
  body: [
    ...quoteProblems(check.obstacles),
    ...check.cautions.map((caution) => lineOf(say`warning: ${caution}`)),
    ...listRows({ width: 15 }, [
      ...rowsOf('release', check.releaseImage === undefined ? [] : [say`${check.releaseImage}`]),
      ...(check.cluster ? listCluster(check.cluster) : []),
    ]),
    ...(check.fits ? [lineOf(say`${medium} accepts ${image}`)] : []),
  ],
});
