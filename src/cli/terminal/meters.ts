import { maxOf, withoutUndefined } from '../../base/lists.ts';
import { formatDuration, formatSize } from '../../base/text/words.ts';
import type { BuildEvent } from '../../engine/index.ts';

/* This file owns the rates, times left and shares of what events of progress count. */

type Sample = { readonly time: number; readonly bytes: number };

/** Bytes per second: over the last moments, and over the last minute, which gives the time left. */
export type Rate = { readonly now: number; readonly steady: number };

/** `now` shows a stall at once and a burst soon, while `steady` keeps the time left from jumping. */
export type RateMeter = {
  add: (sample: Sample) => void;
  /** @param time of reading; a source that is silent becomes slower with it */
  read: (time: number) => Rate | undefined;
};

const NOW_MS = 10_000;
const STEADY_MS = 60_000;
/** Least time over which a rate is measured. */
const SHORTEST_MS = 500;
/** Silence that is not yet a sign of a stall: events may come once a second. */
const SILENCE_MS = 3000;

export function createRateMeter(): RateMeter {
  let samples: readonly Sample[] = [];
  const over = (window: number, time: number): number | undefined => {
    const last = samples.at(-1);
    if (!last) return undefined;
    const end = time - last.time > SILENCE_MS ? time : last.time;
    const first = samples.findLast((sample) => sample.time <= end - window) ?? samples[0];
    if (!first || end - first.time < SHORTEST_MS) return undefined;
    return Math.max(0, ((last.bytes - first.bytes) * 1000) / (end - first.time));
  };
  return {
    add(sample) {
      const before = samples.at(-2);
      // The newest of samples that are near to each other is enough.
      const kept = before && sample.time - before.time < 200 ? samples.slice(0, -1) : samples;
      const oldest = kept.findLastIndex(({ time }) => time <= sample.time - STEADY_MS);
      samples = [...kept.slice(Math.max(0, oldest)), sample];
    },
    read(time) {
      const [now, steady] = [over(NOW_MS, time), over(STEADY_MS, time)];
      return now === undefined || steady === undefined ? undefined : { now, steady };
    },
  };
}

/** The counts of a stage, or of a run, and the rates measured for them. */
export type MeasuredProgress = {
  readonly bytes: number;
  readonly total?: number;
  readonly note?: string;
  /** Rate of `bytes`; undefined until it is measured. */
  readonly rate?: Rate;
  /** Present if the network is counted apart from the output. */
  readonly network?: { readonly rate?: Rate };
  /** Milliseconds; undefined while it cannot be estimated. */
  readonly left?: number;
};

type ProgressEvent = Extract<BuildEvent, { type: 'stage-progress' }>;

type StageMeter = {
  readonly add: (event: ProgressEvent, time: number) => void;
  /** @returns undefined before the first event */
  readonly read: (time: number) => MeasuredProgress | undefined;
};

/** Measures one stage: its output and the network have a meter each. */
export function createStageMeter(): StageMeter {
  const [output, network] = [createRateMeter(), createRateMeter()];
  let last: ProgressEvent | undefined;
  return {
    add(event, time) {
      last = event;
      output.add({ time, bytes: event.bytes });
      // The network is measured from its first byte on: copies before it say nothing about it.
      if (event.network && event.network.bytes > 0) {
        network.add({ time, bytes: event.network.bytes });
      }
    },
    read(time) {
      if (!last) return undefined;
      const { bytes, total, note } = last;
      const rate = output.read(time);
      const fetched = last.network && last.network.total > 0 ? last.network : undefined;
      const networkRate = network.read(time);
      const left = longest([
        timeLeft(total, bytes, rate),
        timeLeft(fetched?.total, fetched?.bytes ?? 0, networkRate),
      ]);
      return {
        bytes,
        ...withoutUndefined({ total, note, rate, left }),
        ...(fetched && { network: withoutUndefined({ rate: networkRate }) }),
      };
    },
  };
}

/** Milliseconds until a total is reached; undefined if that is unknown. */
function timeLeft(
  total: number | undefined,
  bytes: number,
  rate: Rate | undefined,
): number | undefined {
  if (total === undefined || rate === undefined || rate.steady < 1) return undefined;
  return (Math.max(0, total - bytes) * 1000) / rate.steady;
}

function longest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : maxOf(known);
}

/** All stages of a run that count bytes, taken together. */
export type RunMeter = StageMeter & {
  readonly finish: (stage: string) => void;
};

type Counted = Pick<ProgressEvent, 'bytes' | 'total' | 'network'>;

/**
 * Creates the meter of a run. The total is known from the moment at which the stage that makes the
 * output knows its own: before that, stages that have not begun are not counted.
 */
