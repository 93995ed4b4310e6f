import {
  describeHostFailure,
  isNotFound,
  isOutOfReach,
  joinAnswers,
} from '../base/download/source-answers.ts';
import type { SourceAnswer } from '../base/download/sources.ts';
import { RegistryError, SealiftError } from '../base/errors.ts';
import type { Http } from '../base/http/http.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { BlobSource } from '../base/store/blob-source.ts';
import { createStatistics, type HostStatistics } from './client/answer.ts';
import { createRegistryAuth } from './client/auth.ts';
import type { CredentialStore } from './client/credentials.ts';
import { resolveCandidates, type RegistriesConf } from './client/mirrors.ts';
import {
  fetchManifest,
  fetchReferrers,
  headManifest,
  unknownManifest,
  type MirrorCandidate,
  createRegistrySource,
} from './client/repository.ts';
import { type Requester, createRequester } from './client/requester.ts';
import { createTokens } from './client/tokens.ts';
import {
  createCertsReader,
  SYSTEM_CERTS_DIRS,
  type ExplainRoots,
  createConnections,
  createTransport,
} from './client/transport.ts';
import { createRegistryWriter, type RegistryWriter } from './client/writer.ts';
import type { Descriptor, StoredManifest } from './manifest.ts';
import { formatReference, type Reference } from './reference.ts';

type RequestOptions = { readonly signal: AbortSignal };

/** A reader of registries. Every method may throw RegistryError, and the signal's reason. */
export type RegistryClient = {
  /**
   * A manifest or index with its bytes untouched, from the first candidate that has it.
   *
   * @throws IntegrityError when its bytes are not those of the digest, or it is malformed
   */
  fetchManifest: (reference: Reference, options: RequestOptions) => Promise<StoredManifest>;
  /** The descriptor that a reference names now; undefined if no candidate within reach has it. */
  resolveTag: (reference: Reference, options: RequestOptions) => Promise<Descriptor | undefined>;
  /** Descriptors attached to a manifest (by digest); empty if no candidate has any. */
  fetchReferrers: (reference: Reference, options: RequestOptions) => Promise<readonly Descriptor[]>;
  /** Sources of the blobs of a repository: its mirrors in order, then the origin. */
  sourcesOf: (reference: Reference) => readonly BlobSource[];
  /** Statistics by host, in order of first contact. */
  statistics: () => readonly Readonly<HostStatistics>[];
  close: () => Promise<void>;
};

export type WritingClient = RegistryClient & {
  /** The writer of the repository of a reference: at the registry itself, not at its mirrors. */
  writerOf: (reference: Reference) => RegistryWriter;
  /** Places of an image: its mirrors in order, then its origin. */
  placesOf: (reference: Reference) => readonly Reference[];
};

export type RegistryClientOptions = {
  readonly http: Http;
  /** Asked in this order. */
  readonly credentials: readonly CredentialStore[];
  readonly registriesConf?: RegistriesConf;
  /** PEM: trusted besides the system's roots, for every host. */
  readonly caBundle?: string;
  /** Default: /etc/containers/certs.d and /etc/docker/certs.d. */
  readonly certsDirs?: readonly string[];
  /** Explains why a `.crt` file there is not a list of roots, which connections would pass over. */
  readonly explainRoots?: ExplainRoots;
  /** Hosts (with port) whose certificate is not checked and that may speak plain HTTP. */
  readonly insecureRegistries?: readonly string[];
  /** Requests under way at one host, at most; default 8. */
  readonly concurrencyPerHost?: number;
  /** Milliseconds; Date.now by default. */
  readonly now?: () => number;
};

export function createRegistryClient(options: RegistryClientOptions): WritingClient {
  const statistics = createStatistics();
  const requester = rememberUnreachable(createParts(options, statistics));
  const candidatesOf = (reference: Reference): readonly MirrorCandidate[] =>
    listCandidates(reference, options);
  const sourcesOf = (reference: Reference): readonly BlobSource[] =>
    candidatesOf(reference).map(({ reference: { registry, repository }, insecure }) =>
      createRegistrySource(requester, {
        endpoint: { host: registry, insecure },
        repository,
        retries: options.http.retries,
      }),
    );
  return {
    async fetchManifest(reference, { signal }) {
      const asked = await askInTurn(candidatesOf(reference), signal, (candidate) =>
        fetchManifest(requester, { ...candidate, signal }),
      );
      if ('found' in asked) return asked.found;
      throw joinAnswers(asked.answers);
    },
    async resolveTag(reference, { signal }) {
      const asked = await askInTurn(candidatesOf(reference), signal, (candidate) =>
        headManifest(requester, { ...candidate, signal }),
      );
      if ('found' in asked) return asked.found;
      if (isAbsent(asked.answers)) return undefined;
      throw joinAnswers(asked.answers);
    },
    async fetchReferrers(reference, { signal }) {
      const asked = await askInTurn(candidatesOf(reference), signal, (candidate) =>
        fetchReferrers(requester, { ...candidate, signal }),
      );
      if ('found' in asked) return asked.found;
      if (isAbsent(asked.answers)) return [];
      throw joinAnswers(asked.answers);
    },
    sourcesOf,
    placesOf: (reference) => candidatesOf(reference).map((candidate) => candidate.reference),
    writerOf(reference) {
      const origin = originOf(reference, candidatesOf(reference));
      const { registry: host, repository } = origin.reference;
      const endpoint = { host, insecure: origin.insecure };
      return createRegistryWriter(requester, {
        endpoint,
        repository,
        retries: options.http.retries,
      });
    },
    statistics: statistics.list,
    close: () => options.http.close(),
  };
}

