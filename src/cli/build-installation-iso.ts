import type { Command, Option } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../base/errors.ts';
import { formatCommand } from '../base/text/shell.ts';
import { formatSize, toPrintable } from '../base/text/words.ts';
import { readConfigText, type ConfigNames } from '../config/load.ts';
import { INSTALLATION_CONFIG_NAME, isInstallationConfig } from '../sites/installation.ts';
import { buildInstallationIso } from '../stages/installation-iso.ts';
import type { InstallationIsoReport } from '../stages/report/installation-iso.ts';
import type { CliHost } from './host.ts';
import {
  createRehearseOption,
  formatRehearsed,
  rehearseBuilt,
  type Rehearsed,
  requireRehearsed,
} from './medium/rehearse-built.ts';
import { createVerifyOption, verifyBuilt, type Verified } from './medium/verify.ts';
import { createConcurrencyOption, addReuseOptions, createRetryOption } from './options.ts';
import { addLockOptions } from './lock-options.ts';
import {
  formatSignatures,
  formatBytes,
  formatFiles,
  formatChecksum,
  formatOutput,
  formatVerified,
  warnOfTls,
} from './report-lines.ts';
import { INSTALLATION_OUTPUT } from './request-installation.ts';
import { addSignatureOptions } from './request-signatures.ts';
import {
  addInstallationOptions,
  runInstallation,
  type InstallationCommandOptions,
  refuseOverlays,
} from './run.ts';
import { createSecretsOption } from './secrets-elsewhere.ts';
import { createForceOption, createOutputOption, writeFormatted } from './terminal/output.ts';
import { createLogFormatOption } from './terminal/progress.ts';

/*
 * This file owns `build installation-iso`, and the options of other products on the commands of
 * live ISOs.
 */

/** Registers `sealift build installation-iso [CONFIG]`. */
export function registerInstallationIso(build: Command, host: CliHost): void {
  addLockOptions(addInstallationIsoOptions(build.command('installation-iso')))
    .description('the ISO that installs a seed image on a disk, the same for any number of sites')
    .addOption(createVerifyOption())
    .addOption(createSecretsOption())
    .addOption(createRehearseOption())
    .addOption(createForceOption())
    .option(
      '--plan <file>',
      'take exactly the images of this report of an earlier build, even if tags have moved',
    )
    .addHelpText(
      'after',
      '\nOPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE names the live ISO if no option does.\n' +
        'A script post.sh next to the configuration goes on the ISO. The ISO has the pull secret.\n' +
        'With --embed-seed and --embed-precached, it installs without access to a registry.\n' +
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
      const verified = await verifyBuilt(report.output, options, host);
      const told = {
        ...report,
        ...verified,
        ...(await rehearseBuilt(report.output, options, host)),
      };
      await writeFormatted({ host, ...options }, told, () => formatReport(told, host));
      requireRehearsed(report.output, told, options);
    });
}

/** Adds argument and options of every command that has `installation-iso` in its name. */
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

/**
 * Formats the report. Values of the configuration may hold anything, but must not control the
 * terminal.
 */
function formatReport(report: InstallationIsoReport & Verified & Rehearsed, host: CliHost): string {
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
    ...formatRehearsed(report),
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
    `next: ${formatCommand(...(embedded ? ['verify'] : ['ignition', 'show']), { path: output })}`,
    '',
  ].join('\n');
}

export const formatRoom = ({ used, size, grownTo }: InstallationIsoReport['embedArea']): string =>
  grownTo === undefined
    ? `${formatSize(used)} of the ${formatSize(size)} that the base ISO reserves for it`
    : `${formatSize(used)}, more than the ${formatSize(size)} that the base ISO reserves for it: ` +
      `this ISO reserves ${formatSize(grownTo)}`;

/** Owners of a configuration, as messages name them. */
const MAKERS = {
  'live-iso': 'an appliance',
  'upgrade-iso': 'an upgrade ISO',
  'installation-iso': 'an installation ISO',
} as const;

type Product = keyof typeof MAKERS;

/** Options of live ISOs that the other products do not have. */
const OF_LIVE_ISOS: Readonly<Record<string, readonly Product[]>> = {
  '--ignition': ['live-iso'],
  '--ignition-area': ['live-iso'],
  '--base-iso': ['live-iso', 'installation-iso'],
  '--set': ['live-iso', 'upgrade-iso'],
};

/**
 * Adds the options of other products to those of live ISOs, for commands that learn from their
 * arguments which product is meant. The returned function refuses the options of the other
 * products once the product is known.
 *
 * @param addUpgrade adds the options that only upgrade ISOs have; absent: the command does not
 * take them
 */
export function addOtherProducts(
  command: Command,
  addUpgrade?: (command: Command) => Command,
): (product: Product) => void {
  const owners = new Map<Option, readonly Product[]>(
    command.options.flatMap((option) => {
      const products = OF_LIVE_ISOS[option.long ?? ''];
      return products ? [[option, products] as const] : [];
    }),
  );
  const addGroup = (product: Product, add: (command: Command) => Command): void => {
    const before = new Set(command.options);
    add(command.optionsGroup(`Options for ${product.replace('-iso', '')} ISOs:`));
    for (const option of command.options) if (!before.has(option)) owners.set(option, [product]);
  };
  addGroup('installation-iso', addInstallationOptions);
  if (addUpgrade) addGroup('upgrade-iso', addUpgrade);
  return (product) => {
    for (const [option, products] of owners) {
      const isGiven = command.getOptionValue(option.attributeName()) !== undefined;
      if (isGiven && !products.includes(product)) throw otherProduct(option, products, product);
    }
  };
}

function otherProduct(option: Option, [owner]: readonly Product[], product: Product): UsageError {
  const [expected, found] = [MAKERS[owner ?? 'live-iso'], MAKERS[product]];
  const name = option.long ?? option.flags;
  return new UsageError('usage.other-product', `${name} is for the configuration of ${expected}`, {
    expected: `the configuration of ${expected}`,
    found: `that of ${found}`,
    hint: `leave ${name} out`,
  });
}

/**
 * True if the configuration is for an installation ISO; such a configuration has no overlays.
 *
 * @throws UsageError `usage.overlays`
 */
export function isInstallationNamed(config: ConfigNames, { cwd }: Pick<CliHost, 'cwd'>): boolean {
  const path = resolve(cwd, config[0]);
  const isInstallation = isInstallationConfig(path, readConfigText(path));
  if (isInstallation) refuseOverlays(config);
  return isInstallation;
}
