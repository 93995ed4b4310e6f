import type { Digest } from '../base/digest.ts';
import type { StageTime } from '../engine/engine.ts';
import type { PourReport } from '../stages/pour/pour-iso.ts';
import type { BuildTools } from './build-tools.ts';

/** What the report of an ISO says of the run that made it. */
export type MadeIso = PourReport & {
  readonly stages: readonly StageTime[];
  /** Names every byte of the ISO. */
  readonly layout: Digest;
  /** Whether an earlier build had finished the ISO, and nothing was written. */
  readonly isUpToDate: boolean;
};

/** What is reported of an ISO of this size that was there: no byte of it was moved. */
export const describeUntouched = (
  size: number,
  { client }: Pick<BuildTools, 'client'>,
): Pick<PourReport, 'bytes' | 'hosts'> => ({
  bytes: { fetched: 0, copied: 0, reused: size, written: 0, readBack: 0 },
  hosts: client.statistics(),
});
