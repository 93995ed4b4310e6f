import { digestOf } from '../base/digest.ts';
import { IntegrityError, RegistryError, SealiftError } from '../base/errors.ts';
import type { Http } from '../base/http.ts';
import type { BlobSource } from './blob-source.ts';
import { createAuth } from './client/auth/auth.ts';
import { createCertsReader, SYSTEM_CERTS_DIRS } from './client/certs.ts';
import { createConnections } from './client/connections.ts';
import {
  fetchManifest,
  headManifest,
  unknownManifest,
  type Candidate,
} from './client/manifests.ts';
import { createRegistrySource } from './client/registry-source.ts';
import { createRequester, type Requester } from './client/requester.ts';
import type { Pacing } from './client/retry.ts';
import { createStatistics, type HostStatistics } from './client/statistics.ts';
import { createTokens } from './client/auth/tokens.ts';
import { createTransport } from './client/transport.ts';
import type { CredentialStore } from './client/auth/credentials.ts';
import type { Descriptor } from './descriptor.ts';
import type { StoredManifest } from './manifest.ts';
import { readBlob } from './read-blob.ts';
import { formatReference, type Reference } from './reference.ts';
import { resolveCandidates, type RegistriesConf } from './registries-conf.ts';

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
  /** Where the blobs of a repository may be had: its mirrors in order, then the origin. */
  sourcesOf: (reference: Reference) => readonly BlobSource[];
  /**
   * A small blob, verified and in memory; `limit` in bytes, default 8 MiB.
   *
   * @throws IntegrityError `blob.too-large`, `blob.digest-mismatch` and those of readBlob
   */
  fetchBlob: (
    reference: Reference,
    blob: Descriptor,
    options: RequestOptions & { readonly limit?: number },
  ) => Promise<Uint8Array>;
  /** By host, in order of first contact. */
  statistics: () => readonly Readonly<HostStatistics>[];
  close: () => Promise<void>;
};

export type RegistryClientOptions = Pacing & {
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

const SMALL_BLOB = 8 * 1024 * 1024;

export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const statistics = createStatistics();
  const requester = createParts(options, statistics);
  const candidatesOf = (reference: Reference): readonly Candidate[] =>
    listCandidates(reference, options);
  const sourcesOf = (reference: Reference): readonly BlobSource[] =>
    candidatesOf(reference).map(({ reference: { registry, repository }, insecure }) =>
      createRegistrySource(requester, { endpoint: { host: registry, insecure }, repository }),
    );
  return {
    async fetchManifest(reference, { signal }) {
      const candidates = candidatesOf(reference);
      const found = await firstOf(candidates, { signal }, (candidate) =>
        fetchManifest(requester, { ...candidate, signal }),
      );
      if (found) return found;
      throw unknownManifest(
        reference,
        candidates.map(({ reference: { registry } }) => registry),
      );
    },
    resolveTag: (reference, { signal }) => {
      const ask = (candidate: Candidate): Promise<Descriptor | undefined> =>
        headManifest(requester, { ...candidate, signal });
      return firstOf(candidatesOf(reference), { signal, isMirrorEnough: true }, ask);
    },
    sourcesOf,
    fetchBlob: (reference, blob, { signal, limit = SMALL_BLOB }) =>
      readSmallBlob(sourcesOf(reference), blob, { ...options, signal, limit }),
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
  const certsOf = createCertsReader({ certsDirs, ...(caBundle !== undefined && { caBundle }) });
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
    auth: createAuth(options.credentials, createTokens(transport, now)),
    statistics,
    pacing: options,
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

type FirstOfOptions = {
  readonly signal: AbortSignal;
  /** Whether "no" of one is believed where the others are out of reach, as origins are offline. */
  readonly isMirrorEnough?: boolean;
};

const OUT_OF_REACH = ['registry.unknown-host', 'registry.unreachable'];

/** The first answer; undefined when nobody has it; an error as soon as one could not tell. */
async function firstOf<Result>(
  candidates: readonly Candidate[],
  { signal, isMirrorEnough = false }: FirstOfOptions,
  ask: (candidate: Candidate) => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const failures: Failure[] = [];
  for (const candidate of candidates) {
    try {
      const found = await ask(candidate);
      if (found !== undefined) return found;
    } catch (error) {
      signal.throwIfAborted();
      failures.push(toFailure(candidate, error));
    }
  }
  const hasAnswer = failures.length < candidates.length;
  if (isMirrorEnough && hasAnswer && failures.every(isOutOfReach)) return undefined;
  const [first, ...others] = failures;
  if (!first) return undefined;
  throw others.length === 0 ? first.error : joinFailures(failures);
}

/** Rethrows what is a bug. */
function toFailure({ reference: { registry } }: Candidate, error: unknown): Failure {
  if (error instanceof SealiftError) return { registry, error };
  throw error;
}

const isOutOfReach = ({ error }: Failure): boolean => OUT_OF_REACH.includes(error.code);

type Failure = { readonly registry: string; readonly error: SealiftError };

function joinFailures(failures: readonly Failure[]): Error {
  const last = failures.at(-1)?.error;
  const list = failures.map(({ registry, error }) => `${registry}: ${error.message}`).join('; ');
  return new RegistryError(
    last?.code ?? 'registry.unreachable',
    `no mirror and no origin answers: ${list}`,
    { cause: last, ...(last?.hint !== undefined && { hint: last.hint }) },
  );
}

type SmallBlobOptions = Pacing & { readonly signal: AbortSignal; readonly limit: number };

/** A source whose bytes are wrong is left out, and the others are asked. */
async function readSmallBlob(
  sources: readonly BlobSource[],
  blob: Descriptor,
  options: SmallBlobOptions,
): Promise<Uint8Array> {
  if (blob.size > options.limit) {
    throw new IntegrityError(
      'blob.too-large',
      `blob ${blob.digest} has ${blob.size} bytes, more than the ${options.limit} it may have here`,
      { expected: `at most ${options.limit}`, found: String(blob.size) },
    );
  }
  const bytes = new Uint8Array(blob.size);
  const used = new Set<BlobSource>();
  for await (const chunk of readBlob(sources, blob, { ...options, offset: 0 })) {
    bytes.set(chunk.bytes, chunk.offset);
    used.add(chunk.source);
  }
  const found = digestOf(bytes);
  if (found === blob.digest) return bytes;
  const others = sources.filter((source) => !used.has(source));
  if (others.length > 0) return readSmallBlob(others, blob, options);
  throw new IntegrityError(
    'blob.digest-mismatch',
    `blob from ${[...used].map(({ name }) => name).join(', ')} should be ${blob.digest}, but is ${found}`,
    { expected: blob.digest, found },
  );
}
