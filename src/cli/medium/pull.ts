import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { hexOf } from '../../base/digest.ts';
import { withLock } from '../../base/disk/lease.ts';
import { formatSize } from '../../base/text/words.ts';
import { pullIso, type PullReport } from '../../media/pull.ts';
import { claimIso } from '../../outputs/file.ts';
import { openReusable } from '../../media/seeds.ts';
import { addAccessOptions, useAccess, type AccessOptions } from '../access-options.ts';
import { addSeedOptions } from '../common-options.ts';
import type { CliHost } from '../host.ts';
import {
  createForceOption,
  createOutputOption,
  writeFormatted,
  type OutputFormat,
  formatPath,
} from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { runWithProgress } from '../terminal/run-with-progress.ts';
import { parseArtifactAddress } from '../../outputs/output.ts';

type Options = AccessOptions & {
  readonly output: string;
  /** false: what is replaced is not used either. */
  readonly seed?: readonly string[] | boolean;
  readonly force: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** `sealift pull oci://REGISTRY/REPOSITORY:TAG --output ISO`. */
export function registerPull(program: Command, host: CliHost): void {
  const pull = program
    .command('pull')
    .description('write the ISO that "sealift push" pushed')
    .argument('<address>', 'oci://REGISTRY/REPOSITORY, with :TAG or @DIGEST')
    .requiredOption('--output <file>', 'the ISO to write')
    .addOption(createForceOption());
  addAccessOptions(addSeedOptions(pull))
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nEvery byte is verified, and the ISO is the one that was pushed. Run again after an interruption, it\n' +
        'continues. Blobs of the ISO that is replaced, and of seeds, are not fetched.\n' +
        '\nExample:\n  $ sealift pull oci://registry.example.com/media/appliance:4.21.3 --output appliance.iso',
    )
    .action((address: string, options: Options) => pullTo(address, options, host));
}

async function pullTo(address: string, options: Options, host: CliHost): Promise<void> {
  const reference = parseArtifactAddress(address);
  const output = resolve(host.cwd, options.output);
  const { force, logFormat, seed } = options;
  const paths = Array.isArray(seed) ? seed.map((path: string) => resolve(host.cwd, path)) : [];
  await claimIso({ output, force, inputs: paths, workDir: join(dirname(output), '.sealift') });
  return withLock(`${output}.lock`, async () => {
    const { seeds, close } = await openReusable({
      seeds: paths,
      replaced: output,
      takesBlobs: seed !== false,
      keepsPlaces: false,
      trustsRecords: true,
    });
    const report = await runWithProgress({ stage: 'pull ISO', logFormat, host }, (watched) =>
      useAccess(options, { ...host, ...watched }, (client) =>
        pullIso(reference, { ...watched, client, output, seeds }),
      ),
    ).finally(close);
    await writeFormatted({ host, ...options }, { output, ...report }, () =>
      format(output, report, host),
    );
  });
}

const format = (
  output: string,
  { size, digest, fetched, copied, reused }: PullReport,
  { cwd }: CliHost,
): string =>
  [
    `${formatPath(output, { cwd })} is complete: ${formatSize(size)}`,
    `  sha256    ${hexOf(digest)}`,
    `  bytes     ${formatSize(fetched)} fetched, ${formatSize(copied)} from seeds, ${formatSize(reused)} there before`,
    '',
  ].join('\n');
