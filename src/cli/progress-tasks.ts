import {
  DefaultRenderer,
  Listr,
  ListrLogger,
  ListrTaskState,
  ProcessOutput,
  type ListrDefaultRenderer,
} from 'listr2';
import { redact } from '../base/redact.ts';
import type { BuildEvent, EventListener } from '../engine/events.ts';
import type { CliHost } from './host.ts';
import {
  createRateMeter,
  formatDuration,
  formatProgress,
  type RateMeter,
} from './progress-text.ts';

type List = Listr<unknown, ListrDefaultRenderer>;
type Task = List['tasks'][number];
type Row = { readonly task: Task; readonly meter: RateMeter };

/**
 * Stages as lines of a terminal, redrawn in place by listr2's renderer. Its scheduler never runs: a
 * task's state is what the engine's events say. Warnings and retries are kept for the end, where they
 * can be read.
 */
export function drawTasks(host: CliHost): {
  readonly listener: EventListener;
  close: () => void;
} {
  const list: List = new Listr<unknown, ListrDefaultRenderer>([], {
    registerSignalListeners: false,
  });
  const stream = host.stderr as NodeJS.WriteStream;
  const logger = new ListrLogger({
    useIcons: true,
    processOutput: new ProcessOutput(stream, stream),
  });
  const renderer = new DefaultRenderer(list.tasks, { logger }, list.events);
  const started = renderer.render();
  const rows = new Map<string, Row>();
  const messages: string[] = [];
  const rowOf = (stage: string): Row => {
    const known = rows.get(stage);
    if (known) return known;
    list.add({ title: stage, task: () => undefined });
    const task = list.tasks.at(-1);
    if (task === undefined) throw new Error(`no line for stage ${stage}`);
    const row = { task, meter: createRateMeter() };
    rows.set(stage, row);
    return row;
  };
  return {
    listener: (event) => {
      if (event.type === 'warning') messages.push(`warning: ${redact(event.message)}`);
      else if (event.type !== 'retry') update(rowOf(event.stage), event, host.now());
    },
    close: () => {
      started.then(
        () => {
          renderer.end();
          for (const message of messages) host.stderr.write(`${message}\n`);
        },
        (error: unknown) => {
          throw error;
        },
      );
    },
  };
}

type StageEvent = Exclude<BuildEvent, { type: 'warning' } | { type: 'retry' }>;

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
      task.title$ = `${event.stage}: ${formatProgress({ ...event, rate: meter.read() })}`;
      break;
    case 'stage-done':
      task.title$ = `${event.stage}: ${formatDuration(event.milliseconds)}`;
      task.state$ = ListrTaskState.COMPLETED;
      break;
    case 'stage-failed':
      task.title$ = redact(`${event.stage}: ${event.message}`);
      task.state$ = ListrTaskState.FAILED;
      break;
  }
}
