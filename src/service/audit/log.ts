import { startTimer, type Timer } from '../../base/wait.ts';
import { ApiFailure } from '../openapi.ts';
import type { LedgerHead } from '../state/state.ts';
import { formatAuditLine, type AuditEntry, type AuditTail } from './chain.ts';
import type { AuditFile } from './file.ts';

/* Owns the order of entries: they are chained as they are written, many at a time if many wait. */

export type AuditLog = {
  /** Writes an entry before it resolves. */
  readonly write: (entry: AuditEntry) => Promise<void>;
  /** Writes an entry within a second. */
  readonly add: (entry: AuditEntry) => void;
  /** Rejects while entries cannot be written. */
  readonly requireWritable: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export type AuditLogOptions = {
  readonly file: AuditFile;
  readonly now: () => number;
  /** The present state of the records; undefined before they are open. */
  readonly head: () => LedgerHead | undefined;
  readonly warn: (message: string) => void;
  /** Called with each line that is on the disk. */
  readonly onLine?: (line: string, entry: AuditEntry & { readonly time: string }) => void;
};

type Timed = AuditEntry & { readonly time: string };
type Waiting = { readonly entry: Timed; readonly settle?: (error?: Error) => void };

/** Milliseconds until added entries are written, and until writing is tried again after a failure. */
const BATCH = 500;
const AGAIN = 5000;

/** Entries that wait while the disk takes none; some 600 bytes each. */
const MOST_WAITING = 10_000;

/** Entries written at once. */
const MOST_AT_ONCE = 1000;

export function createAuditLog(options: AuditLogOptions): AuditLog {
  const queue = createQueue(options.now);
  const writer = createWriter(options, queue);
  let timer: Timer | undefined;
  let isClosed = false;
  const plan = (milliseconds: number): void => {
    if (timer || isClosed) return;
    timer = startTimer(milliseconds, () => {
      timer = undefined;
      void flush();
    });
    timer.unref();
  };
  const flush = async (): Promise<void> => {
    await writer.flush();
    if (writer.failure() !== undefined) plan(AGAIN);
    else if (queue.size() > 0) plan(BATCH);
  };
  const requireWritable = async (): Promise<void> => {
    if (writer.failure() === undefined) return;
    await flush();
    if (writer.failure() !== undefined) throw unwritable(writer.failure());
  };
  return {
    async write(entry) {
      await requireWritable();
      const written = queue.addWaiting(entry);
      await Promise.all([flush(), written]).catch((error: unknown) => {
        throw unwritable(error);
      });
    },
    add(entry) {
      queue.add(entry);
      plan(BATCH);
    },
    requireWritable,
    async close() {
      isClosed = true;
      timer?.stop();
      await writer.flush();
      await writer.flush(); // for what came while the first was ending
      if (queue.size() > 0)
        options.warn(`${queue.size()} entries of the audit log were not written`);
      await options.file.close();
    },
  };
}

const unwritable = (cause: unknown): ApiFailure =>
  new ApiFailure(503, 'the audit log cannot be written now, so nothing is changed', cause);

type Queue = ReturnType<typeof createQueue>;

function createQueue(now: () => number) {
  let waiting: Waiting[] = [];
  let lost = 0;
  const timed = (entry: AuditEntry): Timed => ({ ...entry, time: new Date(now()).toISOString() });
  return {
    size: () => waiting.length,
    add(entry: AuditEntry): void {
      if (waiting.length < MOST_WAITING) waiting.push({ entry: timed(entry) });
      else lost += 1;
    },
    addWaiting(entry: AuditEntry): Promise<void> {
      return new Promise((resolve, reject) => {
        const settle = (error?: Error): void => {
          if (error === undefined) resolve();
          else reject(error);
        };
        waiting.push({ entry: timed(entry), settle });
      });
    },
    /** Takes the first entries, with one that counts those that were lost. */
    take(): readonly Waiting[] {
      const taken = waiting.splice(0, MOST_AT_ONCE);
      if (lost === 0) return taken;
      const count = lost;
      lost = 0;
      return [...taken, { entry: timed({ event: 'log.lost', count }) }];
    },
    /** Puts entries back that were not written; those who waited know, and wait no longer. */
    putBack(taken: readonly Waiting[], error: Error): void {
      for (const { settle } of taken) settle?.(error);
      waiting = [...taken.map(({ entry }) => ({ entry })), ...waiting];
    },
  };
}

function createWriter(
  { file, now, head, warn, onLine }: AuditLogOptions,
  queue: Queue,
): { readonly flush: () => Promise<void>; readonly failure: () => unknown } {
  let tail = file.tail;
  let failure: unknown;
  let running: Promise<void> | undefined;
  const report = (found: { readonly expected: number; readonly found: number }): Waiting => {
    warn(`the audit log was changed by others: ${found.found} bytes, not ${found.expected}`);
    return { entry: { event: 'log.changed', ...found, time: new Date(now()).toISOString() } };
  };
  const writeSome = async (taken: readonly Waiting[]): Promise<void> => {
    const changed = await file.follow();
    const all = changed ? [report(changed), ...taken] : taken;
    const lines: { readonly text: string; readonly entry: Timed }[] = [];
    let next: AuditTail = tail;
    for (const { entry } of all) {
      const line = formatAuditLine(next, entry, head());
      lines.push({ text: line.text, entry });
      next = line.tail;
    }
    await file.append(lines.map(({ text }) => text).join(''));
    tail = next;
    for (const { text, entry } of lines) onLine?.(text, entry);
    for (const { settle } of taken) settle?.();
  };
  const run = async (): Promise<void> => {
    while (queue.size() > 0) {
      const taken = queue.take();
      try {
        await writeSome(taken);
        failure = undefined;
      } catch (error) {
        queue.putBack(taken, error instanceof Error ? error : new Error(String(error)));
        if (failure === undefined) warn(`the audit log cannot be written: ${String(error)}`);
        failure = error;
        return;
      }
    }
  };
  return {
    flush() {
      running ??= run().finally(() => {
        running = undefined;
      });
      return running;
    },
    failure: () => failure,
  };
}
