import { DefaultRenderer, Listr, ListrLogger, ListrTaskState, ProcessOutput } from 'listr2';
import type { WriteStream } from 'node:tty';
import { formatDuration, formatSize } from '../../base/text/words.ts';
import type { BuildEvent, EventListener } from '../../engine/index.ts';
import { indentLines, toMessage } from './output.ts';

/* This file owns the drawing of stages on a terminal, and the rates and bars of their bytes. */

/**
 * Formats `waiting for quay.io, 1 min 00 s of 10 min 00 s: ...`, and the line for when it answers
 * again.
 */
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

/**
 * Bytes per second: over the last moments, and over the last minute, from which the time left is
 * estimated.
 */
export type Rate = { readonly now: number; readonly steady: number };

/**
 * Measures a rate: `now` shows a stall at once and a burst soon, while `steady` keeps the time left
 * from jumping.
 */
export type RateMeter = { add: (sample: Sample) => void; read: () => Rate | undefined };

const NOW_MS = 10_000;
const STEADY_MS = 60_000;

export function createRateMeter(): RateMeter {
  let samples: Sample[] = [];
  const over = (window: number): number | undefined => {
    const last = samples.at(-1);
    if (!last) return undefined;
    const first = samples.find(({ time }) => time >= last.time - window);
    if (!first || last.time - first.time < 500) return undefined;
    return Math.max(0, ((last.bytes - first.bytes) * 1000) / (last.time - first.time));
  };
  return {
    add(sample) {
      const oldest = sample.time - STEADY_MS;
      const isNear = (last: Sample | undefined): boolean =>
        last !== undefined && sample.time - last.time < 200 && samples.length > 1;
      if (isNear(samples.at(-1))) samples.pop();
      samples = [...samples.filter(({ time }) => time >= oldest), sample];
    },
    read() {
      const [now, steady] = [over(NOW_MS), over(STEADY_MS)];
      return now === undefined || steady === undefined ? undefined : { now, steady };
    },
  };
}

export type StageProgress = {
  readonly bytes: number;
  readonly total?: number | undefined;
  readonly note?: string | undefined;
  readonly rate?: Rate | undefined;
};

/** All stages of a run that count bytes, taken together. */
export type RunMeter = {
  readonly add: (event: Extract<BuildEvent, { type: 'stage-progress' }>, time: number) => void;
  /** Counts all bytes of a stage that has ended. */
  readonly finish: (stage: string) => void;
  /**
   * Reads the sum; undefined while no stage counts bytes. The total is known once the totals of
   * all stages are known.
   */
  readonly read: () => StageProgress | undefined;
};

export function createRunMeter(): RunMeter {
  const stages = new Map<string, { readonly bytes: number; readonly total?: number | undefined }>();
  const meter = createRateMeter();
  const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
  const countBytes = (): number => sum([...stages.values()].map(({ bytes }) => bytes));
  return {
    add({ stage, bytes, total }, time) {
      if (bytes === 0 && total === undefined) return;
      stages.set(stage, { bytes, total });
      meter.add({ time, bytes: countBytes() });
    },
    finish(stage) {
      const { bytes = 0, total = bytes } = stages.get(stage) ?? {};
      if (stages.has(stage)) stages.set(stage, { bytes: total, total });
    },
    read() {
      if (stages.size === 0) return undefined;
      const totals = [...stages.values()].map(({ total }) => total);
      const known = totals.filter((total) => total !== undefined);
      const total = known.length === totals.length ? sum(known) : undefined;
      return { bytes: countBytes(), total, rate: meter.read() };
    },
  };
}

/** Width that lets the line of a pour fit into 80 columns. */
const BAR_WIDTH = 12;

/** Formats `[====>       ] 1.2 GiB of 41.3 GiB, ...`; without a bar while the total is unknown. */
export function formatBar(progress: StageProgress): string {
  const { bytes, total } = progress;
  const text = formatProgress(progress);
  if (total === undefined || total === 0) return text;
  const done = Math.min(BAR_WIDTH, Math.floor((bytes / total) * BAR_WIDTH));
  const bar = `${'='.repeat(done)}${done < BAR_WIDTH ? '>' : ''}`.padEnd(BAR_WIDTH);
  return `[${bar}] ${text}`;
}

/** Formats `1.2 GiB of 41.3 GiB, 3 %, 512.0 MiB/s, 1 min 20 s left, note`. */
export function formatProgress({ bytes, total, note, rate }: StageProgress): string {
  const share =
    total === undefined || total === 0 ? [] : [`${Math.floor((bytes * 100) / total)} %`];
  const amount = total === undefined ? '' : ` of ${formatSize(total)}`;
  return [
    ...(bytes > 0 || total !== undefined ? [`${formatSize(bytes)}${amount}`] : []),
    ...share,
    // A stage that counts something other than bytes puts it in its note.
    ...(bytes > 0 || total !== undefined ? formatRate(bytes, total, rate) : []),
    ...(note === undefined ? [] : [note]),
  ].join(', ');
}

