import type { Command } from 'commander';
import { resolve } from 'node:path';
import { DifferenceError } from '../base/errors.ts';
import { sumSizes } from '../base/lists.ts';
import { listCache, pruneCache, verifyCache } from '../base/store/keep.ts';
import { formatSize } from '../base/text/words.ts';
import type { CliHost } from './host.ts';
import { parseCacheSize } from './options.ts';
import { runWithProgress } from './named-media.ts';
import { createOutputOption, type OutputFormat } from './terminal/output.ts';
import { createLogFormatOption, type LogFormat } from './terminal/progress.ts';
import { lineOf, say, writeReport } from './terminal/report.ts';

type ListOptions = { readonly outputFormat: OutputFormat };
type PruneOptions = ListOptions & { readonly maxSize: number };
type VerifyOptions = ListOptions & { readonly logFormat: LogFormat };

export function registerCache(program: Command, host: CliHost): void {
  const cache = program
    .command('cache')
    .description('manage a folder of blobs that builds share with --cache')
    .addHelpText('after', '\nExample:\n  $ sealift cache ls /srv/sealift');
  registerList(cache, host);
  registerPrune(cache, host);
  registerVerifyCache(cache, host);
}

function registerList(cache: Command, host: CliHost): void {
  cache
    .command('ls')
    .description('list the blobs, least recently used first')
    .argument('<dir>', 'the folder')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift cache ls /srv/sealift | head')
    .action(async (dir: string, options: ListOptions) => {
      const blobs = (await listCache(resolve(host.cwd, dir))).map(({ digest, size, used }) => ({
        digest,
        size,
        used: new Date(used).toISOString(),
      }));
      const value = { blobs, bytes: sumSizes(blobs) };
      await writeReport({ host, ...options }, value, ({ bytes }) => ({
        title: say`Blobs of ${dir}`,
        body: [
          ...blobs.map(({ digest, size, used }) =>
            lineOf(say`${digest}  ${used}  ${formatSize(size)}`),
          ),
          lineOf(say`${blobs.length} blobs, ${formatSize(bytes)}`),
        ],
      }));
    });
}

function registerPrune(cache: Command, host: CliHost): void {
  cache
    .command('prune')
    .description('remove the least recently used blobs')
    .argument('<dir>', 'the folder')
    .requiredOption(
      '--max-size <size>',
      'largest size of the folder afterwards, as in 200GiB',
      parseCacheSize('usage.max-size'),
    )
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nBuilds may run meanwhile: blobs that were used in the last ten minutes stay, regardless of the limit.\n' +
        'Partial files of killed builds are removed after a week.\n' +
        '\nExample:\n  $ sealift cache prune /srv/sealift --max-size 200GiB',
    )
    .action(async (dir: string, { maxSize, ...options }: PruneOptions) => {
      const { removed, bytesLeft } = await pruneCache(resolve(host.cwd, dir), maxSize, host.now());
      const value = { removed: removed.map(({ digest, size }) => ({ digest, size })), bytesLeft };
      await writeReport({ host, ...options }, value, () => ({
        title: say`Blobs removed from ${dir}`,
        body: [
          lineOf(
            say`removed ${removed.length} blobs, ${formatSize(sumSizes(removed))}; ${formatSize(bytesLeft)} are left`,
          ),
        ],
      }));
    });
}

function registerVerifyCache(cache: Command, host: CliHost): void {
  cache
    .command('verify')
    .description('hash every blob, and remove damaged ones')
    .argument('<dir>', 'the folder')
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nA damaged blob costs builds time, and never reaches a medium. Exit code 8: there were damaged blobs.\n' +
        '\nExample:\n  $ sealift cache verify /srv/sealift',
    )
    .action(async (dir: string, { logFormat, ...options }: VerifyOptions) => {
      const { damaged, ...counted } = await runWithProgress(
        { stage: 'verify cache', logFormat, host },
        (watched) => verifyCache(resolve(host.cwd, dir), watched),
      );
      const value = { ...counted, damaged: damaged.map(({ digest, size }) => ({ digest, size })) };
      await writeReport({ host, ...options }, value, ({ blobs, bytes }) => ({
        title: say`Verification of ${dir}`,
        body: [
          ...damaged.map(({ digest, path }) =>
            lineOf(say`removed ${path}: its bytes are not ${digest}`),
          ),
          lineOf(say`${blobs} blobs, ${formatSize(bytes)}: ${damaged.length} were damaged`),
        ],
      }));
      if (damaged.length === 0) return;
      throw new DifferenceError('cache.damaged', `"${dir}" had ${damaged.length} damaged blobs`, {
        hint: 'check the disk; builds fetch what was removed again',
      });
    });
}
