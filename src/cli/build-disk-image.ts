import { Option, type Command } from 'commander';
import { formatCommand } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import { DISK_IMAGE } from '../stages/disk-image.ts';
import type {
  DeploymentIsoReport,
  DiskImagePlan,
  DiskImageReport,
  DiskPartition,
} from '../stages/report/disk-image.ts';
import { DISK_OUTPUT, readDiskImageRequest } from './ask-disk.ts';
import { addLiveOptions } from './build-live-iso.ts';
import type { CliHost } from './host.ts';
import { createConfigArgument, parseWhole } from './options.ts';
import { describeLivePlan } from './plan.ts';
import { describeProduct, type Built } from './product.ts';
import {
  describePayload,
  listWarnings,
  listResult,
  formatOutput,
  describeMade,
  listImagePolicy,
  listMade,
  listSignatures,
} from './report-lines.ts';
import { formatPath } from './terminal/output.ts';
import {
  type Report,
  type ReportRow,
  listRows,
  nextStep,
  rowsOf,
  say,
  underLabel,
} from './terminal/report.ts';

/* This file owns the disk image as a product of the command line. */

export const DISK_IMAGE_ROW = describeProduct(DISK_IMAGE, {
  ask: readDiskImageRequest,
  hasSecrets: true,
  maker: 'a disk image',
  config: 'appliance-config.yaml',
  output: DISK_OUTPUT,
  addOptions: addDiskOptions,
  plans: 'this plan (sealift plan disk-image -o json)',
  words: {
    build: {
      description: 'the raw image of a disk that boots the installer, with the registry beside it',
      help:
        '\nThe image has the boot partitions of the CoreOS metal image, an empty root partition, the live\n' +
        'ISO as partition "agentboot" and the registry as partition "agentdata". It is sparse and as small\n' +
        'as possible, unless --size or diskSizeGB gives a size. Needs debugfs and e2fsck (e2fsprogs), and\n' +
        'qemu-img for --qcow2; neither root nor loop devices.\n' +
        '\nExamples:\n  $ sealift build disk-image --metal-image rhcos-metal.x86_64.raw.gz\n' +
        '  $ sealift build disk-image --metal-image rhcos-metal.x86_64.raw.gz --size 150 --qcow2 appliance.qcow2',
    },
    plan: {
      description: 'the same for a disk image',
      help: '\nExample:\n  $ sealift plan disk-image --metal-image rhcos-metal.x86_64.raw.gz',
    },
    lock: {
      description: 'the same for a disk image',
      help: '\nExample:\n  $ sealift lock disk-image --metal-image rhcos-metal.x86_64.raw.gz',
    },
  },
  marks: { addOptions: addDiskImageOptions, ofMedium: ({ label }) => label === undefined },
  describeReport: describeDiskBuild,
  describePlan: describeDiskPlan,
});

function addDiskOptions(command: Command): Command {
  return addDiskImageOptions(
    addLiveOptions(command, {
      flags: '--output <file>',
      description: `a file or a block device (default: "${DISK_OUTPUT}")`,
    }),
  ).addArgument(createConfigArgument());
}

export const createMetalOption = (): Option =>
  new Option(
    '--metal-image <file|url>',
    'CoreOS metal image for x86_64: a file, or https://...?sha256=HEX; may be .gz or .xz',
  );

function addDiskImageOptions(command: Command): Command {
  return command
    .addOption(createMetalOption())
    .addOption(
      new Option(
        '--size <gib>',
        'size of the disk in GiB (default: diskSizeGB, or as small as possible)',
      ).argParser(parseWhole('usage.size', [1, 65_536])),
    )
    .option('--qcow2 <file>', 'also write a copy in the format of QEMU, with qemu-img');
}

function describeDiskBuild(report: Built<DiskImageReport>, host: CliHost): Report {
  const output = formatOutput(report.output, host);
  const qcow2 = report.qcow2 === undefined ? [] : [say`${formatPath(report.qcow2, host)}`];
  const rows = [...listDisk(report), ...rowsOf('qcow2', qcow2)];
  return describeDiskMedium(report, { output, rows });
}

/** The report of a medium with a disk image. */
export function describeDiskMedium(
  report: Built<DiskImageReport> | Built<DeploymentIsoReport>,
  { output, rows }: { readonly output: string; readonly rows: readonly ReportRow[] },
): Report {
  const { release } = report;
  return describeMade(output, report, {
    about: say`OpenShift ${release.version} ${release.architecture}`,
    rows: [
      describePayload(report),
      ...rows,
      ...listMade(report),
      ['secrets', [report.secretsOnMedia.join(', ') || 'none on the media']],
      ...rowsOf('release', listSignatures(report.signatures)),
      ...underLabel('policy', listImagePolicy(report.imagePolicy)),
      ...listWarnings(report),
      ...listResult(report, output),
    ],
    next: [nextStep(formatCommand('verify', { path: output }))],
  });
}

function describeDiskPlan(plan: DiskImagePlan): Report {
  const { body } = describeLivePlan({ ...plan, product: 'live-iso' });
  return {
    title: ['Plan of a disk image'],
    body: [...body, ...listRows({ width: 15 }, listDisk(plan))],
  };
}

const listDisk = ({
  metal,
  partitions,
  contentSize,
  isoSize,
}: DiskImagePlan | DiskImageReport): readonly ReportRow[] => [
  ['metal', say`${metal.from}`],
  ['disk', say`${formatSize(isoSize)}, of which ${formatSize(contentSize)} are not holes`],
  ...listDiskPartitions(partitions),
];

export const listDiskPartitions = (partitions: readonly DiskPartition[]): readonly ReportRow[] =>
  rowsOf('partition', partitions.map(describePartition));

const describePartition = ({ name, offset, size }: DiskPartition) =>
  say`${name}: ${formatSize(size)} at byte ${offset}`;
