import type { Command } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../base/errors.ts';
import { formatCommand } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import { readConfigText, type ConfigNames } from '../config/load.ts';
import { INSTALLATION_CONFIG_NAME, isInstallationConfig } from '../sites/installation.ts';
import { INSTALLATION_ISO } from '../stages/installation-iso.ts';
import type {
  InstallationIsoPlan,
  InstallationIsoReport,
} from '../stages/report/installation-iso.ts';
import type { CliHost } from './host.ts';
import {
  addReuseOptions,
  addSignatureOptions,
  addTo,
  createConcurrencyOption,
  createRetryOption,
  createWorkDirOption,
} from './options.ts';
import { describeProduct, type Built } from './product.ts';
import {
  listMirrorFiles,
  listResult,
  formatOutput,
  warnOfTls,
  describeMade,
  listMade,
  listSignatures,
} from './report-lines.ts';
import { INSTALLATION_OUTPUT, readInstallationRequest } from './ask-installation.ts';
import { createOutputOption } from './terminal/output.ts';
import { createLogFormatOption } from './terminal/progress.ts';
import {
  type Phrase,
  type Report,
  type ReportRow,
  listRows,
  nextStep,
  rowsOf,
  say,
} from './terminal/report.ts';
import { listSpace } from './plan.ts';

/* This file owns the installation ISO as a product of the command line. */

export const INSTALLATION_ISO_ROW = describeProduct(INSTALLATION_ISO, {
  ask: ([config], flags, host) => readInstallationRequest(config, flags, host),
  hasSecrets: true,
  maker: 'an installation ISO',
  config: INSTALLATION_CONFIG_NAME,
  output: INSTALLATION_OUTPUT,
  addOptions: addInstallationIsoOptions,
  plans: 'this report of an earlier build',
  words: {
    build: {
      description: 'the ISO that installs a seed image on a disk, the same for any number of sites',
      help:
        '\nOPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE names the live ISO if no option does.\n' +
        'A script post.sh next to the configuration goes on the ISO. The ISO has the pull secret.\n' +
        'With --embed-seed and --embed-precached, it installs without access to a registry.\n' +
        '\nExamples:\n  $ sealift build installation-iso --base-iso rhcos-live.x86_64.iso\n' +
        '  $ openshift-install coreos print-stream-json > stream.json\n' +
        '  $ sealift build installation-iso --coreos-stream stream.json\n' +
        '  $ sealift build installation-iso --release quay.io/ocp/release@sha256:... --embed-seed --embed-precached',
    },
    lock: {
      description: 'the same for an installation ISO',
      help: '\nExample:\n  $ sealift lock installation-iso --base-iso rhcos-live.x86_64.iso',
    },
  },
  marks: { addOptions: addInstallationOptions, ofConfig: isInstallationNamed },
  describeReport: describeInstallationBuild,
  describePlan: describeInstallationPlan,
});

function addInstallationIsoOptions(command: Command): Command {
  return addInstallationOptions(
    addReuseOptions(addSignatureOptions(command))
      .argument('[config]', 'configuration file', INSTALLATION_CONFIG_NAME)
      .option(
        '--output <file>',
        'a file, a block device, s3://BUCKET/KEY, or oci://REGISTRY/REPOSITORY:TAG',
        INSTALLATION_OUTPUT,
      )
      .addOption(createWorkDirOption())
      .option(
        '--base-iso <file|url>',
        'CoreOS live ISO: a file, or https://...?sha256=HEX; may be .gz or .xz',
      )
      .addOption(createConcurrencyOption())
      .addOption(createRetryOption()),
  )
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());
}

/** Options that `plan` and `build` have for an installation ISO but not for a live ISO. */
function addInstallationOptions(command: Command): Command {
  return command
    .option('--coreos-stream <file|url>', 'take the live ISO that this CoreOS stream (JSON) names')
    .option(
      '--release <pullspec>',
      'take the live ISO and the registry server from this release payload',
    )
    .option('--strict', 'refuse a release or a live ISO that is not of the version of the seed')
    .option('--embed-seed', 'carry the seed image and serve it from the ISO')
    .option('--embed-precached', 'carry the images that the seed names for precaching')
    .option('--embed-release', 'carry all images of --release')
    .option('--embed-image <reference>', 'also carry this image; may be repeated', addTo)
    .option(
      '--registry-image <reference>',
      'registry server on the ISO (default: that of --release)',
    )
    .option(
      '--registries-conf <file>',
      'mirrors to fetch from, instead of the registries.conf of user and system',
    )
    .option('--ca-bundle <file>', 'certificates to trust while fetching, in PEM')
    .option(
      '--insecure-registry <host>',
      'do not verify the certificate of this host, and send passwords to it without encryption; may be repeated',
      addTo,
    );
}

