import { Option, type Command } from 'commander';
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { DifferenceError, UnprovenError, UsageError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import { findPublishedDigest, readGivenDigest } from '../../media/published-digest.ts';
import type { Verification } from '../../media/verify-contents.ts';
import { verifyMedium } from '../../media/verify-disk.ts';
import { type FolderVerification, verifySites } from '../../media/verify-sites.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { parseWhole } from '../options.ts';
import { ISO_ARGUMENT, useWatched, runWithProgress } from '../named-media.ts';
import { createOutputOption, writeMessage, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import {
  countThings,
  describeFolder,
  describeVerification,
  SHOWN_PROBLEMS_OF_KIND,
} from './verify-result.ts';
import { formatReport, writeReport } from '../terminal/report.ts';

type VerifyCliOptions = {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Percentage of the bytes; true: the default. */
  readonly quick?: number | true;
  readonly sampleSeed?: string;
  /** A digest, or a file that names it. */
  readonly sha256?: string;
  /** The same over index and areas. */
  readonly mediumDigest?: string;
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
    .option(
      '--medium-digest <digest>',
      'the digest over index and values that "sealift serve" shows with its URL',
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
        `At most ${SHOWN_PROBLEMS_OF_KIND} problems of a kind are printed; -o json has up to 10000.\n` +
        '\nExample:\n  $ sealift verify appliance.iso\n  $ sealift verify /dev/sdX --quick',
    )
    .action(async (iso: string, options: VerifyCliOptions) => {
      if (await isFolder(resolve(host.cwd, iso))) {
        refuseForFolder(options);
        return verifyFolder(iso, options, host);
      }
      const { name, value } = await verify(iso, options, host);
      await writeReport({ host, ...options }, value, (value) => describeVerification(name, value));
      requireProven(name, value);
    });
}

function refuseForFolder({ quick, sha256, sampleSeed, mediumDigest }: VerifyCliOptions): void {
  if ([quick, sha256, sampleSeed, mediumDigest].every((each) => each === undefined)) return;
  throw new UsageError('usage.folder', 'a folder is verified by its sites.json, and every byte', {
    expected: 'an ISO, or no --quick, --sample-seed, --sha256 and --medium-digest',
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

const verify = async (
  iso: string,
  { logFormat, quick, sampleSeed, sha256, mediumDigest }: Omit<VerifyCliOptions, 'outputFormat'>,
  host: CliHost,
): Promise<{ readonly name: string; readonly value: Verification }> => {
  keepGarbageSmall();
  const path = resolve(host.cwd, iso);
  const readGiven = (text: string): Promise<Digest> =>
    readGivenDigest(text, { iso, path: resolve(host.cwd, text) });
  const findPublished = async (warn: (message: string) => void): Promise<Digest | undefined> =>
    sha256 !== undefined
      ? readGiven(sha256)
      : isElsewhere(iso)
        ? undefined
        : findPublishedDigest(path, warn);
  const sampling = quick !== undefined && {
    share: (quick === true ? QUICK_PERCENT : quick) / 100,
    seed: sampleSeed ?? randomBytes(8).toString('hex'),
  };
  const named = mediumDigest === undefined ? undefined : await readGiven(mediumDigest);
  return runWithProgress({ stage: 'verify', logFormat, host }, (watched) =>
    useWatched(iso, { ...host, ...watched }, async (source, name) => ({
      name,
      value: await verifyMedium(source, {
        ...watched,
        mediumDigest: named,
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
  new DifferenceError('verify.differences', `${iso} has ${countThings(problems, 'problem')}`, {
    hint,
  });

export const createVerifyOption = (): Option =>
  new Option('--verify', 'read the finished ISO again and check it as "sealift verify" does');

export type Verified = { readonly verified?: Verification['checked'] };

type VerifyBuiltOptions = Pick<VerifyCliOptions, 'logFormat'> & { readonly verify?: boolean };

export async function verifyBuilt(
  iso: string,
  options: VerifyBuiltOptions,
  host: CliHost,
): Promise<Verified> {
  if (options.verify !== true) return {};
  const { value } = await verify(iso, options, host);
  if (value.state === 'whole' || value.because === 'area') return { verified: value.checked };
  writeMessage(host, formatReport(describeVerification(iso, value)));
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
  await writeReport({ host, ...options }, verified, () => describeFolder(folder, verified));
  const { damaged } = verified;
  if (damaged.length === 0) return;
  throw new DifferenceError(
    'verify.differences',
    `${folder} has ${countThings(damaged, 'damaged ISO')}`,
    {
      hint: 'make them again with the same "sealift config-iso build"',
    },
  );
}
