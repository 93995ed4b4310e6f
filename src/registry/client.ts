import type { SourceAnswer } from '../base/download/sources.ts';
import { RegistryError, SealiftError } from '../base/errors.ts';
import type { Http } from '../base/http/http.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { BlobSource } from '../base/store/blob-source.ts';
import { createAuth } from './client/auth/auth.ts';
import { createCertsReader, SYSTEM_CERTS_DIRS } from './client/certs.ts';
import { createConnections } from './client/connections.ts';
import {
  fetchManifest,
  fetchReferrers,
  headManifest,
  unknownManifest,
  type Candidate,
} from './client/manifests.ts';
import { createRegistrySource } from './client/registry-source.ts';
import { rememberUnreachable } from './client/reach.ts';
import { createRequester, type Requester } from './client/requester.ts';
import { createStatistics, type HostStatistics } from './client/statistics.ts';
import { createRegistryWriter, type RegistryWriter } from './client/registry-writer.ts';
import { createTokens } from './client/auth/tokens.ts';
import { createTransport } from './client/transport.ts';
import type { CredentialStore } from './client/auth/credentials.ts';
import type { Descriptor } from './descriptor.ts';
import type { StoredManifest } from './manifest.ts';
import { formatReference, type Reference } from './reference.ts';
import { resolveCandidates, type RegistriesConf } from './client/registries-conf.ts';
import { isNotFound, isOutOfReach, joinAnswers } from '../base/download/fill-file.ts';

type RequestOptions = { readonly signal: AbortSignal };

/** A reader of registries. Every method may throw RegistryError, and the signal's reason. */
export type RegistryClient = {
  /**
   * A manifest or index with its bytes untouched, from the first candidate that has it.
   *
   * @throws IntegrityError when its bytes are not those of the digest, or it is malformed
   */
  fetchManifest: (reference: Reference, options: RequestOptions) => Promise<StoredManifest>;
  /** What a reference names now; undefined only where every candidate answers 404. */
  resolveTag: (reference: Reference, options: RequestOptions) => Promise<Descriptor | undefined>;
  /** What is attached to a manifest (by digest); empty where no candidate knows of anything. */
  fetchReferrers: (reference: Reference, options: RequestOptions) => Promise<readonly Descriptor[]>;
  /** Where the blobs of a repository may be had: its mirrors in order, then the origin. */
  sourcesOf: (reference: Reference) => readonly BlobSource[];
  /** By host, in order of first contact. */
  statistics: () => readonly Readonly<HostStatistics>[];
  close: () => Promise<void>;
};

export type WritingClient = RegistryClient & {
  /** What writes to the repository of a reference: at the registry itself, not at its mirrors. */
  writerOf: (reference: Reference) => RegistryWriter;
  /** Where an image may be: at its mirrors in order, then at its origin. */
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
  const candidatesOf = (reference: Reference): readonly Candidate[] =>
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
  const { caBundle, certsDirs = SYSTEM_CERTS_DIRS } = options;
  const certsOf = createCertsReader({ certsDirs, ...withoutUndefined({ caBundle }) });
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
    auth: createAuth(
      options.credentials,
      createTokens({ transport, kindOf: options.http.kindOf, now }),
    ),
    statistics,
    retries: options.http.retries,
    concurrencyPerHost: options.concurrencyPerHost ?? 8,
    now,
  });
}

function listCandidates(reference: Reference, options: RegistryClientOptions): Candidate[] {
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
    `registries.conf blocks ${formatReference(reference)}, and no mirror is for it`,
  );
}

/** Behind its mirrors, unless it is blocked. */
function originOf(reference: Reference, candidates: readonly Candidate[]): Candidate {
  const last = candidates.at(-1);
  if (last) return last;
  throw new Error(`nobody knows where ${formatReference(reference)} is`);
}

type Asked<Result> = { readonly found: Result } | { readonly answers: readonly SourceAnswer[] };

/** What the first candidate that has it gives, or what each of them answered. A bug is thrown. */
async function askInTurn<Result>(
  candidates: readonly Candidate[],
  signal: AbortSignal,
  ask: (candidate: Candidate) => Promise<Result | undefined>,
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

/** "No" of one is believed where the others are out of reach, as origins are offline. */
const isAbsent = (answers: readonly SourceAnswer[]): boolean =>
  answers.some(isNotFound) && answers.every((answer) => isNotFound(answer) || isOutOfReach(answer));
