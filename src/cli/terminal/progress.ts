import { WriteStream } from 'node:tty';
import { Option } from 'commander';
import { formatDuration } from '../../base/text/quantities.ts';
import type { BuildEvent, EventListener } from '../../engine/events.ts';
import type { CliHost } from '../host.ts';
import { indentLines, writeEvent, writeMessage } from './output.ts';
import {
  createRateMeter,
  formatProgress,
  formatWaiting,
  type Rate,
  type RateMeter,
} from './progress-text.ts';
import { drawTasks } from './progress-tasks.ts';

export type LogFormat = 'auto' | 'plain' | 'json';

/** What draws a run: give `listener` to the engine, call `close` when the run has ended either way. */
export type ProgressView = { readonly listener: EventListener; close: () => void };

/** `--log-format`: `auto` draws on a terminal outside CI and writes plain lines elsewhere. */
export const createLogFormatOption = (): Option =>
  new Option('--log-format <format>', 'how progress is shown on stderr')
    .choices(['auto', 'plain', 'json'])
    .default('auto');

/** A line of progress for each stage at most this often, so that a CI log stays readable. */
const PLAIN_INTERVAL_MS = 15_000;

/** One JSON event of progress for each stage at most this often. */
const JSON_INTERVAL_MS = 1000;

/** Draws events; schedules nothing. */
export function createProgress(host: CliHost, format: LogFormat): ProgressView {
  if (format === 'json') return { listener: writeJsonLines(host), close: () => undefined };
  const isWanted =
    format === 'auto' && host.isTTY && !host.env['CI'] && host.env['TERM'] !== 'dumb';
  if (isWanted && host.stderr instanceof WriteStream) return drawTasks(host.stderr, host.now);
  return { listener: writePlainLines(host), close: () => undefined };
}

function writeJsonLines(host: CliHost): EventListener {
  const isDue = createThrottle(host, JSON_INTERVAL_MS);
  return (event) => {
    if (event.type === 'stage-progress' && !isDue(event)) return;
    const time = new Date(host.now()).toISOString();
    writeEvent(host, { time, ...event });
  };
}

function writePlainLines(host: CliHost): EventListener {
  const meters = new Map<string, RateMeter>();
  const isDue = createThrottle(host, PLAIN_INTERVAL_MS);
  return (event) => {
    const line = formatPlainLine(event, () => {
      if (event.type !== 'stage-progress') return undefined;
      const meter = meters.get(event.stage) ?? createRateMeter();
      meters.set(event.stage, meter);
      meter.add({ time: host.now(), bytes: event.bytes });
      return isDue(event) ? { rate: meter.read() } : undefined;
    });
    if (line !== undefined) writeMessage(host, `${indentLines(line)}\n`);
  };
}

/** Of a line of progress that is due; the rate is absent while it is unknown. */
type Measured = { readonly rate: Rate | undefined };

/** @param measure gives undefined when no line of progress is due */
function formatPlainLine(
  event: BuildEvent,
  measure: () => Measured | undefined,
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
    case 'retry':
      return undefined; // there may be many a second; what they wait for is reported once a minute
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
  measured: Measured | undefined,
): string | undefined => measured && `${event.stage}: ${formatProgress({ ...event, ...measured })}`;

function createThrottle(host: CliHost, interval: number): (event: { stage: string }) => boolean {
  const last = new Map<string, number>();
  return ({ stage }) => {
    const now = host.now();
    if (now - (last.get(stage) ?? -Infinity) < interval) return false;
    last.set(stage, now);
    return true;
  };
}
