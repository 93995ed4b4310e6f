import { type Command, Option } from 'commander';
import { basename, relative } from 'node:path';
import { formatCommand, formatProgram } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import { isUpgradeLabel } from '../stages/4-lay-out/lay-out-upgrade-iso.ts';
import type { UpgradeIsoPlan, UpgradeIsoReport } from '../stages/report/upgrade-iso.ts';
import { UPGRADE_ISO } from '../stages/upgrade-iso.ts';
import type { CliHost } from './host.ts';
import {
  createConcurrencyOption,
  addReuseOptions,
  addSignatureOptions,
  createConfigArgument,
  createRetryOption,
  createSetOption,
  createWorkDirOption,
  refuseOption,
} from './options.ts';
import { describeProduct, type Built } from './product.ts';
import {
  describePayload,
  listMirrorFiles,
  listResult,
  formatOutput,
  warnOfTls,
  describeMade,
  listImagePolicy,
  listMade,
  listSignatures,
} from './report-lines.ts';
import { readUpgradeRequest, UPGRADE_OUTPUT } from './ask-appliance.ts';
import { createOutputOption, formatPath } from './terminal/output.ts';
import { createLogFormatOption } from './terminal/progress.ts';
import {
  type Report,
  type ReportBlock,
  type ReportRow,
  gap,
  lineOf,
  listRows,
  nextStep,
  rowsOf,
  say,
  underLabel,
} from './terminal/report.ts';
import { explainGates } from './gate-lines.ts';

/* This file owns the upgrade ISO as a product of the command line. */

export const UPGRADE_ISO_ROW = describeProduct(UPGRADE_ISO, {
  ask: readUpgradeRequest,
  hasSecrets: false,
  maker: 'an upgrade ISO',
  config: 'appliance-config.yaml',
  output: UPGRADE_OUTPUT,
  addOptions: addUpgradeOptions,
  plans: 'this plan (sealift plan upgrade-iso -o json)',
  words: {
    build: {
      description: 'the ISO that upgrades an installed cluster without network',
      help:
        '\nCarries the release, operators and additional images of the configuration. Next to the ISO, it\n' +
        'writes upgrade-VERSION.yaml: signatures, mirrors and catalog sources, for "oc apply". For a block\n' +
        'device (with --force) or an object, that file goes to the working directory. At the end, it prints\n' +
        'the commands to run. For clusters that were installed without the interactive flow.\n' +
        '\nExamples:\n  $ sealift build upgrade-iso appliance-config.yaml --output upgrade.iso\n' +
        '  $ sealift build upgrade-iso --from 4.20.6',
    },
    plan: {
      description: 'the same for an upgrade ISO',
      help: '\nExample:\n  $ sealift plan upgrade-iso --from 4.20.6 -o json | jq .path',
    },
    lock: {
      description: 'the same for an upgrade ISO, with its path in the update graph',
      help: '\nExample:\n  $ sealift lock upgrade-iso --from 4.20.6 && sealift build upgrade-iso --locked',
    },
  },
  marks: { addOptions: addFromOption, ofMedium: ({ label = '' }) => isUpgradeLabel(label) },
  describeReport: describeUpgradeBuild,
  describePlan: describeUpgradePlan,
});

function addUpgradeOptions(command: Command): Command {
  return addFromOption(addReuseOptions(addSignatureOptions(command)))
    .addArgument(createConfigArgument())
    .addOption(createSetOption())
    .option('--output <file>', 'a file, a block device, or s3://BUCKET/KEY', UPGRADE_OUTPUT)
    .addOption(createWorkDirOption())
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
}

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

function addFromOption(command: Command): Command {
  return command.option(
    '--from <version>',
    'version of the cluster: also carry the releases on its way through the update graph',
  );
}