export function describeInstallationBuild(
  report: Built<InstallationIsoReport>,
  host: CliHost,
): Report {
  const { embedded } = report;
  const output = formatOutput(report.output, host);
  // Only a medium that carries images has an index to verify it by.
  const next = embedded ? ['verify'] : ['ignition', 'show'];
  return describeMade(output, report, {
    about: say`${report.architecture}`,
    rows: [
      ['base', say`${report.base.from}`],
      ['seed', say`${report.seedImage}, version ${report.seedVersion}`],
      ['disk', say`${report.installationDisk}`],
      ['config', describeRoom(report.embedArea)],
      ...rowsOf(
        'carries',
        embedded
          ? [
              say`${embedded.images.length} images, ${embedded.blobs} blobs, ${formatSize(embedded.payloadSize)}; served on the ISO by ${embedded.registryImage}`,
            ]
          : [],
      ),
      ...listMade(report),
      ['secrets', [report.secretsOnMedia.join(', ')]],
      ...listMirrorFiles(report.registriesConf),
      ...rowsOf('release', listSignatures(report.signatures)),
      ...rowsOf('warning', warnOfTls(report.unverifiedTls)),
      ...rowsOf(
        'note',
        report.notes.map((note) => say`${note}`),
      ),
      ...listResult(report, output),
    ],
    next: [nextStep(formatCommand(...next, { path: output }))],
  });
}

export function describeInstallationPlan(plan: InstallationIsoPlan): Report {
  const { embedded } = plan;
  const rows: readonly ReportRow[] = [
    ['seed', say`${plan.seedImage}, version ${plan.seedVersion}`],
    ['disk', say`${plan.installationDisk}`],
    ['base ISO', say`${formatSize(plan.base.size)} from ${plan.base.from}`],
    ['config', describeRoom(plan.embedArea)],
    ...rowsOf(
      'images',
      embedded
        ? [say`${embedded.images.length}, served on the ISO by ${embedded.registryImage}`]
        : [],
    ),
    ...rowsOf(
      'unique blobs',
      embedded ? [say`${embedded.blobs}, ${formatSize(embedded.payloadSize)}`] : [],
    ),
    ...listSpace(plan, embedded !== undefined),
    ...rowsOf('release', listSignatures(plan.signatures)),
    ...rowsOf(
      'mirrors from',
      plan.registriesConf.map((file) => say`${file}`),
    ),
    ['on the media', [plan.secretsOnMedia.join(', ')]],
    ...rowsOf(
      'warning',
      plan.unverifiedTls.map(
        (host) =>
          say`TLS of ${host} is not verified, and passwords are sent to it without encryption`,
      ),
    ),
    ...rowsOf(
      'note',
      plan.notes.map((note) => say`${note}`),
    ),
  ];
  return { title: ['Plan of an installation ISO'], body: listRows({ width: 15 }, rows) };
}

const describeRoom = ({ used, size, grownTo }: InstallationIsoReport['embedArea']): Phrase =>
  grownTo === undefined
    ? say`${formatSize(used)} of the ${formatSize(size)} that the base ISO reserves for it`
    : say`${formatSize(used)}, more than the ${formatSize(size)} that the base ISO reserves for it: this ISO reserves ${formatSize(grownTo)}`;

/** True if the configuration is for an installation ISO; such a configuration has no overlays. */
function isInstallationNamed(config: ConfigNames, { cwd }: Pick<CliHost, 'cwd'>): boolean {
  const path = resolve(cwd, config[0]);
  const isInstallation = isInstallationConfig(path, readConfigText(path));
  if (isInstallation) refuseOverlays(config);
  return isInstallation;
}

export function refuseOverlays(names: ConfigNames, set: readonly string[] = []): void {
  if (names.length === 1 && set.length === 0) return;
  const found = names.length > 1 ? `${names.length} files` : '--set';
  throw new UsageError('usage.overlays', 'the configuration of an installation ISO is one file', {
    expected: '1 file',
    found,
    hint: 'name one file, without --set',
  });
}
