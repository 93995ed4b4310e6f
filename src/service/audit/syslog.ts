import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { runProcess } from '../../base/process.ts';
import { startTimer, type Timer, waitFor, withTimeLimit } from '../../base/wait.ts';
import type { AuditEntry } from './chain.ts';
import type { SyslogTarget } from './syslog-target.ts';

/*
 * Owns the copy of the audit log that is sent elsewhere: RFC 5424 by UDP (RFC 5426), by TCP (RFC 6587, octet counting), or to
 * a socket of this machine by logger(1), because Node.js does not send datagrams to it. No request waits for it.
 */

export type Syslog = {
  /** Sends a line of the log soon. */
  readonly send: (line: string, entry: AuditEntry & { readonly time: string }) => void;
  readonly dropped: () => number;
  readonly close: () => Promise<void>;
};

export type SyslogOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
  /** Called with the number of lines that were dropped, once others are sent again. */
  readonly onLost: (count: number) => void;
};

type Message = { readonly head: string; readonly line: string; readonly level: string };

type Transport = {
  /** Rejects if some were not sent. */
  readonly deliver: (messages: readonly Message[], signal: AbortSignal) => Promise<void>;
  readonly close: () => void;
};

/** Lines that wait; some 700 bytes each. */
const MOST_WAITING = 2000;
const MOST_AT_ONCE = 100;
/** Milliseconds for one delivery, for the last one, and until it is tried again. */
const LIMIT = 5000;
const LAST = 2000;
const AGAIN = 2000;

export function createSyslog(target: SyslogTarget, options: SyslogOptions): Syslog {
  const { warn, onLost } = options;
  const transport = createTransport(target, options);
  let waiting: Message[] = [];
  let running: Promise<void> | undefined;
  let timer: Timer | undefined;
  let dropped = 0;
  let told = 0;
  let isFailing = false;
  const deliver = async (limit: number): Promise<void> => {
    while (waiting.length > 0) {
      const taken = waiting.slice(0, MOST_AT_ONCE);
      await withTimeLimit(limit, new AbortController().signal, (signal) =>
        transport.deliver(taken, signal),
      );
      waiting = waiting.slice(taken.length);
      isFailing = false;
      if (told < dropped) onLost(dropped - told);
      told = dropped;
    }
  };
  const run = (): void => {
    timer?.stop();
    timer = undefined;
    running ??= deliver(LIMIT)
      .catch((error: unknown) => {
        if (!isFailing) warn(`the audit log does not reach syslog: ${String(error)}`);
        isFailing = true;
        timer = startTimer(AGAIN, run);
        timer.unref();
      })
      .finally(() => {
        running = undefined;
      });
  };
  return {
    send(line, entry) {
      if (waiting.length < MOST_WAITING) waiting.push(toMessage(line, entry));
      else dropped += 1;
      if (!timer) run();
    },
    dropped: () => dropped,
    async close() {
      await running;
      timer?.stop();
      await deliver(LAST).catch(() => undefined);
      if (waiting.length > 0) warn(`${waiting.length} lines of the audit log did not reach syslog`);
      transport.close();
    },
  };
}

/** RFC 5424 6.2.1: log audit. */
const FACILITY = 13 * 8;
const LEVELS = { info: 6, warning: 4 } as const;
/** Entries that a person may want to look at. */
const WARNINGS = /^(?:request\.refuse|records\.(?:refuse|restore)|log\.|syslog\.)/;

function toMessage(line: string, { event, time }: AuditEntry & { readonly time: string }): Message {
  const level = WARNINGS.test(event) ? 'warning' : 'info';
  const host =
    hostname()
      .replaceAll(/[^!-~]/g, '')
      .slice(0, 255) || '-';
  const priority = FACILITY + LEVELS[level];
  const head = `<${priority}>1 ${time} ${host} sealift ${process.pid} ${event} - `;
  return { head, line: line.trimEnd(), level };
}

function createTransport(target: SyslogTarget, { env }: SyslogOptions): Transport {
  if (target.kind === 'unix') return createLogger(target.path, env);
  return target.kind === 'udp' ? createDatagrams(target) : createStream(target);
}

function createDatagrams({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Transport {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  socket.unref();
  socket.on('error', () => undefined); // the callback of the message has it, too
  return {
    async deliver(messages, signal) {
      for (const { head, line } of messages) {
        await waitFor<undefined>(signal, (resolve, reject) => {
          socket.send(head + line, port, host, (error) => {
            if (error) reject(error);
            else resolve(undefined);
          });
        });
      }
    },
    close() {
      socket.close();
    },
  };
}

function createStream({ host, port }: { readonly host: string; readonly port: number }): Transport {
  let socket: Socket | undefined;
  const open = async (signal: AbortSignal): Promise<Socket> => {
    const opened = connect({ host, port });
    opened.unref();
    const forget = (): void => {
      if (socket === opened) socket = undefined;
      opened.destroy();
    };
    opened.on('close', forget);
    opened.on('end', forget);
    opened.resume(); // nothing is said on this connection; its end is noticed
    try {
      await waitFor<undefined>(signal, (resolve, reject) => {
        opened.once('error', reject);
        opened.once('connect', () => {
          resolve(undefined);
        });
      });
    } catch (error) {
      opened.destroy();
      throw error;
    }
    opened.on('error', () => undefined); // its end is noticed
    return opened;
  };
  return {
    async deliver(messages, signal) {
      const used = (socket ??= await open(signal));
      const bytes = messages.map(({ head, line }) => frame(head + line)).join('');
      await waitFor<undefined>(signal, (resolve, reject) => {
        used.write(bytes, (error) => {
          if (error) reject(error);
          else resolve(undefined);
        });
      });
    },
    close() {
      socket?.end();
    },
  };
}

const frame = (message: string): string => `${Buffer.byteLength(message)} ${message}`;

/** Sends lines by logger(1), which makes their heads. */
function createLogger(path: string, { PATH = '' }: NodeJS.ProcessEnv): Transport {
  return {
    async deliver(messages, signal) {
      for (const level of ['info', 'warning']) {
        const lines = messages.filter((message) => message.level === level);
        if (lines.length === 0) continue;
        const about = ['--socket', path, '--tag', 'sealift', '--id', '--size', '32KiB'];
        await runProcess('logger', [...about, '--priority', `authpriv.${level}`], {
          env: { PATH },
          input: lines.map(({ line }) => `${line}\n`).join(''),
          signal,
        });
      }
    },
    close: () => undefined,
  };
}
