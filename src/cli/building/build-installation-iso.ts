import type { Command } from 'commander';
import { formatSize } from '../../base/text/words.ts';
import { INSTALLATION_CONFIG_NAME } from '../../sites/installation.ts';
import { toPrintable } from '../../base/text/words.ts';
import { buildInstallationIso } from '../../stages/installation-iso.ts';
import type { InstallationIsoReport } from '../../stages/report/installation-iso.ts';
import type { CliHost } from '../host.ts';
import { createConcurrencyOption, addReuseOptions, createRetryOption } from '../common-options.ts';
import {
  addInstallationOptions,
  runInstallation,
  type InstallationCommandOptions,
} from './recipe-command.ts';
import { INSTALLATION_OUTPUT } from './requests/installation-request.ts';
import { createVerifyOption, verifyBuilt, type Verified } from '../medium/verify.ts';
import {
  formatSignatures,
  formatBytes,
  formatFiles,
  formatChecksum,
  formatOutput,
  formatVerified,
  warnOfTls,
} from './report-lines.ts';
import { addSignatureOptions } from './requests/build-options.ts';
import { addLockOptions } from './requests/lock-options.ts';
import {
  createForceOption,
  createOutputOption,
  writeFormatted,
  formatShellPath,
} from '../terminal/output.ts';
import { createLogFormatOption } from '../terminal/progress.ts';

/** `sealift build installation-iso [CONFIG]`. */
export function registerInstallationIso(build: Command, host: CliHost): void {
  addLockOptions(addInstallationIsoOptions(build.command('installation-iso')))
    .description('the ISO that installs a seed image on a disk, the same for any number of sites')
    .addOption(createVerifyOption())
    .addOption(createForceOption())
    .option(
      '--plan <file>',
      'take exactly the images of this report of an earlier build, even if tags have moved',
    )
    .addHelpText(
      'after',
      '\nOPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE names a live ISO where no option does.\n' +
        'A script post.sh beside the configuration is carried along. The ISO holds the pull secret.\n' +
        'With --embed-seed and --embed-precached it installs where no registry can be reached.\n' +
        '\nExamples:\n  $ sealift build installation-iso --base-iso rhcos-live.x86_64.iso\n' +
        '  $ openshift-install coreos print-stream-json > stream.json\n' +
        '  $ sealift build installation-iso --coreos-stream stream.json\n' +
        '  $ sealift build installation-iso --release quay.io/ocp/release@sha256:... --embed-seed --embed-precached',
    )
    .action(async (config: string, options: InstallationCommandOptions) => {
      const report = await runInstallation(
        { config: [config], options, host, isBuild: true },
        buildInstallationIso,
      );
      const told = { ...report, ...(await verifyBuilt(report.output, options, host)) };
      await writeFormatted({ host, ...options }, told, () => formatReport(told, host));
    });
}

/** What all commands that have a name for the product have in common. */
export const addInstallationIsoOptions = (command: Command): Command =>
  addInstallationOptions(
    addReuseOptions(addSignatureOptions(command))
      .argument('[config]', 'configuration file', INSTALLATION_CONFIG_NAME)
      .option(
        '--output <file>',
        'a file, a block device, s3://BUCKET/KEY, or oci://REGISTRY/REPOSITORY:TAG',
        INSTALLATION_OUTPUT,
      )
      .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
      .option(
        '--base-iso <file|url>',
        'CoreOS live ISO: a file, or https://...?sha256=HEX; may be .gz or .xz',
      )
      .addOption(createConcurrencyOption())
      .addOption(createRetryOption()),
  )
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

/** Values of the configuration may hold anything, but give the terminal no orders. */
function formatReport(report: InstallationIsoReport & Verified, host: CliHost): string {
  const { base, bytes, embedded } = report;
  const output = formatOutput(report.output, host);
  return [
    '',
    `${output} is ${report.isUpToDate ? 'up to date' : 'complete'}: ${formatSize(report.isoSize)}, ${report.architecture}`,
    '',
    formatChecksum(report),
    `  base      ${base.from}`,
    `  seed      ${toPrintable(report.seedImage)}, version ${toPrintable(report.seedVersion)}`,
    `  disk      ${toPrintable(report.installationDisk)}`,
    `  config    ${formatRoom(report.embedArea)}`,
    ...(embedded
      ? [
          `  carries   ${embedded.images.length} images, ${embedded.blobs} blobs, ` +
            `${formatSize(embedded.payloadSize)}; served on the ISO by ${embedded.registryImage}`,
        ]
      : []),
    formatBytes(bytes),
    ...formatVerified(report),
    `  secrets   ${report.secretsOnMedia.join(', ')}`,
    ...report.registriesConf.map((file) => `  mirrors   from ${file}`),
    ...formatSignatures(report.signatures, '  release   '),
    ...warnOfTls(report.unverifiedTls, '  warning   '),
    ...report.notes.map((note) => `  note      ${toPrintable(note)}`),
    ...(report.manifest === undefined
      ? formatFiles(report, output)
      : [`  digest    ${report.manifest}`]),
    '',
    // Only a medium that carries images has an index to verify it by.
    `next: sealift ${embedded ? 'verify' : 'ignition show'} ${formatShellPath(output)}`,
    '',
  ].join('\n');
}

export const formatRoom = ({ used, size, grownTo }: InstallationIsoReport['embedArea']): string =>
  grownTo === undefined
    ? `${formatSize(used)} of the ${formatSize(size)} that the base has for it`
    : `${formatSize(used)}, more than the ${formatSize(size)} that the base has for it: ` +
      `the ISO has ${formatSize(grownTo)} instead`;
