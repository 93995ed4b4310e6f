import type { Digest } from '../base/digest.ts';
import type { StageTime } from '../engine/engine.ts';
import type { PourReport } from '../stages/pour/pour-iso.ts';

/** What the report of an ISO says of the run that made it. */
export type MadeIso = PourReport & {
  readonly stages: readonly StageTime[];
  /** Names every byte of the ISO. */
  readonly layout: Digest;
  /** Whether an earlier build had finished the ISO, and nothing was written. */
  readonly isUpToDate: boolean;
};
