import type { Command } from 'commander';
import { formatSize } from '../base/text/words.ts';
import { DEPLOYMENT_ISO } from '../stages/deployment-iso.ts';
import type { DeploymentIsoPlan, DeploymentIsoReport } from '../stages/report/disk-image.ts';
import { DEFAULT_TARGET, DEPLOYMENT_OUTPUT, readDeploymentRequest } from './ask-disk.ts';
import { createMetalOption, describeDiskMedium, listDiskPartitions } from './build-disk-image.ts';
import { addLiveOptions } from './build-live-iso.ts';
import type { CliHost } from './host.ts';
import { createConfigArgument } from './options.ts';
import { describeLivePlan } from './plan.ts';
import { describeProduct, type Built } from './product.ts';
import { formatOutput } from './report-lines.ts';
import { listRows, say, type Report, type ReportRow } from './terminal/report.ts';

/* This file owns the deployment ISO as a product of the command line. */

export const DEPLOYMENT_ISO_ROW = describeProduct(DEPLOYMENT_ISO, {
  ask: readDeploymentRequest,
  hasSecrets: true,
  maker: 'a deployment ISO',
  config: 'appliance-config.yaml',
  output: DEPLOYMENT_OUTPUT,
  addOptions: addDeploymentIsoOptions,
  plans: 'this plan (sealift plan deployment-iso -o json)',
  words: {
    build: {
      description: 'a live ISO that writes the disk image to the disk of the machine it boots',
      help:
        '\nThe ISO carries the disk image of "sealift build disk-image", as small as possible, without a second\n' +
        'copy of it on this machine. The booted machine writes it to the target device, and partition "root" gets\n' +
        'the rest of a larger disk. Everything on that disk is lost. With --dry-run, the machine writes to no disk:\n' +
        'log in as core and look at the names of its disks.\n' +
        '\nExamples:\n  $ sealift build deployment-iso --metal-image rhcos-metal.x86_64.raw.gz --target-device /dev/nvme0n1\n' +
        '  $ sealift build deployment-iso --metal-image rhcos-metal.x86_64.raw.gz --post-script power-off.sh',
    },
    plan: {
      description: 'the same for a deployment ISO',
      help: '\nExample:\n  $ sealift plan deployment-iso --metal-image rhcos-metal.x86_64.raw.gz',
    },
    lock: {
      description: 'the same for a deployment ISO',
      help: '\nExample:\n  $ sealift lock deployment-iso --metal-image rhcos-metal.x86_64.raw.gz',
    },
  },
  marks: { addOptions: addDeploymentOptions, ofMedium: ({ hasDisk }) => hasDisk },
  describeReport: describeDeploymentBuild,
  describePlan: describeDeploymentPlan,
});

function addDeploymentIsoOptions(command: Command): Command {
  return addDeploymentOptions(
    addLiveOptions(command, {
      flags: '--output <file>',
      description: `a file, a block device, s3://BUCKET/KEY, or oci://REGISTRY/REPOSITORY:TAG (default: "${DEPLOYMENT_OUTPUT}")`,
    }).addOption(createMetalOption()),
  ).addArgument(createConfigArgument());
}

function addDeploymentOptions(command: Command): Command {
  return command
    .option(
      '--target-device <device>',
      `disk of the machine that is overwritten; a link is followed (default: "${DEFAULT_TARGET}")`,
    )
    .option(
      '--post-script <file>',
      'run this script on the machine after the disk is written; its exit status does not count',
    )
    .option('--sparse-clone', 'leave zeros out: the target device must have nothing but zeros')
    .option('--dry-run', 'the machine shows its disks and writes to none of them');
}

function describeDeploymentBuild(report: Built<DeploymentIsoReport>, host: CliHost): Report {
  const output = formatOutput(report.output, host);
  return describeDiskMedium(report, { output, rows: listDeployment(report) });
}

function describeDeploymentPlan(plan: DeploymentIsoPlan): Report {
  const { body } = describeLivePlan({ ...plan, product: 'live-iso' });
  return {
    title: ['Plan of a deployment ISO'],
    body: [...body, ...listRows({ width: 15 }, listDeployment(plan))],
  };
}

const listDeployment = ({
  metal,
  diskSize,
  contentSize,
  partitions,
  ...plan
}: DeploymentIsoPlan): readonly ReportRow[] => [
  ['metal', say`${metal.from}`],
  ['disk', say`${formatSize(diskSize)}, of which ${formatSize(contentSize)} are not holes`],
  ...listDiskPartitions(partitions),
  ['target', say`${describeTarget(plan)}`],
  ...(plan.postScript === undefined ? [] : [['then', say`${plan.postScript}`] as const]),
];

function describeTarget({
  targetDevice,
  dryRun,
  sparseClone,
}: Pick<DeploymentIsoPlan, 'targetDevice' | 'dryRun' | 'sparseClone'>): string {
  if (dryRun) return `${targetDevice}; a dry run, which writes nothing`;
  return sparseClone ? `${targetDevice}, which must have nothing but zeros` : targetDevice;
}