function formatRate(bytes: number, total?: number, rate?: Rate): readonly string[] {
  if (rate === undefined) return [];
  if (rate.now < 1) return ['stalled'];
  const left =
    total === undefined ? [] : [`${formatDuration(((total - bytes) * 1000) / rate.steady)} left`];
  return [`${formatSize(Math.round(rate.now))}/s`, ...left];
}

type List = Listr<unknown, typeof DefaultRenderer, typeof DefaultRenderer>;
type Task = List['tasks'][number];
type Row = { readonly task: Task; readonly meter: RateMeter };

/**
 * Draws stages as lines of a terminal, redrawn in place by listr2's renderer. Its scheduler never
 * runs: a task's state comes from the engine's events. A host that is waited for has a line, too.
 * The first line is for the whole run, once bytes are counted. Warnings are printed at the end, so
 * that they can be read.
 */
export function drawTasks(
  stream: WriteStream,
  now: () => number,
): { readonly listener: EventListener; close: () => void } {
  const list: List = new Listr([], {
    renderer: DefaultRenderer,
    fallbackRenderer: DefaultRenderer,
    registerSignalListeners: false,
  });
  const logger = new ListrLogger<never>({
    useIcons: true,
    processOutput: new ProcessOutput(stream, stream),
  });
  const renderer = new DefaultRenderer(list.tasks, { logger }, list.events);
  // The renderer loads parts of itself before it draws; a run that ends sooner is drawn once, at
  // its end.
  const ready = renderer.render();
  const rows = new Map<string, Row>();
  const messages: string[] = [];
  const rowOf = (stage: string): Row => {
    const known = rows.get(stage);
    if (known) return known;
    list.add({ title: stage, task: () => undefined });
    const task = list.tasks.at(-1);
    if (task === undefined) throw new Error(`no line for stage ${stage}`);
    // A task is drawn from its check on; no part of it is run.
    void task.check(undefined);
    const row = { task, meter: createRateMeter() };
    rows.set(stage, row);
    return row;
  };
  const whole = followRun(rowOf(WHOLE).task, now);
  return {
    listener: (event) => {
      if (event.type === 'warning')
        messages.push(`warning: ${toMessage(indentLines(event.message))}`);
      else if (event.type === 'retry-waiting' || event.type === 'retry-over') {
        const { task } = rowOf(event.host);
        task.title$ = toMessage(formatWaiting(event));
        const isOver = event.type === 'retry-over';
        task.state$ = isOver ? ListrTaskState.COMPLETED : ListrTaskState.STARTED;
      } else if (event.type !== 'retry' && event.type !== 'http-request') {
        update(rowOf(event.stage), event, now());
        whole.update(event);
      }
    },
    close: () => {
      whole.end();
      void ready.then(() => {
        renderer.end();
        for (const message of messages) stream.write(`${message}\n`);
      });
    },
  };
}

const WHOLE = 'all stages';

/** Draws a run on a line of its own. */
function followRun(
  task: Task,
  now: () => number,
): { update: (event: StageEvent) => void; end: () => void } {
  const meter = createRunMeter();
  const started = now();
  task.state$ = ListrTaskState.STARTED;
  return {
    update(event) {
      if (event.type === 'stage-progress') meter.add(event, now());
      if (event.type === 'stage-done') meter.finish(event.stage);
      if (event.type === 'stage-failed') task.state$ = ListrTaskState.FAILED;
      const progress = meter.read();
      if (progress) task.title$ = `${WHOLE}: ${formatBar(progress)}`;
    },
    end() {
      if (task.hasFailed()) return;
      task.title$ = `${WHOLE}: ${formatDuration(now() - started)}`;
      task.state$ = ListrTaskState.COMPLETED;
    },
  };
}

type StageEvent = Extract<BuildEvent, { stage: string }>;

function update({ task, meter }: Row, event: StageEvent, now: number): void {
  switch (event.type) {
    case 'stage-started':
      task.state$ = ListrTaskState.STARTED;
      break;
    case 'stage-reused':
      task.title$ = `${event.stage}: unchanged, reused`;
      task.state$ = ListrTaskState.COMPLETED;
      break;
    case 'stage-progress':
      meter.add({ time: now, bytes: event.bytes });
      task.title$ = toMessage(`${event.stage}: ${formatBar({ ...event, rate: meter.read() })}`);
      break;
    case 'stage-done':
      task.title$ = `${event.stage}: ${formatDuration(event.milliseconds)}`;
      task.state$ = ListrTaskState.COMPLETED;
      break;
    case 'stage-failed':
      task.title$ = toMessage(`${event.stage}: ${event.message}`);
      task.state$ = ListrTaskState.FAILED;
      break;
  }
}
