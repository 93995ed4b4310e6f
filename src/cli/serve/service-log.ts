import type { AnsweredRequest } from '../../service/app.ts';
import type { CliHost } from '../host.ts';
import { indentLines, writeEvent, writeMessage } from '../terminal/output.ts';
import type { LogFormat } from '../terminal/progress.ts';
import { isThisMachine } from './listen.ts';

/* Owns the lines that `sealift serve` writes. */

export type ServeLog = {
  readonly serving: (url: string, address: string) => void;
  readonly message: (text: string) => void;
  readonly warn: (text: string) => void;
  readonly event: (event: object) => void;
  readonly answer: (request: AnsweredRequest) => void;
};

type LogOptions = {
  readonly logFormat: LogFormat;
  readonly auth: 'none' | 'local' | 'rhsso';
  readonly tlsCert?: string;
};

/** Errors of the service are always reported, other requests only with `--verbose`. */
export function createServiceLog(
  host: CliHost,
  { logFormat, auth, tlsCert }: LogOptions,
): ServeLog {
  const isJson = logFormat === 'json';
  const write = (event: object): void => {
    writeEvent(host, { time: new Date(host.now()).toISOString(), ...event });
  };
  const warn: ServeLog['warn'] = (message) => {
    if (isJson) write({ type: 'warning', message });
    else writeMessage(host, `warning: ${indentLines(message, host.redaction)}\n`);
  };
  return {
    warn,
    event(event) {
      host.log?.record(event);
    },
    serving(url, address) {
      if (isJson) write({ type: 'serving', url });
      else writeMessage(host, `serving on ${url}; stop with Ctrl-C\n`);
      if (isThisMachine(address)) return;
      if (auth === 'none')
        warn('anyone who reaches it can read and change every record: see --auth');
      if (tlsCert === undefined) warn('traffic is not encrypted: see --tls-cert');
      if (tlsCert !== undefined && url.startsWith('http:'))
        warn(`images at ${url} are not encrypted, and whoever sees a URL can read its image`);
    },
    message(text) {
      if (isJson) write({ type: 'message', message: text });
      else writeMessage(host, `${text}\n`);
    },
    answer({ method, route, status, milliseconds, error }) {
      if (host.log?.level() !== 'verbose' && error === undefined) return;
      const problem = error === undefined ? undefined : host.redaction.mask(describe(error));
      const duration = Math.round(milliseconds);
      if (isJson) write({ type: 'answer', method, route, status, milliseconds: duration, problem });
      else {
        const why = problem === undefined ? '' : `: ${indentLines(problem, host.redaction)}`;
        writeMessage(host, `${method} ${route} ${status} ${duration} ms${why}\n`);
      }
    },
  };
}

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
