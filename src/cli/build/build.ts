import type { Command } from 'commander';
import { relative } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { formatSize } from '../../base/format-size.ts';
import { buildLiveIso } from '../../recipes/live-iso/live-iso.ts';
import type { LiveIsoReport } from '../../recipes/live-iso/live-iso-summary.ts';
import { registerInstallationIso } from './build-installation-iso.ts';
import type { CliHost } from '../host.ts';
import { addLiveOptions, runLive, type LiveCommandOptions } from './live-command.ts';
import { writeFormatted } from '../terminal/output.ts';

const PRODUCTS = ['live-iso'];

/** `sealift build [live-iso] [CONFIG]`, and the other products as commands below it. */
export function registerBuild(program: Command, host: CliHost): void {
  // Options behind the name of another product belong to that product, and both levels must know it.
  const build = addLiveOptions(program.enablePositionalOptions().command('build'))
    .enablePositionalOptions()
    .helpCommand(false)
    .description('build a medium; run again after an interruption, it continues')
    .usage('[options] [product] [config]')
    .argument('[args...]', 'product (live-iso) and configuration file (appliance-config.yaml)')
    .addHelpText(
      'after',
      '\nProducts: live-iso (default), and those listed as commands.\n' +
        '\nExample:\n  $ sealift build live-iso appliance-config.yaml --output ove.iso',
    )
    .action(async (args: readonly string[], options: LiveCommandOptions) => {
      const report = await runLive({ config: configOf(args), options, host }, buildLiveIso);
      await writeFormatted(host, options.outputFormat, {
        value: report,
        formatText: () => formatReport(report, host),
      });
    });
  registerInstallationIso(build, host);
}

/** The product may be left out. */
function configOf(args: readonly string[]): string {
  const [first, ...rest] = args;
  const names = first !== undefined && PRODUCTS.includes(first) ? rest : args;
  if (names.length > 1) {
    throw new UsageError('usage.product', `"${names[0] ?? ''}" is no product`, {
      expected: PRODUCTS.join(', '),
      found: names[0] ?? '',
    });
  }
  return names[0] ?? 'appliance-config.yaml';
}

function formatReport(report: LiveIsoReport, host: CliHost): string {
  const { bytes, release } = report;
  const output = relative(host.cwd, report.output) || report.output;
  const seconds = report.stages.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000;
  const retries = report.hosts.reduce((sum, host) => sum + host.retries, 0);
  return [
    '',
    `${output} is complete: ${formatSize(report.isoSize)}, OpenShift ${release.version} ${release.architecture}`,
    '',
    `  sha256    ${report.digest.slice('sha256:'.length)}`,
    `  payload   ${report.images} images, ${report.blobs} blobs, ${formatSize(report.payloadSize)}; ` +
      `sharing saved ${formatSize(report.dedupeSaved)}`,
    `  bytes     ${formatSize(bytes.fetched)} fetched, ${formatSize(bytes.copied)} copied, ` +
      `${formatSize(bytes.kept)} kept from before, ${formatSize(bytes.written)} written`,
    `  work      ${seconds.toFixed(1)} s in stages, ${retries} retries`,
    `  ignition  ${report.ignition === 'installer' ? "the release's own installer" : 'embedded templates: no assisted installer'}`,
    `  secrets   ${report.secretsOnMedia.join(', ') || 'none on the media'}`,
    ...report.unverifiedTls.map((host) => `  warning   TLS of ${host} was not verified`),
    `  report    ${output}.report.json, ${output}.sha256`,
    '',
    `next: sealift verify ${output}`,
    '',
  ].join('\n');
}
