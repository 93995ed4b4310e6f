import { Option, type Command } from 'commander';
import { dirname, join, relative } from 'node:path';
import { formatCommand, formatProgram } from '../base/text/shell.ts';
import { LIVE_ISO } from '../stages/live-iso.ts';
import type { LiveIsoReport } from '../stages/report/live-iso.ts';
import type { LiveIsoRequest } from '../stages/request.ts';
import { LIVE_OUTPUT, readLiveIsoRequest } from './ask-appliance.ts';
import type { CliHost } from './host.ts';
import {
  addReuseOptions,
  addSignatureOptions,
  createConcurrencyOption,
  createRetryOption,
  createSetOption,
  createWorkDirOption,
  parseAreaSize,
} from './options.ts';
import { describeInternalRelease, describeLivePlan } from './plan.ts';
import { describeProduct, type Built } from './product.ts';
import {
  describePayload,
  listMirrorFiles,
  listWarnings,
  listResult,
  formatOutput,
  describeMade,
  listImagePolicy,
  listMade,
  listSignatures,
} from './report-lines.ts';
import { createOutputOption } from './terminal/output.ts';
import { createLogFormatOption } from './terminal/progress.ts';
import {
  type Report,
  type ReportBlock,
  lineOf,
  nextStep,
  rowsOf,
  say,
  underLabel,
} from './terminal/report.ts';

/* This file owns the live ISO as a product of the command line: the first row of the table, whose commands need no name. */

const ISO_OUTPUT = {
  flags: '--output <file>',
  description:
    'a file, a block device, s3://BUCKET/KEY, or oci://REGISTRY/REPOSITORY:TAG (default: "appliance.iso")',
};

/** Options that `plan` and `build` share, so that a plan describes the medium that the build makes. */
export function addLiveOptions(command: Command, output = ISO_OUTPUT): Command {
  return addReuseOptions(addSignatureOptions(command))
    .option(output.flags, output.description)
    .addOption(createWorkDirOption())
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(
      new Option('--ignition <how>', 'what renders the unconfigured Ignition config').choices([
        'installer',
        'embedded',
      ]),
    )
    .addOption(
      new Option(
        '--ignition-area <size>',
        'room for the Ignition config with the values of a site, 256KiB to 64MiB (default: 1MiB)',
      ).argParser(parseAreaSize),
    )
    .option('--base-iso <file>', 'use this CoreOS live ISO instead of the one in the payload')
    .option(
      '--allow-incomplete',
      'accept a mirrorPath that lacks images which its catalogs name, with a warning',
    )
    .addOption(createSetOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());
}

export const LIVE_ISO_ROW = describeProduct(LIVE_ISO, {
  ask: readLiveIsoRequest,
  hasSecrets: true,
  maker: 'an appliance',
  config: 'appliance-config.yaml',
  output: LIVE_OUTPUT,
  addOptions: addLiveOptions,
  plans: 'this plan (sealift plan -o json)',
  describeReport: describeLiveBuild,
  describePlan: describeLivePlan,
});

export function describeLiveBuild(
  report: Built<LiveIsoReport>,
  host: CliHost,
  { signatures: { keys } }: Pick<LiveIsoRequest, 'signatures'>,
): Report {
  const { release } = report;
  const output = formatOutput(report.output, host);
  const seconds = report.stages.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000;
  const retries = report.hosts.reduce((sum, host) => sum + host.retries, 0);
  return describeMade(output, report, {
    about: say`OpenShift ${release.version} ${release.architecture}`,
    rows: [
      describePayload(report),
      ...listMade(report),
      ['work', say`${seconds.toFixed(1)} s in stages, ${retries} retries`],
      [
        'ignition',
        [
          report.ignition === 'installer'
            ? "the release's own installer"
            : 'embedded templates: no assisted installer',
        ],
      ],
      ['secrets', [report.secretsOnMedia.join(', ') || 'none on the media']],
      ...listMirrorFiles(report.registriesConf),
      ['cluster', describeInternalRelease(report)],
      ...rowsOf('release', listSignatures(report.signatures)),
      ...underLabel('policy', listImagePolicy(report.imagePolicy)),
      ...listWarnings(report),
      ...listResult(report, output),
    ],
    next: describeNextSteps({
      ...report,
      output,
      ...(keys !== undefined && { keys: relative(host.cwd, keys) }),
    }),
  });
}

/** Properties of a live ISO on which the steps to a cluster depend. */
export type BuiltMedium = {
  /** Output as a person in the working directory names it. */
  readonly output: string;
  readonly interactive: boolean;
  readonly fips: boolean;
  /** Embedded templates have no assisted installer, so no cluster is installed. */
  readonly ignition: 'installer' | 'embedded';
  readonly signatures?: LiveIsoReport['signatures'];
  /** File of the public keys that the release was verified with; default: those of Red Hat. */
  readonly keys?: string;
};

/** A non-interactive medium waits for a configuration image, which only its release's installer can make. */
export function describeNextSteps(medium: BuiltMedium): readonly ReportBlock[] {
  const { output, interactive, ignition } = medium;
  if (output.startsWith('oci://')) {
    return [nextStep(formatCommand('pull', { path: output }, '--output', 'appliance.iso'))];
  }
  const verify = formatCommand('verify', { path: output });
  if (ignition === 'embedded') return [nextStep(verify)];
  const steps = interactive ? listInteractive(medium) : listWithImage(medium);
  return [
    lineOf(['next:']),
    ...[verify, ...steps].map((step, index) => lineOf(say`${index + 1}. ${step}`, 2)),
    lineOf(
      [
        'sealift help install: the boot order, when the medium may be detached, and how to add hosts',
      ],
      2,
    ),
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
