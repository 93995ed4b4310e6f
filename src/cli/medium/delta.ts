import { Option, type Command } from 'commander';
import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { dirname, resolve, join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { findDevice } from '../../base/disk/block-device.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { explainReadError } from '../../base/disk/disk-errors.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { UsageError } from '../../base/errors.ts';
import { formatSize, parseSize, SIZE_FORM } from '../../base/text/words.ts';
import { requireApplicable } from '../../media/delta/describe.ts';
import { isDelta } from '../../media/delta/file.ts';
import { applyInPlace } from '../../media/delta/in-place/apply.ts';
import { joinParts, type JoinOptions } from '../../media/delta/join.ts';
import { applyDelta, makeDelta, type DeltaReport } from '../../media/delta/make.ts';
import { isPart } from '../../media/delta/part.ts';
import { splitDelta } from '../../media/delta/split.ts';
import { isOurs, useImage } from '../../media/open.ts';
import { standInFor } from '../../outputs/device.ts';
import { claimFile } from '../../outputs/file/claim.ts';
import type { PourOptions } from '../../pour/index.ts';
import type { CliHost } from '../host.ts';
import { createWaitOption, refuseOption } from '../options.ts';
import { runWithProgress } from '../named-media.ts';
import { sayAgain } from '../terminal/progress.ts';
import {
  type OutputFormat,
  createForceOption,
  createOutputOption,
  formatPath,
} from '../terminal/output.ts';
import { type LogFormat, createLogFormatOption } from '../terminal/progress.ts';
import { type Report, say, writeReport, describeWhole, rowsOf } from '../terminal/report.ts';

/* This file owns `delta` and `apply`, also in place. */

type Options = {
  readonly output: string;
  readonly force: boolean;
  readonly wait: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

type DeltaOptions = Options & { readonly maxPartSize?: number };

export type InPlaceChoice = {
  readonly output?: string;
  readonly inPlace: boolean;
  readonly workDir: string;
};

type ApplyOptions = Omit<Options, 'output'> & InPlaceChoice;

export function registerDelta(program: Command, host: CliHost): void {
  addOptions(program.command('delta').requiredOption('--output <file>', 'the delta to write'))
    .description('write what a new ISO has and an old one lacks, for sites behind slow links')
    .addOption(createPartOption())
    .argument('<old>', 'ISO that the site has')
    .argument('<new>', 'ISO that the site will have')
    .addHelpText(
      'after',
      '\nBoth are ISOs of sealift. Every byte of the delta is verified. After an interruption, run it again\n' +
        'to continue.\n' +
        'With --max-part-size, the delta is split into smaller files and a file with their parity: any one of\n' +
        'them may be lost.\n' +
        '\nExamples:\n  $ sealift delta monday.iso tuesday.iso --output tuesday.delta\n' +
        '  $ sealift delta monday.iso tuesday.iso --output tuesday.delta --max-part-size 4GiB',
    )
    .action((from: string, to: string, options: DeltaOptions) => {
      const inputs = { from: resolve(host.cwd, from), to: resolve(host.cwd, to) };
      const { maxPartSize } = options;
      return run(
        'make delta',
        { options, host, inputs: Object.values(inputs) },
        async (settings) => {
          const claim = createPartClaim(Object.values(inputs), options);
          if (maxPartSize === undefined) return makeDelta(inputs, settings);
          for (const end of ['1', 'parity']) await claim(`${settings.output}.${end}`); // the other parts come later
          const report = await makeDelta(inputs, settings);
          const parts = await splitDelta(settings.output, { ...settings, maxPartSize, claim });
          await rm(settings.output);
          return { ...report, parts };
        },
      );
    });
}

export function registerApply(program: Command, host: CliHost): void {
  addOptions(program.command('apply').option('--output <file>', 'the new ISO to write'))
    .option('--in-place', 'turn the old ISO into the new one, in place', false)
    .option(
      '--work-dir <dir>',
      'directory for the journal while a device is changed in place',
      '.sealift',
    )
    .description('make the new ISO from an old one and a delta')
    .argument('<old>', 'ISO that the delta was made from')
    .argument('<delta...>', 'file that "sealift delta" wrote, or its parts in any order')
    .addHelpText(
      'after',
      '\nEvery byte is verified. A delta for another ISO is refused before a byte is written. After an\n' +
        'interruption, run it again to continue. With --in-place, the old ISO may be a block device; it does\n' +
        'not boot until the change is complete.\n' +
        '\nExample:\n  $ sealift apply monday.iso tuesday.delta --output tuesday.iso\n  $ sealift apply /dev/sdX tuesday.delta --in-place',
    )
    .action(async (from: string, deltas: readonly string[], options: ApplyOptions) => {
      const paths = deltas.map((path) => resolve(host.cwd, path));
      const old = resolve(host.cwd, from);
      requireOnePlace(options);
      await requireApplicable(old, paths);
      if (options.output === undefined) return runInPlace(old, paths, { ...options, host });
      return run('apply delta', { options, host, inputs: [old, ...paths] }, (settings) =>
        useDelta(paths, { ...settings, joined: `${settings.output}.joined` }, (delta) =>
          applyDelta({ from: old, delta }, settings),
        ),
      );
    });
}

const addOptions = (command: Command): Command =>
  command
    .addOption(createForceOption())
    .addOption(createWaitOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

const createPartOption = (): Option =>
  new Option(
    '--max-part-size <size>',
    'split the delta into files smaller than this; 4GiB for FAT32',
  ).argParser((text) => {
    const size = parseSize(text) ?? 0;
    if (size > 0) return size;
    throw refuseOption('usage.max-part-size', text, { expected: SIZE_FORM });
  });

const createPartClaim =
  (inputs: readonly string[], { force }: Options) =>
  (path: string): Promise<void> =>
    claimOutput(
      { path, inputs },
      { force, expected: 'a part of a delta', isReplaceable: () => useImage(path, isDelta) },
    );

type Work = (
  settings: Pick<PourOptions, 'output' | 'signal' | 'onProgress'> & LeaseOptions,
) => Promise<DeltaReport & { readonly parts?: readonly string[] }>;

type Call = {
  readonly options: Options | ApplyOptions;
  readonly host: CliHost;
  readonly inputs: readonly string[];
};

async function run(stage: string, { options, host, inputs }: Call, work: Work): Promise<void> {
  const output = resolve(host.cwd, options.output ?? '');
  const { force, logFormat } = options;
  await claimFile({ output, force, inputs, workDir: join(dirname(output), '.sealift') }, isOurs);
  const report = await runWithProgress({ stage, logFormat, host }, (watched) =>
    withLease(`${output}.lock`, { ...watched, wait: options.wait }, () =>
      work({ ...watched, output }),
    ),
  );
  await writeReport({ host, ...options }, { output, ...report }, () =>
    describeWritten(output, report, host),
  );
}

export const describeWritten = (
  output: string,
  {
    size,
    digest,
    carried,
    shared,
    parts = [],
    values = [],
  }: DeltaReport & { readonly parts?: readonly string[] },
  host: CliHost,
): Report =>
  describeWhole(formatPath(output, host), size, [
    ['sha256', say`${hexOf(digest)}`],
    [
      'bytes',
      say`${formatSize(carried)} of the new ISO are new, ${formatSize(shared)} are in the old one`,
    ],
    ...rowsOf(
      'kept',
      values.map((value) => say`${value}`),
    ),
    ...rowsOf(
      'part',
      parts.map((part) => say`${formatPath(part, host)}`),
    ),
  ]);

function requireOnePlace({ output, inPlace }: InPlaceChoice): void {
  if (inPlace === (output === undefined)) return;
  throw new UsageError('usage.in-place', 'the new ISO needs one place', {
    expected: '--output or --in-place',
    found: inPlace ? 'both' : 'neither',
  });
}

type InPlaceOptions = InPlaceChoice & {
  readonly wait: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

async function runInPlace(
  path: string,
  deltas: readonly string[],
  { host, ...options }: InPlaceOptions & { readonly host: CliHost },
): Promise<void> {
  const { logFormat, workDir, wait } = options;
  const place = await placeInPlace(path, resolve(host.cwd, workDir));
  const describeLeft = (): string | undefined =>
    existsSync(`${place.aside}.journal`)
      ? sayAgain(`${formatPath(path, host)} is partly changed and may not boot until then`)
      : undefined;
  const stage = { stage: 'apply delta', logFormat, host, describeLeft };
  const report = await runWithProgress(stage, (watched) =>
    useDelta(deltas, { ...watched, wait, joined: `${place.aside}.joined` }, (delta) =>
      applyInPlace({ from: path, delta }, { ...watched, wait, ...place }),
    ),
  );
  const { size, digest, carried, written, saved, values } = report;
  await writeReport({ host, ...options }, { output: path, ...report }, () =>
    describeWhole(path, size, [
      ...rowsOf('sha256', digest === undefined ? [] : [say`${hexOf(digest)}`]),
      [
        'bytes',
        say`${formatSize(carried)} in the delta, ${formatSize(written)} written, ${formatSize(saved)} saved meanwhile`,
      ],
      ...rowsOf(
        'kept',
        values.map((value) => say`${value}`),
      ),
    ]),
  );
}

/** Works with a delta, which is joined from its parts if there are several. */
async function useDelta<T>(
  paths: readonly string[],
  { joined, ...options }: JoinOptions & LeaseOptions & { readonly joined: string },
  work: (path: string) => Promise<T>,
): Promise<T> {
  const [first] = paths;
  if (first !== undefined && paths.length === 1 && !(await isPart(first))) return work(first);
  return withLease(`${joined}.lock`, options, async () => {
    try {
      await joinParts(paths, joined, options);
      return await work(joined);
    } finally {
      await rm(joined, { force: true });
    }
  });
}

/** Journal and lock of a file that is changed in place: next to it, or for a device in the work directory. */
export async function placeInPlace(
  path: string,
  workDir: string,
): Promise<{ readonly aside: string; readonly lock: string }> {
  await stat(path).catch((error: unknown) => {
    throw explainReadError(error, path);
  });
  const device = findDevice(path);
  if (!device) return { aside: `${path}.apply`, lock: `${path}.lock` };
  const place = standInFor(device, workDir); // regardless of its name today
  await makeDirectory(dirname(place));
  return { aside: `${place}.apply`, lock: `${place}.lock` };
}
