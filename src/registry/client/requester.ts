import { readBodyText } from '../../base/http/body.ts';
import type { HttpRequest } from '../../base/http/http.ts';
import {
  explainNetworkFailure,
  isPassingStatus,
  networkCodeOf,
} from '../../base/http/network-failure.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Budget, Retries } from '../../base/retry.ts';
import { redactUrl } from '../../base/text/redact.ts';
import {
  describeErrors,
  explainAnswer,
  explainRefusal,
  explainStorageRefusal,
  type Challenge,
  type Statistics,
} from './answer.ts';
import type { Access, RegistryAuth } from './auth.ts';
import {
  challengesOf,
  type Connections,
  type Endpoint,
  type Transport,
  type TransportResponse,
} from './transport.ts';

export type Ask = {
  readonly endpoint: Endpoint;
  readonly repository: string;
  /**
   * Path below `/v2/<repository>/`: `blobs/sha256:...`; or the address that the registry gave for an upload.
   */
  readonly path: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Budget of the work that includes this request; default: its own. */
  readonly budget?: Budget;
  /** True if a failure is not retried here: the caller tries again, from an earlier request on. */
  readonly isOnce?: boolean;
  /** Makes the body of each attempt. */
  readonly body?: () => NonNullable<HttpRequest['body']>;
  /** Scopes that a token must allow; default: to pull from the repository. */
  readonly scopes?: readonly string[];
} & Pick<HttpRequest, 'method' | 'headersTimeout'>;

/** Reads an answer; a TransientError or a network error that it throws is retried. */
type Take<Result> = (response: TransportResponse) => Promise<Result>;

/**
 * Sends a request with all that belongs to it: a place among the host's requests (held until the
 * body is closed), the ping, the Authorization, redirects, retries. `take` sees every status but
 * 401, 403 and those that pass (408, 429, 5xx).
 */
export type Requester = <Result>(ask: Ask, take: Take<Result>) => Promise<Result>;

export type RequesterParts = {
  readonly transport: Transport;
  readonly connections: Connections;
  readonly auth: RegistryAuth;
  readonly statistics: Statistics;
  readonly retries: Retries;
  readonly concurrencyPerHost: number;
  readonly now: () => number;
};

export function createRequester(parts: RequesterParts): Requester {
  const limits = new Map<string, HostLimit>();
  const limitOf = (host: string): HostLimit => {
    const limit = limits.get(host) ?? createHostLimit(parts.concurrencyPerHost);
    limits.set(host, limit);
    return limit;
  };
  const exchange = createExchange(parts);
  return (ask, take) => {
    const { host } = ask.endpoint;
    let isAgain = false;
    const attempt = async (budget: Budget) => {
      if (isAgain) parts.statistics.of(host).retries += 1;
      isAgain = true;
      const slot = await budget.uncounted(limitOf(host).acquire(ask.signal));
      try {
        const answer = await exchange(ask);
        await checkStatus(ask, answer, { slot, now: parts.now() });
        return await takeAndHold(answer.response, { slot, take, host, parts });
      } catch (error) {
        slot.release();
        throw explainNetworkFailure(host, error);
      }
    };
    const { retries } = parts;
    if (ask.isOnce) return attempt(ask.budget ?? retries.open(host, ask.signal));
    return retries.run({ ...ask, host }, attempt);
  };
}

type Holding<Result> = {
  readonly slot: Slot;
  readonly take: Take<Result>;
  readonly host: string;
  readonly parts: RequesterParts;
};

async function takeAndHold<Result>(
  response: TransportResponse,
  { slot, take, host, parts }: Holding<Result>,
): Promise<Result> {
  slot.succeed();
  response.body.once('close', () => {
    slot.release();
  });
  response.body.once('error', (error) => {
    // A body that broke off is requested again, unless we ended it.
    if (networkCodeOf(error) !== 'UND_ERR_ABORTED') parts.statistics.of(host).retries += 1;
  });
  try {
    return await take(response);
  } catch (error) {
    response.body.destroy();
    throw error;
  }
}

type Answer = {
  readonly response: TransportResponse;
  readonly access: Access;
  /** `https://quay.io/` */
  readonly base: URL;
};

