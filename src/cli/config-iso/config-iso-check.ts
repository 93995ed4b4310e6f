import { resolve } from 'node:path';
import type { Command } from 'commander';
import { DifferenceError } from '../../base/errors.ts';
import { formatProblem } from '../../base/errors.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../media/config-image.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';

type CheckOptions = { readonly medium: string; readonly outputFormat: OutputFormat };

/** `sealift config-iso check IMAGE --medium ISO`: exit code 8 when the medium does not take it. */
export function registerConfigIsoCheck(parent: Command, host: CliHost): void {
  parent
    .command('check')
    .description('check whether a live ISO takes a configuration image of openshift-install')
    .argument('<image>', 'agentconfig.noarch.iso')
    .requiredOption('--medium <iso>', 'live ISO that the hosts boot')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nApplies the rules of the live system on the medium: label, release, required files. Lists the\n' +
        'nodes, the rendezvous IP and the dates of the certificates. Prints no secret.\n' +
        '\nExit code 8: the medium does not take the image.\n' +
        '\nExample:\n  $ sealift config-iso check site/agentconfig.noarch.iso --medium appliance.iso',
    )
    .action(async (image: string, { medium, outputFormat }: CheckOptions) => {
      const named = (shownAs: string) => ({ path: resolve(host.cwd, shownAs), shownAs });
      const value = await checkConfigImage(named(image), named(medium));
      await writeFormatted({ host, outputFormat }, value, (value) =>
        formatCheck(value, { image, medium }),
      );
      if (value.fits) return;
      throw new DifferenceError('config-image.refused', `${medium} does not take ${image}`, {
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
    ...(check.fits ? [`${medium} takes ${image}`] : []),
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