export function describeUpgradeBuild(report: Built<UpgradeIsoReport>, host: CliHost): Report {
  const { release } = report;
  const output = formatOutput(report.output, host);
  return describeMade(output, report, {
    about: say`OpenShift ${release.version} ${release.architecture}`,
    rows: [
      ['label', say`${report.volumeId}`],
      describePayload(report),
      ...listMade(report),
      ...rowsOf('release', listSignatures(report.signatures)),
      ...underLabel('policy', listImagePolicy(report.imagePolicy)),
      ...listMirrorFiles(report.registriesConf),
      ...rowsOf('warning', warnOfTls(report.unverifiedTls)),
      ...listUpdates(report),
      ...rowsOf(
        'file',
        report.files.map((file) => say`${formatPath(file, host)}`),
      ),
      ...listResult(report, output),
    ],
    next: [...listSteps(report, host), gap, nextStep(formatCommand('verify', { path: output }))],
  });
}

export function describeUpgradePlan(plan: UpgradeIsoPlan, host: CliHost): Report {
  return {
    title: ['Plan of an upgrade ISO'],
    body: [
      ...listRows({ width: 10 }, [
        ['release', say`${plan.release.version} ${plan.release.architecture}`],
        ['', say`${plan.release.reference}`],
        ...rowsOf('signature', listSignatures(plan.signatures)),
        ...underLabel('policy', listImagePolicy(plan.imagePolicy)),
        ['label', say`${plan.volumeId}`],
        ...listUpdates(plan),
        ['images', say`${plan.images}, ${plan.blobs} blobs, ${formatSize(plan.payloadSize)}`],
        ['shared', say`${formatSize(plan.dedupeSaved)} that are not fetched twice`],
        [
          'to fetch',
          say`${formatSize(plan.bytesToFetch)}, ${formatSize(plan.bytesReused)} already cached`,
        ],
        ['ISO size', say`${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`],
        ['free', say`${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`],
        ...listMirrorFiles(plan.registriesConf),
        ...rowsOf(
          'warning',
          plan.catalogs.flatMap(({ warnings }) => warnings.map((text) => say`${text}`)),
        ),
      ]),
      gap,
      ...listSteps(plan, host),
    ],
  };
}

/** The path, and the releases on it that clusters take only by force. */
const listUpdates = ({ path, signatures }: UpgradeIsoPlan): readonly ReportRow[] => [
  ...rowsOf(
    'path',
    path.from === undefined
      ? []
      : [say`${[path.from, ...path.hops.map(({ version }) => version)].join(' -> ')}`],
  ),
  ...rowsOf(
    'warning',
    signatures
      .filter(({ status }) => status === 'unsigned')
      .map(({ version }) => say`${version} is unsigned: a cluster refuses it without --force`),
  ),
];

function listSteps(plan: UpgradeIsoPlan, host: CliHost): readonly ReportBlock[] {
  const { path, preparation } = plan;
  const [apply = '', ...upgrades] = plan.commands.map((command) =>
    placeCommand(command, plan, host),
  );
  return [
    ...explainGates(plan),
    ...(preparation.length === 0
      ? []
      : [
          lineOf(['First, so that the hosts can take the ISO; each restarts once:']),
          ...preparation.map((command) => lineOf(say`${placeCommand(command, plan, host)}`, 2)),
          lineOf(['and wait until "oc get machineconfigpool" shows every pool as updated.']),
          gap,
        ]),
    lineOf(['To upgrade: attach the ISO to every host of the cluster, then run']),
    lineOf(say`${apply}`, 2),
    ...upgrades.flatMap((command, index) => [
      lineOf(say`${command}`, 2),
      ...(index < upgrades.length - 1
        ? [
            lineOf(
              say`and, when "oc get clusterversion" shows ${path.hops[index]?.version ?? ''} as completed,`,
            ),
          ]
        : []),
    ]),
  ];
}

/** Completes a command of a plan, which names a file by its name alone, with the path from here. */
function placeCommand(command: string, { files }: UpgradeIsoPlan, { cwd }: CliHost): string {
  const file = files.find((path) => command === `oc apply -f ${basename(path)}`);
  return file === undefined
    ? command
    : formatProgram('oc', 'apply', '-f', { path: relative(cwd, file) });
}