/** Sends once, and again with another Authorization if a 401 names what is missing. */
function createExchange({ transport, connections, auth }: RequesterParts) {
  /** Challenges of a repository beyond those of the ping, so that it does not refuse each request. */
  const learned = new Map<string, readonly Challenge[]>();
  return async (ask: Ask): Promise<Answer> => {
    const { endpoint, repository, signal, headersTimeout, body } = ask;
    const scopes = ask.scopes ?? [`repository:${repository}:pull`];
    const { base, challenges } = await connections(endpoint, signal);
    const key = `${endpoint.host}/${repository}`;
    const known = learned.get(key) ?? challenges;
    const asked = { endpoint, base, repository, scopes, challenges: known, signal };
    let access = await auth({ ...asked, refused: undefined });
    for (let refusals = 0; ; refusals += 1) {
      const url = new URL(ask.path, new URL(`v2/${repository}/`, base));
      const authorization = url.origin === base.origin ? access.value : undefined;
      const response = await transport({
        endpoint,
        url,
        method: ask.method ?? 'GET',
        headers: { ...ask.headers, ...withoutUndefined({ authorization }) },
        signal,
        ...withoutUndefined({ headersTimeout, body: body?.() }),
      });
      const next = challengesOf(response, base);
      if (!mayHelp(next, refusals)) return { response, access, base };
      learned.set(key, next);
      const refused = access.value;
      access = await auth({ ...asked, challenges: next, refused }).catch((error: unknown) => {
        response.body.destroy();
        throw error;
      });
      if (access.value === refused) return { response, access, base };
      await readBodyText(response.body);
    }
  };
}

/** A token or a password may have expired, or may cover too little. */
function mayHelp(next: readonly Challenge[], refusals: number): boolean {
  if (next.length === 0) return false;
  const isTooNarrow = next.some(({ parameters }) => parameters['error'] === 'insufficient_scope');
  return refusals === 0 || (refusals === 1 && isTooNarrow);
}

async function checkStatus(
  ask: Ask,
  { response, access, base }: Answer,
  { slot, now }: { readonly slot: Slot; readonly now: number },
): Promise<void> {
  const { status, headers } = response;
  if (status === 429 || status === 503) slot.refuse();
  if (status !== 401 && status !== 403 && !isPassingStatus(status)) return;
  const text = await readBodyText(response.body);
  const { endpoint, repository } = ask;
  if (isPassingStatus(status)) {
    const path = ask.path instanceof URL ? redactUrl(ask.path) : `${repository}/${ask.path}`;
    const about = `${ask.method ?? 'GET'} ${path}`;
    throw explainAnswer(endpoint.host, { status, headers, text, about }, now);
  }
  const asked = { host: endpoint.host, repository, isPush: ask.scopes !== undefined };
  if (response.url.origin !== base.origin) {
    throw explainStorageRefusal(asked, response.url.host, status);
  }
  throw explainRefusal(asked, { status, text: describeErrors(text) }, access);
}

/** Permission for one request: `succeed` or `refuse` if the host answered, then `release`. */
export type Slot = {
  /** The host accepted it: the limit grows by one request for every full round. */
  succeed: () => void;
  /** The host is overloaded (429, 503): the limit halves, once for all requests under way together. */
  refuse: () => void;
  /** May be called more than once. */
  release: () => void;
};

export type HostLimit = {
  /** Waits for a place, in order of asking. Rejects with the signal's reason. */
  acquire: (signal: AbortSignal) => Promise<Slot>;
  /** Requests that may be under way at once, at present. */
  readonly width: number;
};

type Waiting = { readonly start: () => void };

/** Additive increase, multiplicative decrease, from 1 to `maximum`, like the rate of TCP (RFC 5681 3.1). */
export function createHostLimit(maximum: number): HostLimit {
  const queue = new Set<Waiting>();
  let width = maximum;
  let active = 0;
  let round = 0;

  const startNext = (): void => {
    for (const waiting of queue) {
      if (active >= Math.max(1, Math.floor(width))) return;
      queue.delete(waiting);
      active += 1;
      waiting.start();
    }
  };
  const createSlot = (): Slot => {
    const startedIn = round;
    let held = true;
    return {
      succeed() {
        width = Math.min(maximum, width + 1 / width);
      },
      refuse() {
        if (startedIn !== round) return;
        round += 1;
        width = Math.max(1, width / 2);
      },
      release() {
        if (!held) return;
        held = false;
        active -= 1;
        startNext();
      },
    };
  };
  return {
    get width() {
      return Math.floor(width);
    },
    async acquire(signal) {
      signal.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const waiting: Waiting = {
          start() {
            signal.removeEventListener('abort', abort);
            resolve();
          },
        };
        const abort = (): void => {
          queue.delete(waiting);
          reject(signal.reason as Error);
        };
        signal.addEventListener('abort', abort, { once: true });
        queue.add(waiting);
        startNext();
      });
      return createSlot();
    },
  };
}
