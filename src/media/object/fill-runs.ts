import type { Run } from './find-runs.ts';

type Stretch = Run;
type Copied = Extract<Run, { readonly kind: 'copy' }>;

/** A run that parts can be cut from. */
export type FilledRun = Copied | { readonly kind: 'send'; readonly stretches: readonly Stretch[] };

/**
 * Makes every run at least so long, but the last: short ones that could be copied are sent, and what a short
 * one to send lacks is taken from the run behind it.
 */
export function fillRuns(runs: readonly Run[], least: number): readonly FilledRun[] {
  const filled: FilledRun[] = [];
  let open: Stretch[] = [];
  let size = 0;
  const send = (stretch: Stretch): void => {
    open.push(stretch);
    size += stretch.size;
  };
  const close = (): void => {
    if (open.length > 0) filled.push({ kind: 'send', stretches: open });
    open = [];
    size = 0;
  };
  for (const run of runs) {
    const missing = open.length > 0 ? Math.max(0, least - size) : 0;
    if (run.kind === 'send' || run.size - missing < least) {
      send(run);
      continue;
    }
    if (missing > 0) send({ ...run, size: missing });
    close();
    filled.push({
      ...run,
      offset: run.offset + missing,
      from: run.from + missing,
      size: run.size - missing,
    });
  }
  close();
  return filled;
}
