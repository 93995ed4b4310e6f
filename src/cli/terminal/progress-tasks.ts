import type { WriteStream } from 'node:tty';
import { DefaultRenderer, Listr, ListrLogger, ListrTaskState, ProcessOutput } from 'listr2';
import { formatDuration } from '../../base/text/words.ts';
import type { BuildEvent, EventListener } from '../../engine/engine.ts';
import { indentLines, toMessage } from './output.ts';
import {
  createRateMeter,
  createRunMeter,
  formatBar,
  formatWaiting,
  type RateMeter,
} from './progress-text.ts';

type List = Listr<unknown, typeof DefaultRenderer, typeof DefaultRenderer>;
type Task = List['tasks'][number];
type Row = { readonly task: Task; readonly meter: RateMeter };

/**
 * Stages as lines of a terminal, redrawn in place by listr2's renderer. Its scheduler never runs: a
 * task's state is what the engine's events say; a host that is waited for has a line, too. The first line
 * is for the whole run, once bytes are counted. Warnings are printed at the end, where they can be read.
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
  // The renderer loads parts of itself before it draws; what ends sooner is drawn once, at its end.
  const ready = renderer.render();
  const rows = new Map<string, Row>();
  const messages: string[] = [];
  const rowOf = (stage: string): Row => {
    const known = rows.get(stage);
    if (known) return known;
    list.add({ title: stage, task: () => undefined });
    const task = list.tasks.at(-1);
    if (task === undefined) throw new Error(`no line for stage ${stage}`);
    // A task is drawn from its check on; nothing of it is run.
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
