import { Option, type Command } from 'commander';
import { randomBytes } from 'node:crypto';
import {
  DifferenceError,
  formatNames,
  formatProblem,
  type ImageProblem,
} from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { formatSize } from '../../base/text/words.ts';
import type { Verification } from '../../media/verify-contents.ts';
import type { Sample } from '../../media/verify-extents.ts';
import { verifyIso } from '../../media/verify.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { parseWhole } from '../options.ts';
import { ISO_ARGUMENT, useWatched, runWithProgress } from '../run.ts';
import {
  createOutputOption,
  writeFormatted,
  writeMessage,
  type OutputFormat,
} from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';

type VerifyCliOptions = {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Percentage of the bytes; true: the default. */
  readonly quick?: number | true;
  readonly sampleSeed?: string;
};

/** Registers `sealift verify ISO`: exit code 8 when there is any difference. */
export function registerVerify(program: Command, host: CliHost): void {
  program
    .command('verify')
    .description('check the structure, every byte and every image of an ISO')
    .argument('<iso>', ISO_ARGUMENT)
    .addOption(createQuickOption())
    .option('--sample-seed <text>', 'check the sample of an earlier --quick again')
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nFiles and devices need no network; of an address, every byte is fetched. An ISO that sealift did not\n' +
        'make is checked as far as possible: its structure, and its registry if it has one. For a truncated\n' +
        'ISO, it reports what is lost.\n' +
        'With --quick, structure, directories, index and small files are checked, and a sample of the rest;\n' +
        'the result has the probability with which it would have found damage.\n' +
        `At most ${SHOWN} problems of a kind are printed; -o json has up to 10000.\n` +
        '\nExample:\n  $ sealift verify appliance.iso\n  $ sealift verify /dev/sdX --quick',
    )
    .action(async (iso: string, options: VerifyCliOptions) => {
      const { name, value } = await verify(iso, options, host);
      await writeFormatted({ host, ...options }, value, (value) => formatVerification(name, value));
      if (!value.ok)
        throw differs(name, value, 'build it again with the same command, or copy it again');
    });
}

const verify = (
  iso: string,
  { logFormat, quick, sampleSeed }: Omit<VerifyCliOptions, 'outputFormat'>,
  host: CliHost,
): Promise<{ readonly name: string; readonly value: Verification }> => {
  keepGarbageSmall();
  const sampling = quick !== undefined && {
    share: (quick === true ? QUICK_PERCENT : quick) / 100,
    seed: sampleSeed ?? randomBytes(8).toString('hex'),
  };
  return runWithProgress({ stage: 'verify', logFormat, host }, (watched) =>
    useWatched(iso, { ...host, ...watched }, async (source, name) => ({
      name,
      value: await verifyIso(source, { ...watched, ...(sampling && { quick: sampling }) }),
    })),
  );
};

const QUICK_PERCENT = 10;

const createQuickOption = (): Option =>
  new Option(
    '--quick [percent]',
    `check about this part of the bytes, drawn at random (default: ${QUICK_PERCENT})`,
  ).argParser(parseWhole('usage.quick', [1, 100]));

const differs = (iso: string, { problems }: Verification, hint: string): DifferenceError =>
  new DifferenceError('verify.differences', `${iso} has ${count(problems, 'problem')}`, { hint });

/** Creates `--verify` for every command that builds an ISO. */
export const createVerifyOption = (): Option =>
  new Option('--verify', 'read the finished ISO again and check it as "sealift verify" does');

export type Verified = { readonly verified?: Verification['checked'] };

type VerifyBuiltOptions = Pick<VerifyCliOptions, 'logFormat'> & { readonly verify?: boolean };

/**
 * Verifies a finished ISO if `--verify` is given.
 *
 * @throws DifferenceError `verify.differences`, after its problems are printed
 */
export async function verifyBuilt(
  iso: string,
  options: VerifyBuiltOptions,
  host: CliHost,
): Promise<Verified> {
  if (options.verify !== true) return {};
  const { value } = await verify(iso, options, host);
  if (value.ok) return { verified: value.checked };
  writeMessage(host, formatVerification(iso, value));
  throw differs(iso, value, 'build it again with --rehash and --force');
}

/** Most problems shown of each kind: a medium that was cut off lost thousands of files. */
const SHOWN = 20;

function formatVerification(iso: string, verification: Verification): string {
  const { ok, problems, damagedImages, checked, oddities, sample, customised } = verification;
  const byKind = groupBy(problems, ({ kind }) => kind);
  const what =
    `${count(checked.extents, 'extent')} (${formatSize(checked.bytes)}), ` +
    count(checked.images, 'image');
  return [
    ...[...byKind].flatMap(([kind, found]) => formatKind(kind, found)),
    ...oddities.map((oddity) => `note: ${oddity}`),
    ...(damagedImages.length === 0 ? [] : [`damaged images: ${formatNames(damagedImages)}`]),
    ...(ok && customised ? [`${iso} is customised: it has values of a site`] : []),
    ...(ok && !sample ? [`${iso} is whole: structure, ${what}`] : []),
    ...(sample ? formatSample(iso, sample, { ok, what }) : []),
    '',
  ].join('\n');
}

function formatSample(
  iso: string,
  { seed, bytes, extents, confidence }: Sample,
  { ok, what }: { readonly ok: boolean; readonly what: string },
): readonly string[] {
  return [
    ...(ok ? [`${iso} has no damage in its structure and in ${what}`] : []),
    `sampled out of ${count(extents, 'extent')} (${formatSize(bytes)}), --sample-seed ${seed}`,
    ...confidence.map(
      ({ damaged, scattered, together }) =>
        `if ${damaged * 100} % of the bytes were damaged, this would have found it with a probability of ` +
        `at least ${formatChance(together)}, or ${formatChance(scattered)} if the damage is scattered in ` +
        'single blocks',
    ),
  ];
}

/** Formats a probability as a percentage, rounded down so that it never promises too much. */
const formatChance = (chance: number): string => `${Math.floor(chance * 10_000) / 100} %`;

function formatKind(kind: string, found: readonly ImageProblem[]): readonly string[] {
  const more = found.length - SHOWN;
  return [
    ...found.slice(0, SHOWN).map(formatProblem),
    ...(more > 0 ? [`${kind}: and ${more} more; -o json lists all`] : []),
  ];
}

function count(what: number | readonly unknown[], word: string): string {
  const number = typeof what === 'number' ? what : what.length;
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
