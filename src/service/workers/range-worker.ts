import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { isErrno } from '../../base/errors.ts';
import { sleep, startTimer, waitFor } from '../../base/wait.ts';
import type { ServiceServer } from '../door.ts';
import type { FromWorker, ToWorker, WorkerListener, WorkerSettings } from './messages.ts';
import { createRangeWorker, type RangeWorker } from './worker.ts';

/*
 * A worker of `sealift serve`, a process of its own: clients connect to it. It answers ranges of images that it knows, and
 * passes everything else on to the first process, which it asks once for each URL. It has no key, no record and no
 * database, and ends with the first process.
 */

// As in the first process: see src/cli/host.ts.
setFlagsFromString('--heap-growing-percent=30');
setFlagsFromString('--semi-space-growth-factor=1');

// They reach the whole group of processes: the first one says when it is time.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

const send = (message: FromWorker, sent?: () => void): void => {
  process.send?.(message, () => sent?.());
};

/** Milliseconds between two reports, and two looks at files that were replaced. */
const REPORT_EVERY = 100;
const CLOSE_EVERY = 60_000;

/** Milliseconds in which a port may still be that of a service that was killed, and between two attempts. */
const BUSY = 2000;
const TRY_EVERY = 50;

const cutting = new AbortController();
let running: RangeWorker | undefined;

process.on('disconnect', () => process.exit());
// A message to a first process that was killed: the disconnect is noticed next.
cluster.worker?.on('error', () => process.exit());
process.on('message', (message: ToWorker) => {
  if (message.type === 'start') {
    running = createRangeWorker(message.settings);
    void begin(running, message.settings);
  } else if (message.type === 'cut') cutting.abort(new Error('cut'));
  else if (running) take(running, message);
});
send({ type: 'ready' });

async function begin(worker: RangeWorker, { listeners }: WorkerSettings): Promise<void> {
  try {
    for (const [index, listener] of listeners.entries()) {
      const door = worker.doors[index];
      if (door) await listen(door, listener, performance.now() + BUSY);
    }
    send({ type: 'listening' });
    repeat(REPORT_EVERY, () => {
      report(worker);
    });
    repeat(CLOSE_EVERY, worker.closeFiles);
  } catch (error) {
    send({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
}

function take(
  worker: RangeWorker,
  message: Exclude<ToWorker, { readonly type: 'start' | 'cut' }>,
): void {
  if (message.type === 'forget') {
    worker.forget(message.record);
    send({ type: 'forgotten', number: message.number });
  } else if (message.type === 'renew') {
    for (const door of worker.doors) door.renew(message.pair);
  } else if (message.type === 'elsewhere') worker.setElsewhere(message);
  else void drain(worker);
}

function report(worker: RangeWorker): void {
  const made = worker.report();
  if (made) send(made);
}

async function listen(
  { server }: ServiceServer,
  { host, port }: WorkerListener,
  until: number,
): Promise<void> {
  const never = new AbortController().signal;
  for (;;) {
    try {
      await waitFor<undefined>(never, (resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve(undefined);
        });
      });
      return;
    } catch (error) {
      if (!isErrno(error, 'EADDRINUSE') || performance.now() > until) throw error;
      server.removeAllListeners('listening');
    }
    await sleep(TRY_EVERY, never);
  }
}

function repeat(milliseconds: number, act: () => void): void {
  startTimer(milliseconds, () => {
    act();
    repeat(milliseconds, act);
  }).unref();
}

async function drain(worker: RangeWorker): Promise<void> {
  const draining = worker.doors.map((door) => door.drain(cutting.signal));
  await Promise.all(draining).catch(() => undefined);
  report(worker);
  send({ type: 'drained' }, () => {
    process.disconnect();
  });
}
