import { Option } from 'commander';
import { SealiftError } from '../../base/errors.ts';
import { toPrintable } from '../../base/text/words.ts';
import { findUnitJudge } from '../../ignition/index.ts';
import { rehearse } from '../../media/rehearse/rehearse.ts';
import type { RehearsedStep } from '../../media/rehearse/step.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { runWithProgress, useWatched } from '../named-media.ts';
import type { LogFormat } from '../terminal/progress.ts';
import { formatDay, refuseFailing } from './rehearse.ts';

/** The verdict on a medium that was built, in numbers of steps, with those that will not happen. */
export type Rehearsed = {
  readonly rehearsal?: {
    readonly will: number;
    readonly unknown: number;
    readonly willNot: readonly RehearsedStep[];
  };
};

type RehearseBuiltOptions = {
  readonly logFormat: LogFormat;
  readonly rehearse?: boolean;
};

/** Creates `--rehearse` for every command that builds an ISO. */
export const createRehearseOption = (): Option =>
  new Option('--rehearse', 'fail if hosts could not use the ISO, as "sealift rehearse" finds out');

/**
 * Rehearses a finished ISO of this machine, and others if `--rehearse` is given. Without that option, an ISO that
 * cannot be played has no verdict.
 */
export async function rehearseBuilt(
  iso: string,
  { logFormat, rehearse: isAsked = false }: RehearseBuiltOptions,
  host: CliHost,
): Promise<Rehearsed> {
  if (isElsewhere(iso) && !isAsked) return {};
  try {
    keepGarbageSmall();
    const value = await runWithProgress({ stage: 'rehearse', logFormat, host }, (watched) =>
      useWatched(iso, { ...host, ...watched }, async (source) => {
        const { signal } = watched;
        const unitJudge = await findUnitJudge({ env: host.env, signal });
        return rehearse(source, { signal, unitJudge, date: formatDay(host.now()) });
      }),
    );
    const of = (wanted: RehearsedStep['outcome']): readonly RehearsedStep[] =>
      value.steps.filter(({ outcome }) => outcome === wanted);
    const [done, unknown] = [of('will').length, of('unknown').length];
    return { rehearsal: { will: done, unknown, willNot: of('will-not') } };
  } catch (error) {
    if (isAsked || !(error instanceof SealiftError) || host.signal.aborted) throw error;
    return {};
  }
}

/** @throws DifferenceError `rehearse.fails` if `--rehearse` was given and a step will not happen */
export function requireRehearsed(
  iso: string,
  { rehearsal }: Rehearsed,
  { rehearse: isAsked = false }: Pick<RehearseBuiltOptions, 'rehearse'>,
): void {
  if (isAsked && rehearsal && rehearsal.willNot.length > 0)
    throw refuseFailing(iso, rehearsal.willNot);
}

/** Formats the verdict as lines of a report. */
export const formatRehearsed = ({ rehearsal }: Rehearsed): readonly string[] =>
  rehearsal
    ? [
        `  rehearsal ${rehearsal.will} steps will happen, ${rehearsal.willNot.length} will not, ${rehearsal.unknown} cannot be known`,
        ...rehearsal.willNot
          .slice(0, SHOWN)
          .map(({ name, reason = 'no reason' }) =>
            toPrintable(`            will not: ${name}: ${reason}`),
          ),
      ]
    : [];

/** Most steps that a report of a build shows. */
const SHOWN = 5;
