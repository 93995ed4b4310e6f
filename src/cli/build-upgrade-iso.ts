import { type Command, Option } from 'commander';
import { basename, relative } from 'node:path';
import { formatCommand, formatProgram } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import {
  summarizeUpgradePlan,
  type UpgradeIsoPlan,
  type UpgradeIsoReport,
} from '../stages/report/upgrade-iso.ts';
import type { UpgradeIsoRequest } from '../stages/request.ts';
import type { BuildTools } from '../stages/tools.ts';
import { buildUpgradeIso, prepareUpgradeIso } from '../stages/upgrade-iso.ts';
import { formatGates } from './gate-lines.ts';
import type { CliHost } from './host.ts';
import {
  createRehearseOption,
  formatRehearsed,
  rehearseBuilt,
  type Rehearsed,
  requireRehearsed,
} from './medium/rehearse-built.ts';
import { createVerifyOption, verifyBuilt, type Verified } from './medium/verify.ts';
import {
  createConcurrencyOption,
  addReuseOptions,
  createConfigArgument,
  createRetryOption,
  createSetOption,
  refuseOption,
} from './options.ts';
import { addLockOptions } from './lock-options.ts';
import {
  formatImagePolicy,
  formatSignatures,
  formatBytes,
  formatChecksum,
  formatFiles,
  formatOutput,
  formatVerified,
  warnOfTls,
} from './report-lines.ts';
import { addSignatureOptions } from './request-signatures.ts';
import {
  readUpgradeRequest,
  UPGRADE_OUTPUT,
  type UpgradeRequestOptions,
} from './request-upgrade.ts';
import { runRecipe, type RecipeCall, type RecipeOptions } from './run.ts';
import {
  createForceOption,
  writeFormatted,
  createOutputOption,
  formatPath,
} from './terminal/output.ts';
import { createLogFormatOption } from './terminal/progress.ts';

/*
 * This file owns the commands for upgrade ISOs, `build upgrade-iso` and `plan upgrade-iso`, and
 * their options.
 */

