import {
  DefaultRenderer,
  Listr,
  ListrEventManager,
  ListrLogger,
  ListrTaskState,
  ProcessOutput,
  Spinner,
} from 'listr2';
import type { WriteStream } from 'node:tty';
import { formatDuration } from '../../base/text/words.ts';
import type { BuildEvent, EventListener } from '../../engine/index.ts';
import {
  createRunMeter,
  createStageMeter,
  cutLine,
  formatLine,
  type MeasuredProgress,
} from './meters.ts';
import type { CliHost } from '../host.ts';
import { indentLines, toMessage } from './output.ts';

/* This file owns the drawing of stages on a terminal. */

/** Formats `waiting for quay.io, 1 min 00 s of 10 min 00 s: ...`, and the line for when it answers again. */
export function formatWaiting(
  event: Extract<BuildEvent, { type: 'retry-waiting' } | { type: 'retry-over' }>,
): string {
  const { host } = event;
  const waited = formatDuration(event.waitedMs);
  return event.type === 'retry-over'
    ? `${host} answers again after ${waited}`
    : `waiting for ${host}, ${waited} of ${formatDuration(event.retryForMs)}: ${event.reason}`;
}

type List = Listr<unknown, typeof DefaultRenderer, typeof DefaultRenderer>;
type Task = List['tasks'][number];

type Row = {
  readonly task: Task;
  /** Reads what the line shows at a time; undefined while it shows a text that stays. */
  measure: ((time: number) => MeasuredProgress | undefined) | undefined;
};

/** Milliseconds between two drawings: events may come hundreds of times a second. */
const REDRAW_MS = 200;

/** Draws at a fixed rate, after the lines were brought up to date. */
class SlowSpinner extends Spinner {
  readonly #refresh: () => void;

  constructor(refresh: () => void) {
    super();
    this.#refresh = refresh;
  }

  override start(draw?: () => void): void {
    super.start(() => {
      this.#refresh();
      draw?.();
    }, REDRAW_MS);
  }
}

/** Columns that listr2 needs beside a title: an icon, a space, and a margin. */
const MARGIN = 4;
/** Widest line: listr2 asks stdout for its width, and stdout need not be the terminal that is drawn on. */
const MOST_COLUMNS = 80;

type Drawing = Pick<CliHost, 'now' | 'redaction'>;

/**
 * Draws stages as lines of a terminal, redrawn in place a few times a second. A host that is waited
 * for has a line, too. The last line is for the whole run, once bytes are counted: if the terminal
 * is too low, the first lines are cut off. Warnings are printed at the end, so that they can be read.
 */
export function drawTasks(
  stream: WriteStream,
  { now, redaction }: Drawing,
): { readonly listener: EventListener; close: () => void } {
  const screen = openScreen(stream, { now, redaction });
  const run = followRun(screen.rowOf(WHOLE), now);
  const follow = followStages(screen.show, now);
  const messages: string[] = [];
  return {
    listener: (event) => {
      if (event.type === 'warning')
        messages.push(`warning: ${toMessage(indentLines(event.message, redaction), redaction)}`);
      else if (event.type === 'retry-waiting' || event.type === 'retry-over') {
        const row = screen.rowOf(event.host);
        screen.show(row, formatWaiting(event));
        const isOver = event.type === 'retry-over';
        row.task.state$ = isOver ? ListrTaskState.COMPLETED : ListrTaskState.STARTED;
      } else if (event.type !== 'retry' && event.type !== 'http-request') {
        follow(screen.rowOf(event.stage), event);
        run.update(event);
      }
    },
    close: () => {
      run.end();
      screen.close(messages);
    },
  };
}

type Screen = {
  /** Finds the line of this name, or adds it above the first one that was added. */
  readonly rowOf: (name: string) => Row;
  /** Shows a text that stays. */
  readonly show: (row: Row, text: string) => void;
  /** Draws for the last time, and prints messages below. */
  readonly close: (messages: readonly string[]) => void;
};

