import type { Command } from 'commander';
import { DifferenceError } from '../../base/errors.ts';
import { compareMedia } from '../../media/compare.ts';
import type { CliHost } from '../host.ts';
import { ISO_ARGUMENT, useNamed } from '../named-media.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { writeReport } from '../terminal/report.ts';
import { describeComparison } from './diff-report.ts';

type DiffOptions = {
  readonly exitCode: boolean;
  readonly outputFormat: OutputFormat;
};

export function registerDiff(program: Command, host: CliHost): void {
  program
    .command('diff')
    .description(
      'report what changed from one medium to another: release, operators, images, bytes',
    )
    .argument('<old>', `${ISO_ARGUMENT}, of any maker`)
    .argument('<new>', 'the same')
    .option('--exit-code', 'exit with 8 if they differ', false)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nReads the indexes, kernel arguments and Ignition configs, but no blobs: sealift verify compares the\n' +
        'bytes with the index. ISOs without an index are compared by the names and sizes of their files.\n' +
        'It names the files, units and users of Ignition that differ, and never prints their contents.\n' +
        '\nExample:\n  $ sealift diff monday.iso tuesday.iso -o markdown > changes.md',
    )
    .action(async (old: string, now: string, { exitCode, outputFormat }: DiffOptions) => {
      const { comparison, names } = await useNamed(old, host, (before, old) =>
        useNamed(now, host, async (after, now) => ({
          comparison: await compareMedia(before, after),
          names: { old, new: now },
        })),
      );
      await writeReport({ host, outputFormat }, comparison, (comparison) =>
        describeComparison(comparison, names),
      );
      if (comparison.same || !exitCode) return;
      throw new DifferenceError('diff.differences', `${names.new} differs from ${names.old}`);
    });
}
