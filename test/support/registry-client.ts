import { createRedaction } from '../../src/base/text/redact.ts';
import { RegistryError } from '../../src/base/errors.ts';
import { createHttp, type Http } from '../../src/base/http/http.ts';
import type { RetryEvent } from '../../src/base/retry.ts';
import {
  createRegistryClient,
  type WritingClient,
  type RegistryClientOptions,
} from '../../src/registry/client.ts';
import type { Credential } from '../../src/registry/client/credential-helper.ts';
import type { CredentialStore } from '../../src/registry/client/credentials.ts';
import { createTestRetries } from './test-clock.ts';

/** A client that never waits and has no proxy; `waits` gathers what it would have waited. */
export function createTestClient(
  options: Partial<RegistryClientOptions> = {},
): WritingClient & { readonly waits: readonly number[]; readonly events: readonly RetryEvent[] } {
  const events: RetryEvent[] = [];
  const retries = createTestRetries({ onEvent: (event) => events.push(event) });
  const client = createRegistryClient({
    http: createHttp({ redaction: createRedaction(), env: {}, retries }),
    credentials: [],
    certsDirs: [],
    ...options,
  });
  return { ...client, waits: retries.clock.waits, events };
}

/** The real door to HTTP, in a world whose DNS does not know one host. */
export function createHttpWithout(hostname: string): Http {
  const http = createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() });
  return {
    ...http,
    request: (request) =>
      request.url.hostname === hostname
        ? Promise.reject(
            new RegistryError('registry.unknown-host', `${hostname} is not known to DNS`, {
              cause: Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }),
            }),
          )
        : http.request(request),
  };
}

export const storeOf = (credentials: Readonly<Record<string, Credential>>): CredentialStore => ({
  find: ({ registry }) => Promise.resolve(credentials[registry]),
});
