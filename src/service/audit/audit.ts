import type { IncomingMessage } from 'node:http';
import type { ClientAddresses } from '../../base/http/client-address.ts';
import type { ServedEntry } from '../../base/http/serve-bytes.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { startTimer, type Timer } from '../../base/wait.ts';
import type { Identity } from '../auth/identity.ts';
import { ApiFailure } from '../openapi.ts';
import type { AuditEntry } from './chain.ts';
import { createFetches, type FetchedFile, type FetchingClient } from './fetches.ts';
import type { AuditLog } from './log.ts';
import { createRefusals } from './refusals.ts';

/*
 * Owns what goes into the audit log: who changed, issued and fetched what, and who was refused. Tokens, URLs and values
 * of customers do not go into it.
 */

/** A change of a record, or a URL that was given out. */
export type AuditedChange = {
  readonly event:
    | 'cluster.create'
    | 'cluster.delete'
    | 'infra_env.create'
    | 'infra_env.update'
    | 'infra_env.delete'
    | 'url.issue'
    | 'url.revoke'
    | 'url.end';
  readonly id: string;
  readonly revision?: number | undefined;
  readonly version?: string | undefined;
  readonly architecture?: string | undefined;
  readonly cluster?: string | undefined;
  readonly host?: string | undefined;
  /** File of a URL; absent: the image. */
  readonly file?: string | undefined;
};

/** Client of a request, and who it is if it has a token. */
export type Asker = {
  readonly incoming: IncomingMessage;
  readonly identity?: Identity | undefined;
};

export type Audit = {
  readonly isOn: boolean;
  /** Number of lines that did not reach syslog. */
  readonly dropped: () => number;
  /** Refuses a change that could not be noted. */
  readonly requireWritable: () => Promise<void>;
  /** Notes a change before it is answered. */
  readonly note: (asker: Asker, change: AuditedChange) => Promise<void>;
  /** Notes a change that is made by a download, which goes on if it cannot be noted. */
  readonly noteLater: (asker: Asker, change: AuditedChange) => void;
  /** Notes an answer with a file that begins; the result is called at its end. */
  readonly fetch: (file: FetchedFile, client: FetchingClient) => (entry?: ServedEntry) => void;
  readonly clientOf: (asker: Asker) => FetchingClient;
  /** Notes an answered request, if it was refused for who asked. */
  readonly answered: (request: AnsweredAsker) => void;
  readonly close: () => Promise<void>;
};

export type AnsweredAsker = Omit<Asker, 'identity'> & {
  readonly method: string;
  /** Template of its route. */
  readonly route: string;
  readonly status: number;
  readonly error?: unknown;
};

const NOBODY: FetchingClient = { method: '', address: '' };

export const NO_AUDIT: Audit = {
  isOn: false,
  dropped: () => 0,
  requireWritable: () => Promise.resolve(),
  note: () => Promise.resolve(),
  noteLater: () => undefined,
  fetch: () => () => undefined,
  clientOf: () => NOBODY,
  answered: () => undefined,
  close: () => Promise.resolve(),
};

/** Milliseconds between looks at what has ended. */
const SWEEP = 10_000;

export function createAudit(
  log: AuditLog,
  {
    now,
    addresses,
    dropped,
  }: {
    readonly now: () => number;
    readonly addresses: ClientAddresses;
    readonly dropped: () => number;
  },
): Audit {
  const fetches = createFetches({ now, add: log.add });
  const refusals = createRefusals({ now, add: log.add });
  let timer: Timer;
  const sweep = (): void => {
    fetches.sweep();
    refusals.sweep();
    timer = startTimer(SWEEP, sweep);
    timer.unref();
  };
  sweep();
  const clientOf = ({ incoming, identity }: Asker): FetchingClient => ({
    method: incoming.method ?? '',
    address: addresses.clientOf(incoming),
    ...withoutUndefined({ issuer: identity?.issuer, subject: identity?.subject }),
  });
  const describe = (asker: Asker, { event, ...what }: AuditedChange): AuditEntry => {
    const { address, issuer, subject } = clientOf(asker);
    return { event, what, who: { address, issuer, subject, tenant: asker.identity?.tenant } };
  };
  return {
    isOn: true,
    dropped,
    requireWritable: log.requireWritable,
    note: (asker, change) => log.write(describe(asker, change)),
    noteLater(asker, change) {
      log.add(describe(asker, change));
    },
    fetch: fetches.begin,
    clientOf,
    answered({ incoming, method, route, status, error }) {
      if (!isRefusal(status, route)) return;
      // Other reasons quote the request, and a path may have a token.
      const words = status === 401 && error instanceof ApiFailure ? { reason: error.message } : {};
      refusals.refuse({ method, route, status, address: addresses.clientOf(incoming), ...words });
    },
    async close() {
      timer.stop();
      fetches.end();
      refusals.end();
      log.add(STOP);
      await log.close();
    },
  };
}

const STOP: AuditEntry = { event: 'process.stop' };

/** True for refusals of a token, of a foreign page, and of a URL with an image. */
const isRefusal = (status: number, route: string): boolean =>
  status === 401 ||
  status === 403 ||
  ((status === 404 || status === 410) && /^\/(?:i|byid|byapikey|bytoken|images)\//.test(route));
