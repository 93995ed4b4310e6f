import type { Command } from 'commander';
import { dirname, join, relative, resolve } from 'node:path';
import { digestFromHex, type Digest } from '../base/digest.ts';
import { ConfigError, UsageError } from '../base/errors.ts';
import { formatSize } from '../base/format-size.ts';
import {
  INSTALLATION_CONFIG_NAME,
  readInstallationConfig,
} from '../config/installation/read-installation-config.ts';
import { openBuildTools } from '../recipes/build-tools.ts';
import {
  buildInstallationIso,
  type InstallationIsoReport,
  type InstallationIsoRequest,
} from '../recipes/installation-iso.ts';
import { readPostScript } from '../stages/read-post-script.ts';
import type { CliHost } from './host.ts';
import { parseConcurrency } from './live-request.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './output.ts';
import { createLogFormatOption, createProgress, type LogFormat } from './progress.ts';

type Options = {
  readonly output: string;
  readonly workDir?: string;
  readonly baseIso?: string;
  readonly release?: string;
  readonly concurrency?: number;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** `sealift build installation-iso [CONFIG]`. */
export function registerInstallationIso(build: Command, host: CliHost): void {
  build
    .command('installation-iso')
    .description('the ISO that installs a seed image on a disk, the same for any number of sites')
    .argument('[config]', 'configuration file', INSTALLATION_CONFIG_NAME)
    .option('--output <file>', 'the ISO to write', 'rhcos-ibi.iso')
    .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
    .option('--base-iso <file|url>', 'CoreOS live ISO: a file, or https://...?sha256=HEX')
    .option('--release <pullspec>', 'take the CoreOS live ISO of this release payload')
    .option('--concurrency <n>', 'extents poured at a time (default: 8)', parseConcurrency)
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nA script post.sh beside the configuration is carried along. The ISO holds the pull secret.\n' +
        '\nExample:\n  $ sealift build installation-iso --base-iso rhcos-live.x86_64.iso',
    )
    .action(async (config: string, options: Options) => {
      const report = await run(config, options, host);
      await writeFormatted(host, options.outputFormat, {
        value: report,
        formatText: () => formatReport(report, host),
      });
    });
}

async function run(path: string, options: Options, host: CliHost): Promise<InstallationIsoReport> {
  const request = await readRequest(path, options, host);
  const progress = createProgress(host, options.logFormat);
  const tools = await openBuildTools({
    config: { pullSecret: request.config.pullSecret, build: { insecureRegistries: [] } },
    ...{ workDir: request.workDir, env: host.env, signal: host.signal },
    emit: progress.listener,
  });
  try {
    return await buildInstallationIso(request, tools);
  } finally {
    progress.close();
    await tools.close();
  }
}

async function readRequest(
  path: string,
  options: Options,
  host: CliHost,
): Promise<InstallationIsoRequest> {
  if (options.output === '-') {
    throw new UsageError('usage.no-stream', 'an ISO cannot be written to standard output', {
      hint: 'name a file with --output; it is written out of order and resumable',
    });
  }
  const base = readBase(options, host);
  const file = resolve(host.cwd, path);
  const output = resolve(host.cwd, options.output);
  const postScript = await readPostScript(file);
  const epoch = readEpoch(host.env['SOURCE_DATE_EPOCH']);
  return {
    config: await readInstallationConfig(file, path),
    ...{ base, output, lanes: options.concurrency ?? 8 },
    workDir: resolve(host.cwd, options.workDir ?? join(dirname(output), '.sealift')),
    ...(postScript && { postScript }),
    ...(epoch !== undefined && { epoch }),
  };
}

function readBase({ baseIso, release }: Options, host: CliHost): InstallationIsoRequest['base'] {
  if (baseIso !== undefined && release !== undefined) {
    throw new UsageError('usage.two-bases', '--base-iso and --release both name a live ISO', {
      hint: 'leave one of them out',
    });
  }
  if (release !== undefined) return { release };
  if (baseIso === undefined) {
    throw new UsageError('usage.no-base', 'no CoreOS live ISO is named', {
      hint:
        'name one with --base-iso, or a release with --release; ' +
        'that of the CoreOS stream metadata is not built into sealift',
    });
  }
  return /^https?:/i.test(baseIso) ? readAddress(baseIso) : { file: resolve(host.cwd, baseIso) };
}

/** `?sha256=` is ours and not sent; any other query stays. */
function readAddress(text: string): { readonly url: string; readonly sha256: Digest } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') throw untrusted(url?.protocol ?? 'no address');
  const hex = url.searchParams.get('sha256')?.toLowerCase() ?? '';
  if (!/^[0-9a-f]{64}$/.test(hex)) throw untrusted(`sha256=${hex}`);
  url.searchParams.delete('sha256');
  return { url: url.href, sha256: digestFromHex(hex) };
}

const untrusted = (found: string): UsageError =>
  new UsageError('usage.base-iso', 'the address of the live ISO cannot be trusted', {
    expected: 'https://HOST/PATH?sha256= and 64 hex digits',
    found,
    hint: 'add the sha256 that its publisher names',
  });

/** reproducible-builds.org/specs/source-date-epoch: seconds since 1970, in decimal. */
function readEpoch(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new ConfigError(
    'env.source-date-epoch',
    `SOURCE_DATE_EPOCH is "${text}", no whole seconds`,
  );
}

function formatReport(report: InstallationIsoReport, host: CliHost): string {
  const { base, bytes } = report;
  const output = relative(host.cwd, report.output) || report.output;
  return [
    '',
    `${output} is complete: ${formatSize(report.isoSize)}, ${report.architecture}`,
    '',
    `  sha256    ${report.digest.slice('sha256:'.length)}`,
    `  base      ${base.from}`,
    `  seed      ${report.seedImage}, version ${report.seedVersion}`,
    `  disk      ${report.installationDisk}`,
    `  bytes     ${formatSize(bytes.copied)} copied, ${formatSize(bytes.kept)} kept from before, ` +
      `${formatSize(bytes.written)} written`,
    `  secrets   ${report.secretsOnMedia.join(', ')}`,
    `  report    ${output}.report.json, ${output}.sha256`,
    '',
    `next: sealift ignition show ${output}`,
    '',
  ].join('\n');
}
