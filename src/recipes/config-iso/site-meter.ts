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
  let told = started;
  emit({ type: 'stage-started', stage });
  return {
    advance() {
      done++;
      const time = now();
      if (time - told < INTERVAL_MS && done < total) return;
      told = time;
      const note = `${done} of ${total} sites${formatRest((time - started) / done, total - done)}`;
      emit({ type: 'stage-progress', stage, bytes: 0, note });
    },
    end: () => {
      emit({ type: 'stage-done', stage, milliseconds: now() - started });
    },
  };
}

/** Nothing before there is something to go by. */
function formatRest(millisecondsEach: number, left: number): string {
  const seconds = Math.round((millisecondsEach * left) / 1000);
  if (seconds < 2) return '';
  return seconds < 120 ? `, ${seconds} s left` : `, ${Math.round(seconds / 60)} min left`;
}
