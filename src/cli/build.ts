import type { Command } from 'commander';
import { dirname, join, relative } from 'node:path';
import { UsageError } from '../base/errors.ts';
import { formatCommand, formatProgram } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import { buildLiveIso } from '../stages/live-iso.ts';
import type { LiveIsoReport } from '../stages/report/live-iso.ts';
import { registerInstallationIso } from './build-installation-iso.ts';
import { registerUpgradeIso } from './build-upgrade-iso.ts';
import type { CliHost } from './host.ts';
import {
  createRehearseOption,
  formatRehearsed,
  rehearseBuilt,
  type Rehearsed,
  requireRehearsed,
} from './medium/rehearse-built.ts';
import { createVerifyOption, verifyBuilt, type Verified } from './medium/verify.ts';
import { addLockOptions, refuseLockInFront } from './lock-options.ts';
import { formatInternalRelease } from './plan.ts';
import {
  formatImagePolicy,
  formatSignatures,
  formatBytes,
  formatFiles,
  formatChecksum,
  formatOutput,
  formatVerified,
  warnOfTls,
} from './report-lines.ts';
import {
  findConfigArgument,
  LIVE_ARGUMENTS,
  addLiveOptions,
  PRODUCTS,
  runLive,
  type LiveCommandOptions,
} from './run.ts';
import { createSecretsOption } from './secrets-elsewhere.ts';
import { createForceOption, writeFormatted } from './terminal/output.ts';

/** Registers `sealift build [live-iso] [CONFIG]`, and the other products as commands below it. */
export function registerBuild(program: Command, host: CliHost): void {
  // Options after the name of another product belong to that product, and both levels must know it.
  const build = addLockOptions(addLiveOptions(program.enablePositionalOptions().command('build')))
    .enablePositionalOptions()
    .option(
      '--plan <file>',
      'take exactly the images of this plan (sealift plan -o json), even if tags have moved',
    )
    .helpCommand(false)
    .description('build a medium; after an interruption, run it again to continue')
    .usage('[options] [product] [config...]')
    .addOption(createVerifyOption())
    .addOption(createSecretsOption())
    .addOption(createRehearseOption())
    .addOption(createForceOption())
    .argument(...LIVE_ARGUMENTS)
    .addHelpText(
      'after',
      '\nProducts: live-iso (default), and those listed as commands.\n' +
        '\nWith --force, a block device that is not in use is overwritten, and read again at the end.\n' +
        '\nSOURCE_DATE_EPOCH, in seconds since 1970, is the time of the ISO and of all files on it; without\n' +
        'it, they have the time at which the release was made.\n' +
        '\nExamples:\n  $ sealift build live-iso appliance-config.yaml --output ove.iso\n' +
        '  $ sealift build live-iso appliance-config.yaml --output s3://media/nightly.iso\n' +
        '  $ sealift build live-iso appliance-config.yaml --output oci://registry.example.com/media/ove:nightly\n' +
        '  $ sealift lock && sealift build --locked',
    )
    .action(async (args: readonly string[], options: LiveCommandOptions) => {
      const { report, keys } = await runLive(
        {
          config: await findConfigArgument(args, ['live-iso'], host),
          options,
          host,
          isBuild: true,
        },
        async (request, tools) => ({
          report: await buildLiveIso(request, tools),
          keys: request.signatures.keys,
        }),
      );
      const verified = await verifyBuilt(report.output, options, host);
      const told = {
        ...report,
        ...verified,
        ...(await rehearseBuilt(report.output, options, host)),
      };
      await writeFormatted({ host, ...options }, told, () => formatReport(told, keys, host));
      requireRehearsed(report.output, told, options);
    });
  build.hook('preSubcommand', refuseLockInFront);
  registerInstallationIso(build, host);
  registerUpgradeIso(build, host);
  registerDiskImage(build);
}

/** Registers a product of openshift/appliance that is not built, so that its name is explained. */
function registerDiskImage(build: Command): void {
  build
    .command('disk-image', { hidden: true })
    .addHelpText('after', '\nExample:\n  $ sealift build live-iso')
    .allowUnknownOption()
    .allowExcessArguments()
    .action((_options: object, { args }: Command) => {
      throw new UsageError('usage.not-built', 'this version does not build disk images', {
        expected: PRODUCTS.join(' or '),
        found: ['disk-image', ...args].join(' '),
        hint: `build another product: ${PRODUCTS.map((name) => formatCommand('build', name)).join(', ')}`,
      });
    });
}