/** Registers `sealift build upgrade-iso [CONFIG]`. */
export function registerUpgradeIso(build: Command, host: CliHost): void {
  addLockOptions(addUpgradeOptions(build.command('upgrade-iso')))
    .description('the ISO that upgrades an installed cluster without network')
    .option(
      '--plan <file>',
      'take exactly the images of this plan (sealift plan upgrade-iso -o json), even if tags have moved',
    )
    .addOption(createVerifyOption())
    .addOption(createRehearseOption())
    .addOption(createForceOption())
    .addHelpText(
      'after',
      '\nCarries the release, operators and additional images of the configuration. Next to the ISO, it\n' +
        'writes upgrade-VERSION.yaml: signatures, mirrors and catalog sources, for "oc apply". For a block\n' +
        'device (with --force) or an object, that file goes to the working directory. At the end, it prints\n' +
        'the commands to run. For clusters that were installed without the interactive flow.\n' +
        '\nExamples:\n  $ sealift build upgrade-iso appliance-config.yaml --output upgrade.iso\n' +
        '  $ sealift build upgrade-iso --from 4.20.6',
    )
    .action(async (config: ConfigNames, options: UpgradeCommandOptions) => {
      const report = await runUpgrade({ config, options, host, isBuild: true }, buildUpgradeIso);
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

/** Registers `sealift plan upgrade-iso [CONFIG]`. */
export function registerUpgradePlan(plan: Command, host: CliHost): void {
  addUpgradeOptions(plan.command('upgrade-iso'))
    .description('the same for an upgrade ISO')
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift plan upgrade-iso --from 4.20.6 -o json | jq .path',
    )
    .action(async (config: ConfigNames, options: UpgradeCommandOptions) => {
      const value = await runUpgrade({ config, options, host }, async (...given) =>
        summarizeUpgradePlan(await prepareUpgradeIso(...given)),
      );
      await writeFormatted({ host, ...options }, value, (plan) => formatPlan(plan, host));
    });
}

export type UpgradeCommandOptions = UpgradeRequestOptions & RecipeOptions;

/** Adds argument and options of every command that has `upgrade-iso` in its name. */
export const addUpgradeOptions = (command: Command): Command =>
  addFromOption(addReuseOptions(addSignatureOptions(command)))
    .addArgument(createConfigArgument())
    .addOption(createSetOption())
    .option('--output <file>', 'a file, a block device, or s3://BUCKET/KEY', UPGRADE_OUTPUT)
    .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
    .option(
      '--machine-config',
      'also write a MachineConfig that upgrades the cluster and removes itself',
    )
    .addOption(createAcknowledgeOption())
    .option(
      '--prepare-hosts',
      'also write MachineConfigs for hosts that were installed without support for upgrade ISOs',
    )
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

/** Creates `--acknowledge`, with the characters of keys and of risks' names. */
const createAcknowledgeOption = (): Option =>
  new Option(
    '--acknowledge <key>',
    'with --machine-config: a key of admin-gates or a risk that you accept for the cluster; may be repeated, or a comma list',
  ).argParser((text, earlier: readonly string[] | undefined) => {
    const keys = text.split(',').map((key) => key.trim());
    const wrong = keys.find((key) => !/^[A-Za-z0-9][-._A-Za-z0-9]*$/.test(key));
    if (wrong === undefined) return [...new Set([...(earlier ?? []), ...keys])];
    throw refuseOption('usage.acknowledge', text, {
      expected: 'keys such as ack-4.20-sigstore-in-4.21, with commas between them',
    });
  });

export const addFromOption = (command: Command): Command =>
  command.option(
    '--from <version>',
    'version of the cluster: also carry the releases on its way through the update graph',
  );

/** Runs a recipe of an upgrade ISO. */
export async function runUpgrade<Result>(
  call: RecipeCall<UpgradeCommandOptions>,
  work: (request: UpgradeIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = readUpgradeRequest(call.config, call.options, call.host);
  return runRecipe(call, { request, config: request.config }, work);
}

function formatReport(report: UpgradeIsoReport & Verified & Rehearsed, host: CliHost): string {
  const { bytes, release } = report;
  const shown = (path: string): string => formatPath(path, host);
  const output = formatOutput(report.output, host);
  return [
    '',
    `${output} is ${report.isUpToDate ? 'up to date' : 'complete'}: ${formatSize(report.isoSize)}, OpenShift ${release.version} ${release.architecture}`,
    '',
    formatChecksum(report),
    `  label     ${report.volumeId}`,
    `  payload   ${report.images} images, ${report.blobs} blobs, ${formatSize(report.payloadSize)}; ` +
      `sharing saved ${formatSize(report.dedupeSaved)}`,
    formatBytes(bytes),
    ...formatVerified(report),
    ...formatRehearsed(report),
    ...formatSignatures(report.signatures, '  release   '),
    ...formatImagePolicy(report.imagePolicy, '  policy    '),
    ...report.registriesConf.map((file) => `  mirrors   from ${file}`),
    ...warnOfTls(report.unverifiedTls, '  warning   '),
    ...formatUpdates(report).map((line) => `  ${line}`),
    ...report.files.map((file) => `  file      ${shown(file)}`),
    ...formatFiles(report, output),
    '',
    ...formatSteps(report, host),
    '',
    `next: ${formatCommand('verify', { path: output })}`,
    '',
  ].join('\n');
}

function formatPlan(plan: UpgradeIsoPlan, host: CliHost): string {
  return [
    `release   ${plan.release.version} ${plan.release.architecture}`,
    `          ${plan.release.reference}`,
    ...formatSignatures(plan.signatures, 'signature '),
    ...formatImagePolicy(plan.imagePolicy, 'policy    '),
    `label     ${plan.volumeId}`,
    ...formatUpdates(plan),
    `images    ${plan.images}, ${plan.blobs} blobs, ${formatSize(plan.payloadSize)}`,
    `shared    ${formatSize(plan.dedupeSaved)} that are not fetched twice`,
    `to fetch  ${formatSize(plan.bytesToFetch)}, ${formatSize(plan.bytesReused)} already cached`,
    `ISO size  ${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`,
    `free      ${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`,
    ...plan.registriesConf.map((file) => `mirrors   from ${file}`),
    ...plan.catalogs.flatMap(({ warnings }) => warnings.map((text) => `warning   ${text}`)),
    '',
    ...formatSteps(plan, host),
    '',
  ].join('\n');
}

/** Formats the path, and the releases on it that clusters take only by force. */
function formatUpdates({ path, signatures }: UpgradeIsoPlan): readonly string[] {
  const versions = [path.from, ...path.hops.map(({ version }) => version)];
  return [
    ...(path.from === undefined ? [] : [`path      ${versions.join(' -> ')}`]),
    ...signatures
      .filter(({ status }) => status === 'unsigned')
      .map(
        ({ version }) => `warning   ${version} is unsigned: a cluster refuses it without --force`,
      ),
  ];
}

function formatSteps(plan: UpgradeIsoPlan, host: CliHost): readonly string[] {
  const { path, preparation } = plan;
  const commands = plan.commands.map((command) => placeCommand(command, plan, host));
  const [apply, ...upgrades] = commands;
  return [
    ...formatGates(plan),
    ...(preparation.length === 0
      ? []
      : [
          'First, so that the hosts can take the ISO; each restarts once:',
          ...preparation.map((command) => `  ${placeCommand(command, plan, host)}`),
          'and wait until "oc get machineconfigpool" shows every pool as updated.',
          '',
        ]),
    'To upgrade: attach the ISO to every host of the cluster, then run',
    `  ${apply ?? ''}`,
    ...upgrades.flatMap((command, index) => [
      `  ${command}`,
      ...(index < upgrades.length - 1
        ? [
            `and, when "oc get clusterversion" shows ${path.hops[index]?.version ?? ''} as completed,`,
          ]
        : []),
    ]),
  ];
}

/**
 * Completes a command of a plan, which names a file by its name alone, with the path from here,
 * where a person runs it.
 */
function placeCommand(command: string, { files }: UpgradeIsoPlan, { cwd }: CliHost): string {
  const file = files.find((path) => command === `oc apply -f ${basename(path)}`);
  return file === undefined
    ? command
    : formatProgram('oc', 'apply', '-f', { path: relative(cwd, file) });
}
