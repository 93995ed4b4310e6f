import { formatDuration } from '../../base/duration.ts';
import { formatSize } from '../../base/format-size.ts';
import type { BuildEvent } from '../../engine/events.ts';

/** `waiting for quay.io, 1 min 00 s of 10 min 00 s: ...`, and when it answers again. */
export function formatWaiting(
  event: Extract<BuildEvent, { type: 'retry-waiting' } | { type: 'retry-over' }>,
): string {
  const { host } = event;
  const waited = formatDuration(event.waitedMs);
  return event.type === 'retry-over'
    ? `${host} answers again after ${waited}`
    : `waiting for ${host}, ${waited} of ${formatDuration(event.retryForMs)}: ${event.reason}`;
}

type Sample = { readonly time: number; readonly bytes: number };

/** Bytes a second over the last moments: a build that stalls says so, and a burst soon counts. */
export type RateMeter = { add: (sample: Sample) => void; read: () => number | undefined };

const WINDOW_MS = 10_000;

export function createRateMeter(): RateMeter {
  let samples: Sample[] = [];
  return {
    add(sample) {
      const oldest = sample.time - WINDOW_MS;
      const isNear = (last: Sample | undefined): boolean =>
        last !== undefined && sample.time - last.time < 200 && samples.length > 1;
      if (isNear(samples.at(-1))) samples.pop();
      samples = [...samples.filter(({ time }) => time >= oldest), sample];
    },
    read() {
      const [first] = samples;
      const last = samples.at(-1);
      if (!first || !last || last.time - first.time < 500) return undefined;
      return Math.max(0, ((last.bytes - first.bytes) * 1000) / (last.time - first.time));
    },
  };
}

export type StageProgress = {
  readonly bytes: number;
  readonly total?: number | undefined;
  readonly note?: string | undefined;
  /** Bytes a second. */
  readonly rate?: number | undefined;
};

/** `1.2 GiB of 41.3 GiB, 3 %, 512.0 MiB/s, 1 min 20 s left, note`. */
export function formatProgress({ bytes, total, note, rate }: StageProgress): string {
  const share =
    total === undefined || total === 0 ? [] : [`${Math.floor((bytes * 100) / total)} %`];
  const amount = total === undefined ? '' : ` of ${formatSize(total)}`;
  return [
    ...(bytes > 0 || total !== undefined ? [`${formatSize(bytes)}${amount}`] : []),
    ...share,
    // A stage that counts something else than bytes says so in its note.
    ...(bytes > 0 || total !== undefined ? formatRate(bytes, total, rate) : []),
    ...(note === undefined ? [] : [note]),
  ].join(', ');
}

function formatRate(bytes: number, total?: number, rate?: number): readonly string[] {
  if (rate === undefined) return [];
  if (rate < 1) return ['stalled'];
  const left =
    total === undefined ? [] : [`${formatDuration(((total - bytes) * 1000) / rate)} left`];
  return [`${formatSize(Math.round(rate))}/s`, ...left];
}
