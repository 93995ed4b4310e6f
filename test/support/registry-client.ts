import { createHttp, type Http } from '../../src/base/http.ts';
import {
  createRegistryClient,
  type RegistryClient,
  type RegistryClientOptions,
} from '../../src/registry/client.ts';
import type { Credential, CredentialStore } from '../../src/registry/client/auth/credentials.ts';

/** A client that never waits and has no proxy; `waits` gathers what it would have waited. */
export function createTestClient(
  options: Partial<RegistryClientOptions> = {},
): RegistryClient & { readonly waits: readonly number[] } {
  const waits: number[] = [];
  const client = createRegistryClient({
    http: createHttp({ env: {} }),
    credentials: [],
    certsDirs: [],
    random: () => 0.5,
    wait: (milliseconds) => {
      waits.push(milliseconds);
      return Promise.resolve();
    },
    ...options,
  });
  return { ...client, waits };
}

/** The real door to HTTP, in a world whose DNS does not know one host. */
export function createHttpWithout(hostname: string): Http {
  const http = createHttp({ env: {} });
  return {
    ...http,
    request: (request) =>
      request.url.hostname === hostname
        ? Promise.reject(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }))
        : http.request(request),
  };
}

export const storeOf = (credentials: Readonly<Record<string, Credential>>): CredentialStore => ({
  find: ({ registry }) => Promise.resolve(credentials[registry]),
});
