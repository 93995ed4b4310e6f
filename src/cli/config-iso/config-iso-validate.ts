import type { Command } from 'commander';
import { ConfigError } from '../../base/errors.ts';
import { findNmstate } from '../../recipes/config-iso/ask-nmstate.ts';
import { isError } from '../../sites/site-finding.ts';
import { validateSites, type SitesVerdict } from '../../recipes/config-iso/validate-sites.ts';
import { writeFindings } from './config-iso-findings.ts';
import { addSitesOptions, readSitesRequest, type SitesOptions } from './config-iso-request.ts';
import type { CliHost } from '../host.ts';
import { writeFormatted } from '../terminal/output.ts';
import { createProgress } from '../terminal/progress.ts';

/** `sealift config-iso validate SITES`: writes nothing; exit code 3 when there are problems. */
export function registerConfigIsoValidate(parent: Command, host: CliHost): void {
  addSitesOptions(parent.command('validate'))
    .description('check sites, each for itself and against each other, and make nothing')
    .addHelpText('after', '\nExample:\n  $ sealift config-iso validate sites.zip')
    .action(async (sites: string, options: SitesOptions) => {
      const verdict = await run(sites, options, host);
      const { findings } = verdict;
      writeFindings(host, options.logFormat, [{ name: '', findings }, ...verdict.sites]);
      await writeFormatted(host, options.outputFormat, {
        value: verdict,
        formatText: formatVerdict,
      });
      refuseFailed(verdict);
    });
}

async function run(sites: string, options: SitesOptions, host: CliHost): Promise<SitesVerdict> {
  const nmstate = await findNmstate(host);
  const progress = createProgress(host, options.logFormat);
  const { signal, now } = host;
  try {
    const request = readSitesRequest(sites, options, host);
    return await validateSites(request, { signal, now, emit: progress.listener, nmstate });
  } finally {
    progress.close();
  }
}

/** @throws ConfigError `config-iso.sites` */
function refuseFailed({ good, failed, findings }: SitesVerdict): void {
  if (failed.length === 0 && !findings.some(isError)) return;
  const message =
    failed.length === 0
      ? 'some of the inputs belong to no site and are refused'
      : `${failed.length} of ${good + failed.length} sites have problems`;
  throw new ConfigError('config-iso.sites', message, {
    hint: 'fix the problems above',
  });
}

const formatVerdict = ({ good, failed }: SitesVerdict): string =>
  failed.length === 0
    ? `${countSites(good)} valid\n`
    : `${countSites(good)} valid, ${failed.length} not\n`;

const countSites = (count: number): string => (count === 1 ? '1 site is' : `${count} sites are`);
