import { Option } from 'commander';
import { WriteStream } from 'node:tty';
import { formatDuration, formatSize } from '../../base/text/words.ts';
import type { BuildEvent, EventListener, StageReason } from '../../engine/index.ts';
import type { CliHost, RunContinuation } from '../host.ts';
import {
  createStageMeter,
  formatProgress,
  OUTPUT_STAGES,
  type MeasuredProgress,
} from './meters.ts';
import { indentLines, showEvent, showMessage } from './output.ts';
import { drawTasks, formatWaiting } from './tasks.ts';

/*
 * This file owns what a run shows of its events: lines, JSON, or a drawing; and the sentence of an
 * interruption: how much is there, and that the same command continues.
 */

export type LogFormat = 'auto' | 'plain' | 'json';

/** View of a run: `listener` is for the engine, `close` is called when the run ends in any way. */
export type ProgressView = { readonly listener: EventListener; close: () => void };

/** Creates `--log-format`: `auto` draws on a terminal outside CI and writes plain lines elsewhere. */
export const createLogFormatOption = (): Option =>
  new Option('--log-format <format>', 'how progress is shown on stderr')
    .choices(['auto', 'plain', 'json'])
    .default('auto');

/** Least interval between lines of progress for a stage, so that a CI log stays readable. */
const PLAIN_INTERVAL_MS = 15_000;

/** Least interval between JSON events of progress for a stage. */
const JSON_INTERVAL_MS = 1000;

/** Shows events on stderr in a format, and records them in the log of the run. */
export function createProgress(host: CliHost, format: LogFormat): ProgressView {
  const { log, continuation } = host;
  const view = chooseView(host, format);
  const isDue = createThrottle(host, JSON_INTERVAL_MS);
  return {
    ...view,
    listener: (event) => {
      continuation?.listener(event);
      const isRecorded = isDue(event);
      view.listener(event);
      if (isRecorded) log?.record(event);
    },
  };
}

function chooseView(host: CliHost, format: LogFormat): ProgressView {
  const level = host.log?.level() ?? 'normal';
  const close = (): void => undefined;
  if (level === 'quiet') return { listener: close, close };
  const isVerbose = level === 'verbose';
  if (format === 'json') return { listener: writeJsonLines(host, isVerbose), close };
  const isWanted = format === 'auto' && !isVerbose && mayDraw(host);
  if (isWanted && host.stderr instanceof WriteStream) return drawTasks(host.stderr, host);
  return { listener: writePlainLines(host, isVerbose), close };
}

const mayDraw = ({ isTTY, env }: CliHost): boolean => isTTY && !env['CI'] && env['TERM'] !== 'dumb';

function writeJsonLines(host: CliHost, isVerbose: boolean): EventListener {
  const isDue = createThrottle(host, JSON_INTERVAL_MS);
  return (event) => {
    if (!isDue(event) || (event.type === 'http-request' && !isVerbose)) return;
    showEvent(host, { time: new Date(host.now()).toISOString(), ...event });
  };
}

function writePlainLines(host: CliHost, isVerbose: boolean): EventListener {
  const meters = new Map<string, ReturnType<typeof createStageMeter>>();
  const isDue = createThrottle(host, PLAIN_INTERVAL_MS);
  return (event) => {
    const show = (line: string): void => {
      showMessage(host, `${indentLines(line, host.redaction)}\n`);
    };
    const detail = isVerbose ? formatDetail(event) : undefined;
    if (detail !== undefined) {
      show(detail);
      return;
    }
    // There may be many per second; what they wait for is reported once a minute.
    if (event.type === 'retry' || event.type === 'http-request') return;
    const line = formatPlainLine(event, () => {
      if (event.type !== 'stage-progress') return undefined;
      const meter = meters.get(event.stage) ?? createStageMeter();
      meters.set(event.stage, meter);
      meter.add(event, host.now());
      return isDue(event) ? meter.read(host.now()) : undefined;
    });
    if (line !== undefined) show(line);
  };
}

function formatDetail(event: BuildEvent): string | undefined {
  const { type } = event;
  if (type === 'stage-started' && event.reason) {
    return `${event.stage}: started: ${REASONS[event.reason]}`;
  }
  if (type === 'stage-reused') {
    return `${event.stage}: reused: its inputs and the program are those of its last result`;
  }
  if (type === 'retry') {
    return `${event.host} is asked again in ${formatDuration(event.waitMs)}: ${event.reason}`;
  }
  if (type !== 'http-request') return undefined;
  return `${event.method} ${event.url}: ${event.problem ?? event.status ?? 'no answer'}`;
}

const REASONS: Readonly<Record<StageReason, string>> = {
  'never-reused': 'it runs in every build',
  'first-run': 'it has no earlier result',
  'inputs-changed': 'its inputs or the program have changed',
  'result-unusable': 'what its earlier result names is gone or has changed',
};

/** @param measure returns undefined when no line of progress is due */
function formatPlainLine(
  event: Exclude<BuildEvent, { type: 'retry' | 'http-request' }>,
  measure: () => MeasuredProgress | undefined,
): string | undefined {
  switch (event.type) {
    case 'stage-started':
      return `${event.stage}: started`;
    case 'stage-reused':
      return `${event.stage}: unchanged, reused`;
    case 'stage-done':
      return `${event.stage}: done in ${formatDuration(event.milliseconds)}`;
    case 'stage-failed':
      return `${event.stage}: failed: ${event.message}`;
    case 'retry-waiting':
    case 'retry-over':
      return formatWaiting(event);
    case 'warning':
      return `warning: ${event.message}`;
    case 'stage-progress':
      return formatStageProgress(event, measure());
  }
}

const formatStageProgress = (
  event: Extract<BuildEvent, { type: 'stage-progress' }>,
  measured: MeasuredProgress | undefined,
): string | undefined => measured && `${event.stage}: ${formatProgress(measured)}`;

/** Creates a function that is true for all events, but for events of progress only when they are due. */
function createThrottle(host: CliHost, interval: number): (event: BuildEvent) => boolean {
  const last = new Map<string, number>();
  return (event) => {
    if (event.type !== 'stage-progress') return true;
    const { stage } = event;
    const now = host.now();
    if (now - (last.get(stage) ?? -Infinity) < interval) return false;
    last.set(stage, now);
    return true;
  };
}

const AGAIN = 'run the same command to continue';

/** The hint of commands that keep no part of what they wrote. */
export const BEGIN_AGAIN = 'what was written is not kept; run the same command to begin again';

export function createContinuation(): RunContinuation {
  let left: (() => string | undefined) | undefined;
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
