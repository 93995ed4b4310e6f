import { ToolError } from '../../base/errors.ts';
import { findUnitFaults, type IgnitionConfig, type UnitJudge } from '../../ignition/index.ts';
import { cannotKnow, type RehearsedPart, type RehearsedStep, will, willNot } from './step.ts';

export type UnitJudging = {
  /** Absent if it is not installed. */
  readonly unitJudge?: UnitJudge | undefined;
  readonly signal: AbortSignal;
};

/** Plays the start of units: their scripts must be there, and systemd must load them. */
export async function rehearseUnits(
  config: IgnitionConfig,
  { part, name }: { readonly part: RehearsedPart; readonly name: string },
  judging: UnitJudging,
): Promise<readonly RehearsedStep[]> {
  const own = findUnitFaults(config);
  const known = new Set(own.map(({ unit }) => unit));
  const { faults, by, problem } = await judge(config, judging);
  const all = [...own, ...faults.filter(({ unit }) => !known.has(unit))];
  if (all.length > 0)
    return all.map(({ unit, problem }) => willNot(part, name, { reason: problem, place: unit }));
  return by === undefined
    ? [cannotKnow(part, name, { reason: `the files of the units are there, but ${problem}` })]
    : [will(part, name, { reason: `${by} loads them` })];
}

async function judge(config: IgnitionConfig, { unitJudge, signal }: UnitJudging) {
  if (!unitJudge) return { faults: [], problem: 'systemd-analyze, which loads them, is not here' };
  try {
    return { faults: await unitJudge.judge(config, signal), by: unitJudge.name };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { faults: [], problem: error.message };
  }
}
