import { toPrintable } from '../../base/text/printable-text.ts';
import { redact } from '../../base/text/redact.ts';
import type { RequestEntry } from '../../registry/server.ts';
import type { CliHost } from '../host.ts';
import { indentLines, writeEvent, writeMessage } from './output.ts';

/** What a server prints once it is ready. */
type Serving = {
  readonly iso: string;
  readonly url: string;
  readonly example?: string;
  /** Why no example can be given. */
  readonly problem?: string;
};

type ServeLog = {
  readonly serving: (serving: Serving) => void;
  readonly warning: (message: string) => void;
  readonly request: (entry: RequestEntry) => void;
};

/**
 * Lines of a server on standard error. What went wrong on our side is always told, other requests
 * when `verbose` asks for them.
 */
export function createServeLog(
  host: CliHost,
  { isJson, verbose }: { readonly isJson: boolean; readonly verbose: boolean },
): ServeLog {
  const write = (event: object): void => {
    writeEvent(host, { time: new Date(host.now()).toISOString(), ...event });
  };
  return {
    serving(serving) {
      if (isJson) write({ type: 'serving', ...serving });
      else writeMessage(host, formatServing(serving));
    },
    warning(message) {
      if (isJson) write({ type: 'warning', message });
      else writeMessage(host, `warning: ${indentLines(message)}\n`);
    },
    request({ method, url, status, complete, error }) {
      if (!verbose && error === undefined) return;
      const asked = redactPath(url);
      const problem = error === undefined ? undefined : redact(describe(error));
      if (isJson) write({ type: 'request', method, url: asked, status, complete, problem });
      else {
        const end = complete ? '' : ' (broken off)';
        const why = problem === undefined ? '' : `: ${problem}`;
        writeMessage(host, `${method} ${asked} ${status}${end}${why}\n`);
      }
    },
  };
}

const formatServing = ({ iso, url, example, problem }: Serving): string =>
  `serving ${toPrintable(iso)} on ${url}; stop with Ctrl-C\n` +
  (example === undefined ? `note: ${problem ?? 'no example'}\n` : `try: ${example}\n`);

const ORIGIN = 'http://registry';

/** Clients may put a token into the query. */
const redactPath = (url: string): string => redact(`${ORIGIN}${url}`).replace(ORIGIN, '');

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
