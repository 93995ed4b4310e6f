import { RegistryError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Requester } from './requester.ts';

/** Failures of a host, whatever was asked for; with what an error about the next request says. */
const HOST_FAILURES: ReadonlyMap<string, string> = new Map([
  ['registry.unreachable', 'is unreachable'],
  ['registry.unknown-host', 'is not known to DNS'],
  ['registry.certificate', 'is not trusted'],
  ['registry.unavailable', 'is unavailable'],
  ['proxy.unreachable', 'is behind a proxy that is unreachable'],
  ['proxy.unavailable', 'is behind a proxy that does not reach it'],
  ['proxy.unknown-host', 'is behind a proxy that is not known to DNS'],
  ['proxy.unauthorized', 'is behind a proxy that asks for a password'],
  ['proxy.forbidden', 'is forbidden by the proxy'],
]);

/** RFC 9110 15.6: what a gateway says in place of a server that is down. 500 may be about one image. */
const SERVER_IS_DOWN = new Set(['502', '503', '504']);

const isHostFailure = ({ code, found = '' }: SealiftError): boolean =>
  HOST_FAILURES.has(code) && (code !== 'registry.unavailable' || SERVER_IS_DOWN.has(found));

/**
 * A requester that does not ask a host again that failed as a whole, through all retries: two hundred
 * images would wait for it one by one. A host that answered anything else while a request failed has
 * not failed as a whole, and neither has one that answers later after all.
 *
 * @throws RegistryError `registry.not-asked`, whose cause is the failure that was seen
 */
export function rememberUnreachable(requester: Requester): Requester {
  const answers = new Map<string, number>();
  const failures = new Map<string, SealiftError>();
  return async (ask, take) => {
    // One failed attempt is not a host that failed: whoever makes it tries again.
    if (ask.isOnce) return requester(ask, take);
    const { host } = ask.endpoint;
    const countOf = (): number => answers.get(host) ?? 0;
    const addAnswer = (): void => {
      answers.set(host, countOf() + 1);
      failures.delete(host);
    };
    const known = failures.get(host);
    if (known) throw notAsked(host, known);
    const before = countOf();
    try {
      const result = await requester(ask, take);
      addAnswer();
      return result;
    } catch (error) {
      ask.signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      if (!isHostFailure(error)) addAnswer();
      else if (countOf() === before) failures.set(host, error);
      throw error;
    }
  };
}

const notAsked = (host: string, cause: SealiftError): RegistryError =>
  new RegistryError(
    'registry.not-asked',
    `not asked: ${host} ${HOST_FAILURES.get(cause.code) ?? 'failed'}`,
    { cause, ...withoutUndefined({ hint: cause.hint }) },
  );
