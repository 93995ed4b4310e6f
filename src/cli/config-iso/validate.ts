import type { Command } from 'commander';
import { resolve } from 'node:path';
import {
  ConfigError,
  isError,
  formatProblem,
  type FileProblem,
  DifferenceError,
} from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../media/config-image.ts';
import { findNetworkTool } from '../../nmstate/index.ts';
import { validateSites, type SitesVerdict } from '../../stages/config-isos.ts';
import type { CliHost } from '../host.ts';
import {
  showEvent,
  showMessage,
  writeFormatted,
  createOutputOption,
  type OutputFormat,
} from '../terminal/output.ts';
import { createProgress, type LogFormat } from '../terminal/progress.ts';
import { addSitesOptions, readSitesRequest, type SitesOptions } from './request.ts';

/* This file owns `config-iso validate` and `config-iso check`, and the printing of findings. */

/**
 * Registers `sealift config-iso validate SITES`: writes no file; exit code 3 when there are
 * problems.
 */
export function registerConfigIsoValidate(parent: Command, host: CliHost): void {
  addSitesOptions(parent.command('validate'))
    .description('check each site, and the sites against each other, without making anything')
    .addHelpText('after', '\nExample:\n  $ sealift config-iso validate sites.zip')
    .action(async (sites: string, options: SitesOptions) => {
      const verdict = await run(sites, options, host);
      const { findings } = verdict;
      writeFindings(host, options.logFormat, [{ name: '', findings }, ...verdict.sites]);
      await writeFormatted({ host, ...options }, verdict, formatVerdict);
      const hint = 'fix the problems above';
      refuseFailed(verdict, { of: verdict.good, what: 'have problems', hint });
    });
}

async function run(sites: string, options: SitesOptions, host: CliHost): Promise<SitesVerdict> {
  const nmstate = await findNetworkTool(host);
  const progress = createProgress(host, options.logFormat);
  const { signal, now } = host;
  try {
    const request = readSitesRequest(sites, options, host);
    return await validateSites(request, { signal, now, emit: progress.listener, nmstate });
  } finally {
    progress.close();
  }
}

/**
 * Ends a command whose sites have problems.
 *
 * @param failure number of good sites, what happened to the others, and what to do
 * @throws ConfigError `config-iso.sites`
 */
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

const formatVerdict = ({ good, failed }: SitesVerdict): string =>
  failed.length === 0
    ? `${countSites(good)} valid\n`
    : `${countSites(good)} valid, ${failed.length} not\n`;

const countSites = (count: number): string => (count === 1 ? '1 site is' : `${count} sites are`);

type SiteFindings = { readonly name: string; readonly findings: readonly FileProblem[] };

/** Most errors shown, more than a person fixes at once. */
const SHOWN_ERRORS = 500;
const SHOWN_WARNINGS = 20;
/** Least number of equal warnings that are printed as one. */
const MANY = 4;

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
  const all = found.flatMap(({ findings }) => findings);
  const errors = all.filter(isError);
  const warnings = groupAlike(all.filter((finding) => !isError(finding)));
  return [
    ...cut(warnings, SHOWN_WARNINGS, 'warnings'),
    ...cut(errors.map(formatProblem), SHOWN_ERRORS, 'errors'),
  ];
}

/** Formats equal warnings as one: ten thousand sites of one template may all have the same. */
function groupAlike(warnings: readonly FileProblem[]): readonly string[] {
  const groups = groupBy(warnings, ({ path, problem }) => `${path ?? ''}\n${problem}`);
  return [...groups.values()].flatMap((group) => {
    const [first, ...rest] = group;
    if (!first || group.length < MANY) return group.map(formatProblem);
    return [`${formatProblem(first)}\n  and ${rest.length} more times`];
  });
}

const cut = (texts: readonly string[], most: number, what: string): readonly string[] =>
  texts.length <= most
    ? texts
    : [...texts.slice(0, most), `and ${texts.length - most} more ${what}; -o json lists all`];

type CheckOptions = { readonly medium: string; readonly outputFormat: OutputFormat };

/**
 * Registers `sealift config-iso check IMAGE --medium ISO`: exit code 8 when the medium does not
 * take it.
 */
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
      await writeFormatted({ host, outputFormat }, value, (value) =>
        formatCheck(value, { image, medium }),
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

function formatCheck(check: ConfigImageCheck, { image, medium }: Names): string {
  const { cluster } = check;
  return [
    ...check.obstacles.map(formatProblem),
    ...check.cautions.map((caution) => `warning: ${caution}`),
    ...(check.releaseImage === undefined ? [] : [`release        ${check.releaseImage}`]),
    ...(cluster ? formatCluster(cluster) : []),
    ...(check.fits ? [`${medium} accepts ${image}`] : []),
    '',
  ].join('\n');
}

function formatCluster(cluster: NonNullable<ConfigImageCheck['cluster']>): readonly string[] {
  const { nodes, hosts, rendezvousIp, certificates } = cluster;
  const counts = nodes
    ? `${nodes.masters} masters, ${nodes.arbiters} arbiters, ${nodes.workers} workers`
    : 'not set';
  return [
    `nodes          ${counts}; ${hosts} hosts configured by MAC address`,
    `rendezvous IP  ${rendezvousIp ?? 'not set'}`,
    ...certificates.map(
      ({ path, notBefore, notAfter }) => `certificate    ${path}: ${notBefore} to ${notAfter}`,
    ),
  ];
}
