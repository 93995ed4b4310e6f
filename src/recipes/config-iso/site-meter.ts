import type { SiteTools } from './config-isos-request.ts';

/** Tells how many of the sites are done. */
export type SiteMeter = { readonly advance: () => void; readonly end: () => void };

/** Events need not come oftener than they are drawn. */
const INTERVAL_MS = 100;

/** A stage of the run whose progress is sites, not bytes. */
export function createSiteMeter(stage: string, total: number, tools: SiteTools): SiteMeter {
  const { emit, now } = tools;
  const started = now();
  let done = 0;
  let first: number | undefined;
  let told = started;
  emit({ type: 'stage-started', stage });
  return {
    advance() {
      done++;
      const time = now();
      first ??= time;
      if (time - told < INTERVAL_MS && done < total) return;
      told = time;
      const each = measure({ started, first, time, done });
      const note = `${done} of ${total} sites${formatRest(each, total - done)}`;
      emit({ type: 'stage-progress', stage, bytes: 0, note });
    },
    end: () => {
      emit({ type: 'stage-done', stage, milliseconds: now() - started });
    },
  };
}

type Course = {
  readonly started: number;
  /** When the first site was done. */
  readonly first: number;
  readonly time: number;
  readonly done: number;
};

/**
 * Milliseconds a site. The first one takes as long as all that are made at the same time, so time counts
 * from its end; and nothing is said before as much time again has passed.
 */
function measure({ started, first, time, done }: Course): number | undefined {
  const passed = time - first;
  return done > 1 && passed >= first - started ? passed / (done - 1) : undefined;
}

function formatRest(millisecondsEach: number | undefined, left: number): string {
  const seconds = Math.round(((millisecondsEach ?? 0) * left) / 1000);
  if (seconds < 2) return '';
  return seconds < 120 ? `, ${seconds} s left` : `, ${Math.round(seconds / 60)} min left`;
}
