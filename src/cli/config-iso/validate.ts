import type { Command } from 'commander';
import { resolve } from 'node:path';
import { DifferenceError, ToolError } from '../../base/errors.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../media/config-image.ts';
import { validateSites, type SitesVerdict } from '../../stages/config-isos.ts';
import type { CliHost } from '../host.ts';
import { createStrictOption, harden } from '../options.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { listCluster } from '../medium/held-image-rows.ts';
import { finishSites, runSites } from './run.ts';
import { addSitesOptions, readSitesRequest, type SitesOptions } from './request.ts';
import {
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
      const { isUnseen, ...found } = await runSites(host, options, async (tools) =>
        validateSites(await readSitesRequest(sites, options, host), tools),
      );
      const verdict = options.strict ? hardenVerdict(found) : found;
      const failure = { good: verdict.good, what: 'have problems', hint: 'fix the problems above' };
      const describe = ({ good, failed }: Verdict): Report => ({
        title: say`Check of ${sites}`,
        body: [
          lineOf([
            `${countSites(good)} valid${failed.length === 0 ? '' : `, ${failed.length} not`}`,
          ]),
        ],
      });
      await finishSites(verdict, describe, { host, options, failure });
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

const countSites = (count: number): string => (count === 1 ? '1 site is' : `${count} sites are`);

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
