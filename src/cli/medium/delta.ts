import { dirname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { hexOf } from '../../base/digest.ts';
import { lockOutput } from '../../base/disk/lock.ts';
import { formatSize } from '../../base/text/quantities.ts';
import { applyDelta, makeDelta, type DeltaReport } from '../../media/delta/make-delta.ts';
import { claimIso } from '../../media/output/claim-iso.ts';
import type { PourOptions } from '../../iso/pour/pour-iso.ts';
import type { CliHost } from '../host.ts';
import {
  createForceOption,
  createOutputOption,
  writeFormatted,
  type OutputFormat,
} from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { runWithProgress } from '../terminal/run-with-progress.ts';

type Options = {
  readonly output: string;
  readonly force: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

type Work = (
  settings: Pick<PourOptions, 'output' | 'signal' | 'onProgress' | 'warn'>,
) => Promise<DeltaReport>;

/** `sealift delta OLD NEW --output FILE`. */
export function registerDelta(program: Command, host: CliHost): void {
  addOptions(program.command('delta'), 'the delta to write')
    .description('write what one ISO has and another has not, for sites behind slow links')
    .argument('<old>', 'ISO that the site has')
    .argument('<new>', 'ISO that it is to have')
    .addHelpText(
      'after',
      '\nBoth are ISOs of sealift. Every byte that is carried is verified. Run again after an\n' +
        'interruption, it continues.\n' +
        '\nExample:\n  $ sealift delta monday.iso tuesday.iso --output tuesday.delta',
    )
    .action((from: string, to: string, options: Options) => {
      const inputs = { from: resolve(host.cwd, from), to: resolve(host.cwd, to) };
      return run('make delta', { options, host, inputs: Object.values(inputs) }, (settings) =>
        makeDelta(inputs, settings),
      );
    });
}

/** `sealift apply OLD FILE --output NEW`. */
export function registerApply(program: Command, host: CliHost): void {
  addOptions(program.command('apply'), 'the new ISO to write')
    .description('make the new ISO of an old one and a delta')
    .argument('<old>', 'ISO that the delta was made from')
    .argument('<delta>', 'file that "sealift delta" wrote')
    .addHelpText(
      'after',
      '\nEvery byte is verified. A delta for another ISO is refused before a byte is written. Run again\n' +
        'after an interruption, it continues.\n' +
        '\nExample:\n  $ sealift apply monday.iso tuesday.delta --output tuesday.iso',
    )
    .action((from: string, delta: string, options: Options) => {
      const inputs = { from: resolve(host.cwd, from), delta: resolve(host.cwd, delta) };
      return run('apply delta', { options, host, inputs: Object.values(inputs) }, (settings) =>
        applyDelta(inputs, settings),
      );
    });
}

const addOptions = (command: Command, output: string): Command =>
  command
    .requiredOption('--output <file>', output)
    .addOption(createForceOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

type Call = {
  readonly options: Options;
  readonly host: CliHost;
  readonly inputs: readonly string[];
};

async function run(stage: string, { options, host, inputs }: Call, work: Work): Promise<void> {
  const output = resolve(host.cwd, options.output);
  const { force, logFormat } = options;
  await claimIso({ output, force, inputs, workDir: join(dirname(output), '.sealift') });
  const unlock = await lockOutput(`${output}.lock`);
  try {
    const report = await runWithProgress({ stage, logFormat, host }, (watched) =>
      work({ ...watched, output }),
    );
    await writeFormatted({ host, ...options }, { output, ...report }, () =>
      format(output, report, host),
    );
  } finally {
    await unlock();
  }
}

const format = (
  output: string,
  { size, digest, carried, shared }: DeltaReport,
  { cwd }: CliHost,
): string =>
  [
    `${relative(cwd, output)} is complete: ${formatSize(size)}`,
    `  sha256    ${hexOf(digest)}`,
    `  bytes     ${formatSize(carried)} in the delta, ${formatSize(shared)} of the old ISO`,
    '',
  ].join('\n');