function createParts(
  options: RegistryClientOptions,
  statistics: ReturnType<typeof createStatistics>,
): Requester {
  const now = options.now ?? Date.now;
  const { caBundle, certsDirs = SYSTEM_CERTS_DIRS, explainRoots } = options;
  const certsOf = createCertsReader({ certsDirs, ...withoutUndefined({ caBundle, explainRoots }) });
  const send = createTransport(options.http, certsOf);
  const transport: typeof send = (request) => {
    const counts = statistics.of(request.endpoint.host);
    counts.requests += 1;
    return send({
      ...request,
      onBytes(count) {
        counts.bytes += count;
      },
    });
  };
  return createRequester({
    transport,
    connections: createConnections(transport, now),
    auth: createRegistryAuth(
      options.credentials,
      createTokens({ transport, http: options.http, now }),
    ),
    statistics,
    retries: options.http.retries,
    concurrencyPerHost: options.concurrencyPerHost ?? 8,
    now,
  });
}

/**
 * Wraps a requester so that a host that failed as a whole, after all retries, is not asked again: two
 * hundred images would wait for it one by one. An answer of the host while a request was failing, or
 * at any later time, shows that it has not failed as a whole.
 *
 * Throws RegistryError `registry.not-asked`, whose cause is the earlier failure.
 */
function rememberUnreachable(requester: Requester): Requester {
  const answers = new Map<string, number>();
  const failures = new Map<string, SealiftError>();
  return async (ask, take) => {
    const { host } = ask.endpoint;
    const countOf = (): number => answers.get(host) ?? 0;
    const addAnswer = (): void => {
      answers.set(host, countOf() + 1);
      failures.delete(host);
    };
    const known = failures.get(host);
    if (known) throw notAsked(host, known);
    // One failed attempt does not mean that the host failed: the caller tries again.
    if (ask.isOnce) return requester(ask, take);
    const before = countOf();
    try {
      const result = await requester(ask, take);
      addAnswer();
      return result;
    } catch (error) {
      ask.signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      if (describeHostFailure(error) === undefined) addAnswer();
      else if (countOf() === before) failures.set(host, error);
      throw error;
    }
  };
}

const notAsked = (host: string, cause: SealiftError): RegistryError =>
  new RegistryError(
    'registry.not-asked',
    `not asked: ${host} ${describeHostFailure(cause) ?? 'failed'}`,
    { cause, ...withoutUndefined({ hint: cause.hint }) },
  );

function listCandidates(reference: Reference, options: RegistryClientOptions): MirrorCandidate[] {
  const conf = options.registriesConf ?? { registries: [] };
  const candidates = resolveCandidates(conf, reference).map((candidate) => ({
    ...candidate,
    insecure:
      candidate.insecure ||
      (options.insecureRegistries ?? []).includes(candidate.reference.registry),
  }));
  if (candidates.length > 0) return candidates;
  throw new RegistryError(
    'registry.blocked',
    `registries.conf blocks ${formatReference(reference)}, and it has no mirror`,
  );
}

/** The origin is the last candidate, after its mirrors, unless it is blocked. */
function originOf(reference: Reference, candidates: readonly MirrorCandidate[]): MirrorCandidate {
  const last = candidates.at(-1);
  if (last) return last;
  throw new Error(`no candidates for ${formatReference(reference)}`);
}

type Asked<Result> = { readonly found: Result } | { readonly answers: readonly SourceAnswer[] };

/** The result of the first candidate that has one, or the answers of all. A bug is thrown. */
async function askInTurn<Result>(
  candidates: readonly MirrorCandidate[],
  signal: AbortSignal,
  ask: (candidate: MirrorCandidate) => Promise<Result | undefined>,
): Promise<Asked<Result>> {
  const answers: SourceAnswer[] = [];
  for (const candidate of candidates) {
    const source = candidate.reference.registry;
    try {
      const found = await ask(candidate);
      if (found !== undefined) return { found };
      answers.push({ source, error: unknownManifest(candidate.reference) });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      answers.push({ source, error });
    }
  }
  return { answers };
}

/** A 404 is believed if all other candidates are out of reach, as origins are without a network. */
const isAbsent = (answers: readonly SourceAnswer[]): boolean =>
  answers.some(isNotFound) && answers.every((answer) => isNotFound(answer) || isOutOfReach(answer));
