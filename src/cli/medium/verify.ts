import { Option, type Command } from 'commander';
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  DifferenceError,
  formatNames,
  formatProblem,
  type ImageProblem,
  UnprovenError,
  UsageError,
} from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import type { Digest } from '../../base/digest.ts';
import { formatSize } from '../../base/text/words.ts';
import { formatDeltaName } from '../../media/delta/describe.ts';
import { findPublishedDigest, readGivenDigest } from '../../media/published-digest.ts';
import type { Verification } from '../../media/verify-contents.ts';
import type { Sample } from '../../media/sample-extents.ts';
import { verifyIso } from '../../media/verify.ts';
import { type FolderVerification, verifySites } from '../../media/verify-sites.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { parseWhole } from '../options.ts';
import { ISO_ARGUMENT, useWatched, runWithProgress } from '../named-media.ts';
import {
  createOutputOption,
  writeFormatted,
  writeMessage,
  type OutputFormat,
} from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { BARE } from './customize-result.ts';

type VerifyCliOptions = {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Percentage of the bytes; true: the default. */
  readonly quick?: number | true;
  readonly sampleSeed?: string;
  /** A digest, or a file that names it. */
  readonly sha256?: string;
};

/**
 * Registers `sealift verify ISO`: exit code 8 if the medium is damaged, 10 if nothing could prove it; a
 * folder of configuration ISOs is verified one ISO after another.
 */
export function registerVerify(program: Command, host: CliHost): void {
  program
    .command('verify')
    .description('check the structure, every byte and every image of an ISO, or a delta')
    .argument('<iso>', ISO_ARGUMENT)
    .addOption(createQuickOption())
    .option('--sample-seed <text>', 'check the sample of an earlier --quick again')
    .option(
      '--sha256 <digest|file>',
      'the SHA-256 that the maker of the ISO published, or a file as sha256sum writes it',
    )
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nFiles and devices need no network; of an address, every byte is fetched. The result is one of three:\n' +
        'whole (every byte was compared), damaged (exit code 8), not provable (exit code 10: nothing is wrong,\n' +
        'and the ISO has no proof). Media of sealift carry their proof. For other ISOs, --sha256 or a .sha256\n' +
        'file beside the ISO proves them. A folder of configuration ISOs is checked against its sites.json.\n' +
        'With --quick, structure, directories, index and small files are checked, and a sample of the rest;\n' +
        'the result has the probability with which it would have found damage, and what was not compared.\n' +
        `At most ${SHOWN} problems of a kind are printed; -o json has up to 10000.\n` +
        '\nExample:\n  $ sealift verify appliance.iso\n  $ sealift verify /dev/sdX --quick',
    )
    .action(async (iso: string, options: VerifyCliOptions) => {
      if (await isFolder(resolve(host.cwd, iso))) {
        refuseForFolder(options);
        return verifyFolder(iso, options, host);
      }
      const { name, value } = await verify(iso, options, host);
      await writeFormatted({ host, ...options }, value, (value) => formatVerification(name, value));
      requireProven(name, value);
    });
}

/** @throws UsageError `usage.folder` */
function refuseForFolder({ quick, sha256, sampleSeed }: VerifyCliOptions): void {
  if (quick === undefined && sha256 === undefined && sampleSeed === undefined) return;
  throw new UsageError('usage.folder', 'a folder is verified by its sites.json, and every byte', {
    expected: 'an ISO, or no --quick, --sample-seed and --sha256',
    hint: 'leave the option out, or name one ISO of the folder',
  });
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false, // an address, or reported when it is opened
  );

/** True if nothing but areas is wrong, whose problems say what restores them. */
const isRestorable = ({ problems, areas = [] }: Verification): boolean =>
  problems.every(({ problem }) => areas.some((area) => area.problem === problem));

const RESTORE = 'do what the problem says; the other bytes of the medium are right';
const REPLACE = 'build it again with the same command, or copy it again';

/** @throws DifferenceError `verify.differences`; UnprovenError `verify.not-provable` */
function requireProven(name: string, value: Verification): void {
  if (!value.ok) throw differs(name, value, isRestorable(value) ? RESTORE : REPLACE);
  if (value.because === 'no proof') throw notProvable(name, value);
}

const notProvable = (name: string, { notCompared, wouldProve }: Verification): UnprovenError =>
  new UnprovenError('verify.not-provable', `${name} cannot be proven`, {
    expected: 'every byte compared',
    found: `not compared: ${(notCompared ?? []).join('; ')}`,
    ...(wouldProve !== undefined && { hint: wouldProve }),
  });