function formatReport(
  report: LiveIsoReport & Verified & Rehearsed,
  keys: string | undefined,
  host: CliHost,
): string {
  const { bytes, release } = report;
  const output = formatOutput(report.output, host);
  const seconds = report.stages.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000;
  const retries = report.hosts.reduce((sum, host) => sum + host.retries, 0);
  return [
    '',
    `${output} is ${report.isUpToDate ? 'up to date' : 'complete'}: ${formatSize(report.isoSize)}, OpenShift ${release.version} ${release.architecture}`,
    '',
    formatChecksum(report),
    `  payload   ${report.images} images, ${report.blobs} blobs, ${formatSize(report.payloadSize)}; ` +
      `sharing saved ${formatSize(report.dedupeSaved)}`,
    formatBytes(bytes),
    ...formatVerified(report),
    ...formatRehearsed(report),
    `  work      ${seconds.toFixed(1)} s in stages, ${retries} retries`,
    `  ignition  ${report.ignition === 'installer' ? "the release's own installer" : 'embedded templates: no assisted installer'}`,
    `  secrets   ${report.secretsOnMedia.join(', ') || 'none on the media'}`,
    ...report.registriesConf.map((file) => `  mirrors   from ${file}`),
    `  cluster   ${formatInternalRelease(report)}`,
    ...formatSignatures(report.signatures, '  release   '),
    ...formatImagePolicy(report.imagePolicy, '  policy    '),
    ...report.warnings.map((warning) => `  warning   ${warning}`),
    ...warnOfTls(report.unverifiedTls, '  warning   '),
    ...(report.manifest === undefined
      ? formatFiles(report, output)
      : [`  digest    ${report.manifest}`]),
    '',
    ...formatNextSteps({
      ...report,
      output,
      ...(keys !== undefined && { keys: relative(host.cwd, keys) }),
    }),
    '',
  ].join('\n');
}

/** Properties of a live ISO on which the steps to a cluster depend. */
export type BuiltMedium = {
  /** Output as a person in the working directory names it. */
  readonly output: string;
  readonly interactive: boolean;
  readonly fips: boolean;
  /**
   * Source of the Ignition config. Embedded templates have no assisted installer, so no cluster is
   * installed.
   */
  readonly ignition: 'installer' | 'embedded';
  readonly signatures?: LiveIsoReport['signatures'];
  /** File of the public keys that the release was verified with; default: those of Red Hat. */
  readonly keys?: string;
};

/**
 * Formats the steps from a finished live ISO to a cluster, as lines. A medium that is not
 * interactive waits on its console for a configuration image, which only its own release's
 * installer can make.
 */
export function formatNextSteps(medium: BuiltMedium): readonly string[] {
  const { output, interactive, ignition } = medium;
  if (output.startsWith('oci://')) {
    return [`next: ${formatCommand('pull', { path: output }, '--output', 'appliance.iso')}`];
  }
  const verify = formatCommand('verify', { path: output });
  if (ignition === 'embedded') return [`next: ${verify}`];
  const steps = interactive ? listInteractive(medium) : listWithImage(medium);
  return [
    'next:',
    ...[verify, ...steps].map((step, index) => `  ${index + 1}. ${step}`),
    '  sealift help install: the boot order, when the medium may be detached, and how to add hosts',
  ];
}

const listInteractive = ({ output }: BuiltMedium): readonly string[] => [
  `attach ${output} to every host; boot order: installation disk first, then the medium`,
  'boot; on the console of one host, choose it as the rendezvous host, and enter its IP on the others',
  'open http://<rendezvous IP>:3001 and configure the cluster',
];

function listWithImage({ output, fips, signatures = [], keys }: BuiltMedium): readonly string[] {
  const isUnsigned = signatures.some(({ status }) => status === 'unsigned');
  const name = fips ? 'openshift-install-fips' : 'openshift-install';
  const directory = /^(?:s3:\/|\/dev)\//.test(output) ? '.' : dirname(output);
  const program = directory === '.' ? `./${name}` : join(directory, name);
  const [iso, out] = [{ path: output }, { path: directory }];
  const image = 'site/agentconfig.noarch.iso';
  return [
    formatCommand(
      'extract',
      'installer',
      iso,
      '--out',
      out,
      ...(keys === undefined ? [] : ['--signature-keys', { path: keys }]),
      ...(isUnsigned ? ['--allow-unsigned'] : []),
    ),
    'write install-config.yaml and agent-config.yaml to site/, and keep copies: the next step deletes them',
    formatProgram(program, 'agent', 'create', 'config-image', '--dir', 'site'),
    formatCommand('config-iso', 'check', image, '--medium', iso),
    `attach ${output} and ${image} to every host, and boot; boot order: installation disk first`,
    formatProgram(program, 'agent', 'wait-for', 'install-complete', '--dir', 'site'),
  ];
}
