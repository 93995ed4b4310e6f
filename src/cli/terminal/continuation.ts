import { formatSize } from '../../base/text/words.ts';
import type { BuildEvent, EventListener } from '../../engine/index.ts';

/*
 * This file owns the sentence of an interruption: how much is there, and that the same command
 * continues. Commands say when that begins and ends; events of progress say how far it is.
 */

/** A sentence about what an interrupted run leaves; undefined if nothing can be continued. */
type DescribeLeft = () => string | undefined;

export type RunContinuation = {
  /**
   * Notes that the same command continues this work if it is interrupted.
   *
   * @param describe default: the amount that events of progress give
   */
  readonly begin: (describe?: DescribeLeft) => void;
  /** Notes that the work is complete. */
  readonly end: () => void;
  readonly listener: EventListener;
  /** The hint for an interruption now. */
  readonly describe: () => string | undefined;
};

/**
 * Stages that bring bytes or items to the output, and where these are then. Other stages count what
 * is not part of the output.
 */
export const OUTPUT_STAGES: ReadonlyMap<string, string> = new Map([
  ['pour ISO', 'written'],
  ['push ISO', 'in the registry'],
  ['pull ISO', 'written'],
  ['make delta', 'written'],
  ['apply delta', 'written'],
  ['make ISOs', 'made'],
]);

const AGAIN = 'run the same command to continue';

/** The hint of commands that keep no part of what they wrote. */
export const BEGIN_AGAIN = 'what was written is not kept; run the same command to begin again';

export function createContinuation(): RunContinuation {
  let left: DescribeLeft | undefined;
  let reached: string | undefined;
  return {
    begin(describe = () => (reached === undefined ? AGAIN : sayAgain(reached))) {
      left = describe;
      reached = undefined;
    },
    end() {
      left = undefined;
    },
    listener(event) {
      reached = describeReached(event) ?? reached;
    },
    describe: () => left?.(),
  };
}

/** `12.3 GiB of 40.1 GiB are written`; undefined for events that do not count what is there. */
function describeReached(event: BuildEvent): string | undefined {
  if (event.type !== 'stage-progress') return undefined;
  const { items, bytes, total } = event;
  const where = OUTPUT_STAGES.get(event.stage);
  if (where === undefined) return undefined;
  if (items) return `${items.done} of ${items.total} ${items.name} are ${where}`;
  return total === undefined
    ? undefined
    : `${formatSize(bytes)} of ${formatSize(total)} are ${where}`;
}

/** Completes the sentence about what is left with the command that continues it. */
export const sayAgain = (left: string): string => `${left}; ${AGAIN}`;