const verify = (
  iso: string,
  { logFormat, quick, sampleSeed, sha256 }: Omit<VerifyCliOptions, 'outputFormat'>,
  host: CliHost,
): Promise<{ readonly name: string; readonly value: Verification }> => {
  keepGarbageSmall();
  const path = resolve(host.cwd, iso);
  const findPublished = async (warn: (message: string) => void): Promise<Digest | undefined> =>
    sha256 !== undefined
      ? readGivenDigest(sha256, { iso, path: resolve(host.cwd, sha256) })
      : isElsewhere(iso)
        ? undefined
        : findPublishedDigest(path, warn);
  const sampling = quick !== undefined && {
    share: (quick === true ? QUICK_PERCENT : quick) / 100,
    seed: sampleSeed ?? randomBytes(8).toString('hex'),
  };
  return runWithProgress({ stage: 'verify', logFormat, host }, (watched) =>
    useWatched(iso, { ...host, ...watched }, async (source, name) => ({
      name,
      value: await verifyIso(source, {
        ...watched,
        published: () => findPublished(watched.warn),
        isGiven: sha256 !== undefined,
        ...(sampling && { quick: sampling }),
      }),
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
  if (value.state === 'whole' || value.because === 'area') return { verified: value.checked };
  writeMessage(host, formatVerification(iso, value));
  throw value.ok
    ? notProvable(iso, value)
    : differs(iso, value, 'build it again with --rehash and --force');
}

/** Verifies the configuration ISOs of a run, each by its proof and by the list of the run. */
async function verifyFolder(
  folder: string,
  options: VerifyCliOptions,
  host: CliHost,
): Promise<void> {
  const path = resolve(host.cwd, folder);
  const verified: FolderVerification = await runWithProgress(
    { stage: 'verify', logFormat: options.logFormat, host },
    (watched) => verifySites(path, watched),
  );
  await writeFormatted({ host, ...options }, verified, () => formatFolder(folder, verified));
  const { damaged } = verified;
  if (damaged.length === 0) return;
  throw new DifferenceError(
    'verify.differences',
    `${folder} has ${count(damaged, 'damaged ISO')}`,
    {
      hint: 'make them again with the same "sealift config-iso build"',
    },
  );
}

const formatFolder = (folder: string, { isos, damaged }: FolderVerification): string =>
  [
    ...damaged.slice(0, SHOWN).map(({ iso, problem }) => `${iso}: ${problem}`),
    ...(damaged.length > SHOWN ? [`and ${damaged.length - SHOWN} more; -o json lists all`] : []),
    ...(damaged.length === 0
      ? [`${folder} is whole: every byte of ${count(isos, 'configuration ISO')} was compared`]
      : []),
    '',
  ].join('\n');

/** Most problems shown of each kind: a medium that was cut off lost thousands of files. */
const SHOWN = 20;

function formatVerification(iso: string, verification: Verification): string {
  const { problems, damagedImages, oddities, sample } = verification;
  const { ok, notCompared = [] } = verification;
  const byKind = groupBy(problems, ({ kind }) => kind);
  return [
    ...[...byKind].flatMap(([kind, found]) => formatKind(kind, found)),
    ...oddities.map((oddity) => `note: ${oddity}`),
    ...(damagedImages.length === 0 ? [] : [`damaged images: ${formatNames(damagedImages)}`]),
    ...(ok ? describeValues(iso, verification) : []),
    ...(ok ? notCompared.map((part) => `not compared: ${part}`) : []),
    ...(sample ? formatSample(sample) : []),
    `${iso} is ${formatState(verification)}`,
    '',
  ].join('\n');
}

function formatState({ state, problems, compared, checked, delta }: Verification): string {
  if (state === 'damaged') return `damaged: ${count(problems, 'problem')}`;
  const what = delta
    ? formatDeltaName(delta)
    : `structure, ${count(checked.extents, 'extent')} (${formatSize(checked.bytes)}), ${count(checked.images, 'image')}`;
  return state === 'whole'
    ? `whole: ${what}; every byte was compared`
    : `not provable: ${what}; nothing is wrong in the ${formatSize(compared.bytes)} of ` +
        `${formatSize(compared.of)} that were compared`;
}

function describeValues(
  iso: string,
  { customised, bare, areas = [] }: Verification,
): readonly string[] {
  if (bare === true) return [`${iso} is bare: ${BARE}`];
  if (customised !== true) return [];
  const isDropped = areas.some(({ kind, state }) => kind === 'built' && state === 'bare');
  return isDropped
    ? [`${iso} has no copy of its build: its values may be those of the build or of a site`]
    : [`${iso} is customised: it has other values than the build gave it`];
}

function formatSample({ seed, bytes, extents, confidence }: Sample): readonly string[] {
  return [
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
