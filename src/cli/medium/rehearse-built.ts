import { Option } from 'commander';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../base/digest.ts';
import { readFileIfPresent } from '../../base/disk/files.ts';
import { SealiftError } from '../../base/errors.ts';
import { readProgramDigest } from '../../base/program.ts';
import {
  createStageStore,
  fingerprintOf,
  type StageEntry,
  type StageStore,
} from '../../engine/index.ts';
import { findUnitJudge } from '../../ignition/index.ts';
import { rehearse, type RehearseOptions } from '../../media/rehearse/rehearse.ts';
import { PARTS, type RehearsedStep } from '../../media/rehearse/step.ts';
import { namesBeside, type IsoPlace } from '../../outputs/place.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { decode, ifFaultless } from '../../shape/decode.ts';
import { COUNT, list, oneOf, optional, record, TEXT, type TypeOf } from '../../shape/shape.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { runWithProgress, useWatched } from '../named-media.ts';
import type { LogFormat } from '../terminal/progress.ts';
import { formatDay, refuseFailing } from './rehearse.ts';
import { say, type ReportRow } from '../terminal/report.ts';

/** The verdict on a medium that was built, in numbers of steps, with those that will not happen. */
export type Rehearsed = { readonly rehearsal?: Verdict };

const VERDICT = record({
  will: COUNT,
  unknown: COUNT,
  willNot: list(
    record({
      part: oneOf(...PARTS),
      name: TEXT,
      outcome: oneOf('will-not'),
      reason: optional(TEXT),
      place: optional(TEXT),
    }),
  ),
});

type Verdict = TypeOf<typeof VERDICT>;

type RehearseBuiltOptions = {
  readonly logFormat: LogFormat;
  readonly rehearse?: boolean;
};

export const createRehearseOption = (): Option =>
  new Option('--rehearse', 'fail if hosts could not use the ISO, as "sealift rehearse" finds out');

/** A finished ISO, and its work directory. */
type Finished = Pick<IsoPlace, 'output' | 'workDir'> & { readonly isUpToDate: boolean };

/**
 * Rehearses a finished ISO of this machine, and others if `--rehearse` is given. Without that option, an ISO that
 * cannot be played has no verdict, and one that is up to date keeps the verdict of its day.
 */
export async function rehearseBuilt(
  { output, workDir, isUpToDate }: Finished,
  { logFormat, rehearse: isAsked }: RehearseBuiltOptions,
  host: CliHost,
): Promise<Rehearsed> {
  if (isElsewhere(output) && !isAsked) return {};
  const judged = { unitJudge: await findUnitJudge(host), date: formatDay(host.now()) };
  const entry = await describeVerdict(output, judged);
  const store = createStageStore(join(workDir, 'stages'), workDir);
  const known = isUpToDate && !isAsked ? await readVerdict(store, entry) : undefined;
  if (known) return { rehearsal: known };
  try {
    keepGarbageSmall();
    const value = await runWithProgress({ stage: 'rehearse', logFormat, host }, (watched) =>
      useWatched(output, { ...host, ...watched }, (source) =>
        rehearse(source, { signal: watched.signal, ...judged }),
      ),
    );
    const rehearsal = summarizeSteps(value.steps);
    await store.write(entry, rehearsal);
    return { rehearsal };
  } catch (error) {
    if (isAsked || !(error instanceof SealiftError) || host.signal.aborted) throw error;
    return {};
  }
}

async function readVerdict(store: StageStore, entry: StageEntry): Promise<Verdict | undefined> {
  const found = await store.read(entry);
  return found && ifFaultless(decode(VERDICT, found.result));
}

function summarizeSteps(steps: readonly RehearsedStep[]): Verdict {
  const count = (wanted: RehearsedStep['outcome']): number =>
    steps.filter(({ outcome }) => outcome === wanted).length;
  const willNot = steps.flatMap(({ outcome, ...step }) =>
    outcome === 'will-not' ? [{ ...step, outcome }] : [],
  );
  return { will: count('will'), unknown: count('unknown'), willNot };
}

/** The inputs of a verdict: every build writes a new report next to its ISO. */
async function describeVerdict(
  output: string,
  { unitJudge, date }: Pick<RehearseOptions, 'unitJudge' | 'date'>,
): Promise<StageEntry> {
  const report = await readFileIfPresent(namesBeside(output).report);
  const inputs = { report: report && digestOf(report), date, judge: unitJudge?.name };
  const stage = `rehearse ${hexOf(digestOf(output)).slice(0, 32)}`;
  const program = await readProgramDigest();
  return { stage, fingerprint: fingerprintOf({ stage, program, inputs }) };
}

export function requireRehearsed(
  iso: string,
  { rehearsal }: Rehearsed,
  { rehearse: isAsked = false }: Pick<RehearseBuiltOptions, 'rehearse'>,
): void {
  if (isAsked && rehearsal && rehearsal.willNot.length > 0)
    throw refuseFailing(iso, rehearsal.willNot);
}

export const listRehearsed = ({ rehearsal }: Rehearsed): readonly ReportRow[] =>
  rehearsal
    ? [
        [
          'rehearsal',
          say`${rehearsal.will} steps will happen, ${rehearsal.willNot.length} will not, ${rehearsal.unknown} cannot be known`,
        ],
        ...rehearsal.willNot
          .slice(0, SHOWN)
          .map(({ name, reason = 'no reason' }): ReportRow => [
            '',
            say`will not: ${name}: ${reason}`,
          ]),
      ]
    : [];

/** Most steps that a report of a build shows. */
const SHOWN = 5;