export function createRunMeter(): RunMeter {
  const counted = new Map<string, Counted>();
  const running = new Map<string, StageMeter>();
  const whole = createStageMeter();
  const sumUp = (stage: string): ProgressEvent => {
    const all = [...counted.values()];
    const isPlanned = [...counted.keys()].some((name) => OUTPUT_STAGES.has(name));
    const isKnown = isPlanned && all.every(({ total }) => total !== undefined);
    const sum = (sizes: readonly (number | undefined)[]): number =>
      sizes.reduce<number>((all, size = 0) => all + size, 0);
    const networks = all.flatMap(({ network }) => network ?? []);
    return {
      type: 'stage-progress',
      stage,
      bytes: sum(all.map(({ bytes }) => bytes)),
      ...(isKnown && { total: sum(all.map(({ total }) => total)) }),
      ...(networks.length > 0 && {
        network: {
          bytes: sum(networks.map(({ bytes }) => bytes)),
          total: sum(networks.map(({ total }) => total)),
        },
      }),
    };
  };
  return {
    add(event, time) {
      const { stage, bytes, total } = event;
      if (bytes === 0 && total === undefined) return;
      counted.set(stage, event);
      const meter = running.get(stage) ?? createStageMeter();
      running.set(stage, meter);
      meter.add(event, time);
      whole.add(sumUp(stage), time);
    },
    finish(stage) {
      running.delete(stage);
      const { bytes = 0, total = bytes } = counted.get(stage) ?? {};
      if (counted.has(stage)) counted.set(stage, { bytes: total, total });
    },
    read(time) {
      const progress = whole.read(time);
      if (!progress) return undefined;
      const { rate, network } = progress;
      const { total, bytes } = sumUp('');
      // Stages run at the same time; the last to end is the one that has most time left.
      const left = longest([...running.values()].map((meter) => meter.read(time)?.left));
      return {
        bytes,
        ...withoutUndefined({ total, rate, network }),
        ...(total !== undefined && withoutUndefined({ left })),
      };
    },
  };
}

/** Formats `1.2 GiB of 41.3 GiB, 3 %, 512.0 MiB/s, 1 min 20 s left, note`. */
export const formatProgress = (progress: MeasuredProgress): string =>
  listPieces(progress)
    .map(({ text }) => text)
    .join(', ');

/** A piece of a line, and the order in which pieces are left out of a line that is too long; 0: never. */
type Piece = { readonly text: string; readonly drop: number };

function listPieces({ bytes, total, note, ...measured }: MeasuredProgress): readonly Piece[] {
  // A stage that counts something other than bytes puts it in its note.
  const isCounted = bytes > 0 || total !== undefined;
  // A small file is there before any rate is measured.
  const isOver = measured.rate === undefined && bytes === total;
  return [
    ...(isCounted ? [{ text: formatAmount(bytes, total), drop: 2 }] : []),
    ...(total === undefined || total === 0
      ? []
      : [{ text: `${percentOf(bytes, total)} %`, drop: 0 }]),
    ...(isCounted && !isOver ? formatRates(measured).map((text) => ({ text, drop: 0 })) : []),
    ...(note === undefined ? [] : [{ text: note, drop: isCounted ? 1 : 0 }]),
  ];
}

const formatAmount = (bytes: number, total: number | undefined): string =>
  total === undefined
    ? formatSize(bytes)
    : `${formatSize(Math.min(bytes, total))} of ${formatSize(total)}`;

/** Whole percents; a stage that has not ended is never shown as complete. */
const percentOf = (bytes: number, total: number): number =>
  Math.min(99, Math.floor((bytes * 100) / total));

function formatRates({ rate, network, left }: Omit<MeasuredProgress, 'bytes'>): readonly string[] {
  if (rate === undefined) return ['measuring'];
  const isStalled = rate.now < 1 && (network?.rate?.now ?? 0) < 1;
  if (isStalled) return ['stalled'];
  const speed = (one: Rate | undefined): string => `${formatSize(Math.round(one?.now ?? 0))}/s`;
  return [
    ...(network ? [`net ${speed(network.rate)}`, `disk ${speed(rate)}`] : [speed(rate)]),
    ...(left === undefined ? [] : [`${formatDuration(left)} left`]),
  ];
}

const BAR_WIDTH = 12;

/**
 * Formats a line of at most this many columns: `name: [====> ] 1.2 GiB of 41.3 GiB, ...`. If it is too long,
 * the bar, the note and the amount are left out, in this order; rates and time left stay.
 */
export function formatLine(name: string, progress: MeasuredProgress, columns: number): string {
  const pieces = listPieces(progress);
  const lines = [0, 1, 2].map((dropped) =>
    pieces
      .filter(({ drop }) => drop === 0 || drop > dropped)
      .map(({ text }) => text)
      .join(', '),
  );
  const [all = '', ...shorter] = lines.map((line) => `${name}: ${line}`);
  const bar = formatBar(progress);
  const fitting = [...(bar === '' ? [] : [`${name}: ${bar} ${lines[0] ?? ''}`]), all, ...shorter];
  return cutLine(fitting.find((line) => line.length <= columns) ?? fitting.at(-1) ?? '', columns);
}

export const cutLine = (line: string, columns: number): string =>
  line.length <= columns ? line : `${line.slice(0, columns - 3)}...`;

/** The bar; empty while the total is unknown. */
function formatBar({ bytes, total }: MeasuredProgress): string {
  if (total === undefined || total === 0) return '';
  const done = Math.min(BAR_WIDTH - 1, Math.floor((bytes / total) * BAR_WIDTH));
  return `[${`${'='.repeat(done)}>`.padEnd(BAR_WIDTH)}]`;
}

/**
 * Stages that bring bytes or items to the output, and where these are then. Other stages count what
 * is not part of the output.
 */
export const OUTPUT_STAGES: ReadonlyMap<string, string> = new Map([
  ['pour ISO', 'written'],
  ['pour disk image', 'written'],
  ['push ISO', 'in the registry'],
  ['pull ISO', 'written'],
  ['make delta', 'written'],
  ['apply delta', 'written'],
  ['make ISOs', 'made'],
]);
