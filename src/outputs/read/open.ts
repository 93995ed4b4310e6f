import { resolve } from 'node:path';
import { joinAnswers } from '../../base/download/source-answers.ts';
import type { OpenBytes, SourceAnswer } from '../../base/download/sources.ts';
import { RegistryError, SealiftError, UsageError } from '../../base/errors.ts';
import { reportRequests, type HttpRequestEvent } from '../../base/http/report-requests.ts';
import { createHttp } from '../../base/http/http.ts';
import { maxOf, withoutUndefined } from '../../base/lists.ts';
import { type RangeSource, openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { createCachedAccess, createRangeReader, type RangeReader } from '../../base/ranges.ts';
import { createRetries, type RetryEvent } from '../../base/retry.ts';
import { parseS3Address, openS3Source } from '../../base/s3/object.ts';
import { createS3 } from '../../base/s3/s3.ts';
import type { Redaction } from '../../base/text/redact.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import { follow } from '../../base/wait.ts';
import { explainRoots } from '../../keys/index.ts';
import {
  createRegistryClient,
  credentialsFromFiles,
  formatReference,
  loadRegistriesConf,
} from '../../registry/index.ts';
import { fetchArtifact } from '../artifact.ts';
import type { IsoArtifact } from '../artifact/manifest.ts';
import { parseArtifactAddress } from '../place.ts';
import { type OpenedRanges, type SourceTools, type RangeOpener, openWebRanges } from './web.ts';

/** Everything outside the program that opening a source needs. */
export type SourceHost = {
  readonly env: NodeJS.ProcessEnv;
  /** Masks the secrets that are read. */
  readonly redaction: Redaction;
  /** Directory from which relative paths start. */
  readonly cwd: string;
  /** `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  readonly signal: AbortSignal;
  /** Milliseconds to ask again a server that answered before and sends no byte; default ten minutes. */
  readonly retryFor?: number;
  /** Called for requests, and for hosts that are waited for. */
  readonly emit: (event: RetryEvent | HttpRequestEvent) => void;
};

/**
 * Opens bytes that a user names: a file, a block device, or an address with a scheme. Close it.
 *
 * @throws ConfigError `iso.unreadable`; UsageError `source.address`; RegistryError of its server
 */
export async function openSource(text: string, host: SourceHost): Promise<RandomAccess> {
  if (!isElsewhere(text)) return openRandomAccess(resolve(host.cwd, text));
  const { source, readRange, close } = await openElsewhere(text, host);
  return createCachedAccess(source, readRange, close);
}

export const isElsewhere = (text: string): boolean => schemeOf(text) !== undefined;

const schemeOf = (text: string): string | undefined =>
  /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();

/** A source elsewhere, without a cache. */
export type OpenedElsewhere = {
  readonly source: RangeSource;
  readonly readRange: RangeReader;
  readonly close: () => Promise<void>;
};

/**
 * Opens a source like `openSource`, for a caller with its own cache.
 *
 * @throws UsageError `source.address`; RegistryError of its server
 */
export async function openElsewhere(text: string, host: SourceHost): Promise<OpenedElsewhere> {
  const open = OPENERS[schemeOf(text) ?? ''];
  if (!open || !URL.canParse(text)) {
    throw new UsageError('source.address', `${text} is not an address that can be read`, {
      expected: `a path, or an address with ${Object.keys(OPENERS).join('://, ')}://`,
      hint: 'correct the address, or write a path as ./PATH',
    });
  }
  const closing = new AbortController();
  const forget = follow([host.signal], closing);
  const { env, redaction, cwd, containersDir, emit, retryFor } = host;
  const retries = createRetries({ onEvent: emit, ...withoutUndefined({ retryFor }) });
  // A caller who gives up sooner than a request also does so in the middle of a body.
  const patience = withoutUndefined({ bodyTimeout: retryFor === 0 ? undefined : retryFor });
  const http = reportRequests(createHttp({ env, redaction, retries, ...patience }), emit);
  const { signal } = closing;
  const close = async (): Promise<void> => {
    forget();
    closing.abort(new Error(`${text} is closed`));
    await http.close();
  };
  try {
    const tools = { env, cwd, signal, http, ...withoutUndefined({ containersDir }) };
    const opened = await open(text, tools);
    const reading = { signal, host: opened.host };
    const openBudget = (signal: AbortSignal) => retries.open(opened.host, signal);
    const readRange = createRangeReader(opened.source, { ...reading, openBudget });
    return {
      source: opened.source,
      readRange,
      async close() {
        await close();
        await opened.close?.();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const openS3Ranges: RangeOpener = async (text, { env, http, signal }) => {
  const s3 = createS3({ http, env });
  const address = parseS3Address(text);
  return { source: await openS3Source(s3, address, signal), host: await s3.hostOf(signal) };
};

const OPENERS: Readonly<Record<string, RangeOpener>> = {
  http: openWebRanges,
  https: openWebRanges,
  oci: openArtifactRanges,
  s3: openS3Ranges,
};

/** Bytes that no layer has are zeros. Credentials, certificates and mirrors are those of the environment. */
async function openArtifactRanges(text: string, tools: SourceTools): Promise<OpenedRanges> {
  const reference = parseArtifactAddress(text);
  const { http, env, signal } = tools;
  const registriesConf = await loadRegistriesConf(undefined, tools);
  const credentials = [credentialsFromFiles(env, http.redaction)];
  const client = createRegistryClient({ http, registriesConf, credentials, explainRoots });
  const { artifact, manifest } = await fetchArtifact(reference, { client, signal });
  const sources = client.sourcesOf(reference);
  const source: RangeSource = {
    name: `oci://${formatReference(reference)}`,
    size: artifact.size,
    version: manifest,
    open: (range, signal = tools.signal) =>
      Promise.resolve(readRange(artifact, range, { sources, signal })),
  };
  return { source, host: reference.registry };
}

type Range = Parameters<RangeSource['open']>[0];

type Reading = { readonly sources: readonly BlobSource[]; readonly signal: AbortSignal };

/** Reads a range of the ISO. Ends early if a layer breaks off: the reader asks again from there. */
export async function* readRange(
  { parts }: Pick<IsoArtifact, 'parts'>,
  { offset, size }: Range,
  reading: Reading,
): AsyncGenerator<Uint8Array> {
  const end = offset + size;
  let at = offset;
  for (const part of parts) {
    if (part.offset + part.size <= at) continue;
    if (part.offset >= end) break;
    yield* zeros(part.offset - at);
    at = maxOf([at, part.offset]);
    const wanted = { offset: at - part.offset, size: Math.min(end, part.offset + part.size) - at };
    if (!(yield* readPart(part, wanted, reading))) return;
    at += wanted.size;
  }
  yield* zeros(end - at);
}

const ZEROS = new Uint8Array(1 << 16);

function* zeros(size: number): Generator<Uint8Array> {
  for (let left = size; left > 0; left -= ZEROS.length) yield ZEROS.subarray(0, left);
}

/** Returns true if all bytes came, false if the source broke off. */
async function* readPart(
  part: IsoArtifact['parts'][number],
  wanted: Range,
  reading: Reading,
): AsyncGenerator<Uint8Array, boolean> {
  const { body, offset } = await openPart(part, wanted, reading);
  if (offset !== wanted.offset) {
    body.destroy();
    throw new RegistryError(
      'source.no-ranges',
      `the registry does not serve ranges of ${part.digest}`,
      {
        expected: `bytes from ${wanted.offset}`,
        found: `bytes from ${offset}`,
        hint: 'pull the artifact, and name the file',
      },
    );
  }
  let left = wanted.size;
  for await (const piece of body) {
    const bytes = (piece as Uint8Array).subarray(0, left);
    left -= bytes.length;
    yield bytes;
    if (left === 0) return true;
  }
  return false;
}

async function openPart(
  { digest, size: blobSize }: IsoArtifact['parts'][number],
  { offset, size }: Range,
  { sources, signal }: Reading,
): Promise<OpenBytes> {
  const blob = { mediaType: 'application/octet-stream', digest, size: blobSize };
  const answers: SourceAnswer[] = [];
  for (const source of sources) {
    try {
      const opened = await source.open(blob, { offset, size, signal });
      if (opened) return opened;
      const error = new RegistryError('blob.unknown', `${source.name} does not have ${digest}`);
      answers.push({ source: source.name, error });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      answers.push({ source: source.name, error });
    }
  }
  throw joinAnswers(answers);
}