/** Opens listr2's renderer on a terminal. Its scheduler never runs: a task has the state it is given. */
function openScreen(stream: WriteStream, { now, redaction }: Drawing): Screen {
  const list: List = new Listr([], {
    renderer: DefaultRenderer,
    fallbackRenderer: DefaultRenderer,
    registerSignalListeners: false,
  });
  const rows = new Map<string, Row>();
  const columns = (): number => Math.min(stream.columns, MOST_COLUMNS) - MARGIN;
  const refresh = (): void => {
    for (const [name, row] of rows) {
      const progress = row.measure?.(now());
      if (progress) row.task.title$ = toMessage(formatLine(name, progress, columns()), redaction);
    }
  };
  const processOutput = new ProcessOutput(stream, stream);
  const renderer = new DefaultRenderer(
    list.tasks,
    {
      logger: new ListrLogger<never>({ useIcons: true, processOutput }),
      spinner: new SlowSpinner(refresh),
      formatOutput: 'truncate',
    },
    // Events of the list would be drawn at once, hundreds of times a second: the renderer hears none.
    new ListrEventManager(),
  );
  // The renderer loads parts of itself before it draws; a run that ends sooner is drawn once, at its end.
  const ready = renderer.render();
  return {
    rowOf(name) {
      const known = rows.get(name);
      if (known) return known;
      list.add({ title: name, task: () => undefined });
      const task = list.tasks.pop();
      if (task === undefined) throw new Error(`no line for ${name}`);
      list.tasks.splice(-1, 0, task);
      // A task is drawn from its check on; no part of it is run.
      void task.check(undefined);
      const row = { task, measure: undefined };
      rows.set(name, row);
      return row;
    },
    show({ task }, text) {
      task.title$ = cutLine(toMessage(text, redaction).replaceAll('\n', ' '), columns());
    },
    close(messages) {
      refresh();
      void ready.then(() => {
        renderer.end();
        for (const message of messages) stream.write(`${message}\n`);
      });
    },
  };
}

const WHOLE = 'all stages';

function followRun(
  row: Row,
  now: () => number,
): { update: (event: StageEvent) => void; end: () => void } {
  const meter = createRunMeter();
  const started = now();
  const { task } = row;
  task.state$ = ListrTaskState.STARTED;
  row.measure = meter.read;
  return {
    update(event) {
      if (event.type === 'stage-progress') meter.add(event, now());
      if (event.type === 'stage-done') meter.finish(event.stage);
      if (event.type === 'stage-failed') task.state$ = ListrTaskState.FAILED;
    },
    end() {
      if (task.hasFailed()) return;
      row.measure = undefined;
      task.title$ = `${WHOLE}: ${formatDuration(now() - started)}`;
      task.state$ = ListrTaskState.COMPLETED;
    },
  };
}

type StageEvent = Extract<BuildEvent, { stage: string }>;

/** Creates what brings the line of a stage up to date. */
function followStages(
  show: (row: Row, text: string) => void,
  now: () => number,
): (row: Row, event: StageEvent) => void {
  const meters = new Map<string, ReturnType<typeof createStageMeter>>();
  const end = (row: Row, text: string, state: ListrTaskState): void => {
    row.measure = undefined;
    show(row, text);
    row.task.state$ = state;
  };
  return (row, event) => {
    const { stage } = event;
    switch (event.type) {
      case 'stage-started':
        row.task.state$ = ListrTaskState.STARTED;
        break;
      case 'stage-reused':
        end(row, `${stage}: unchanged, reused`, ListrTaskState.COMPLETED);
        break;
      case 'stage-progress': {
        const meter = meters.get(stage) ?? createStageMeter();
        meters.set(stage, meter);
        meter.add(event, now());
        row.measure = meter.read;
        break;
      }
      case 'stage-done':
        end(row, `${stage}: ${formatDuration(event.milliseconds)}`, ListrTaskState.COMPLETED);
        break;
      case 'stage-failed':
        end(row, `${stage}: ${event.message}`, ListrTaskState.FAILED);
        break;
    }
  };
}
