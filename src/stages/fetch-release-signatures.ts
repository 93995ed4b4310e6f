import { inflateRawSync } from 'node:zlib';
import { hexOf, type Digest } from '../base/digest.ts';
import { RegistryError, SealiftError } from '../base/errors.ts';
import type { Http, HttpResponse, TlsOptions } from '../base/http.ts';
import type { Stage, StageContext } from '../engine/stage.ts';
import { explainNetworkFailure } from '../base/network-failure.ts';
import { fetchPublic } from '../openshift/files/http-get.ts';
import { digestOfRelease, type Release } from '../openshift/release/release-payload.ts';
import { formatReference } from '../registry/reference.ts';

export type FetchReleaseSignaturesInput = {
  readonly release: Release;
  /** OCP_SIGNATURE_URL: a store for releases of others than Red Hat. */
  readonly store?: string;
};

export type FetchReleaseSignaturesTools = { readonly http: Http; readonly tls?: TlsOptions };

type Tools = FetchReleaseSignaturesTools & StageContext;

/** Where Red Hat has the signatures of its releases. */
const RED_HAT_STORE = 'https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release/';
const RED_HAT_RELEASES = 'quay.io/openshift-release-dev/';

/** What consumers of the store read, too. */
const MAX_SIGNATURES = 9;
const MAX_SIZE = 50 * 1024;
const TIMEOUT_MS = 30_000;

/**
 * The signatures of a release image out of a signature store (`sha256=<hex>/signature-<n>`), base64.
 * Whoever cannot be asked, or gives what does not speak of this digest, is told as a warning: the
 * cluster verifies signatures itself, and a medium without them still installs. The store is asked each
 * time: it may have got them since.
 */
export const fetchReleaseSignatures: Stage<
  FetchReleaseSignaturesInput,
  readonly string[],
  FetchReleaseSignaturesTools
> = {
  name: 'fetch release signatures',
  run({ release, store: named }, tools, context) {
    const store = chooseStore(formatReference(release.reference), named);
    if (store === undefined) return Promise.resolve([]);
    return fetchAll(digestOfRelease(release), store, { ...tools, ...context });
  },
};

/** The store to ask about a release: the one that the environment names, or Red Hat's for its own. */
function chooseStore(release: string, named?: string): string | undefined {
  if (named !== undefined && named !== '') return named.endsWith('/') ? named : `${named}/`;
  return release.startsWith(RED_HAT_RELEASES) ? RED_HAT_STORE : undefined;
}

async function fetchAll(digest: Digest, store: string, tools: Tools): Promise<string[]> {
  const signatures: string[] = [];
  try {
    for (let number = 1; number <= MAX_SIGNATURES; number++) {
      const url = new URL(`sha256=${hexOf(digest)}/signature-${number}`, store);
      const bytes = await fetchSignature(url, tools);
      if (bytes === undefined) return signatures;
      if (speaksOf(bytes, digest)) signatures.push(bytes.toString('base64'));
      else tools.warn(`the signature ${url.href} is not of ${digest}, and is left out`);
    }
  } catch (error) {
    tools.signal.throwIfAborted();
    if (!(error instanceof SealiftError) && !isTimeout(error)) throw error;
    tools.warn(`no release signatures: ${store}: ${(error as Error).message}`);
  }
  return signatures;
}

/** Undefined when the store has none of this number. */
async function fetchSignature(url: URL, tools: Tools): Promise<Buffer | undefined> {
  const signal = AbortSignal.any([tools.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  return tools.http.retries.run({ host: url.host, signal }, () =>
    askForSignature(url, { ...tools, signal }),
  );
}

async function askForSignature(
  url: URL,
  { http, tls, signal }: Tools,
): Promise<Buffer | undefined> {
  const response = await fetchPublic(http, { url, signal, ...(tls && { tls }) });
  if (response.status === 200) return readBounded(response, url);
  response.body.destroy();
  if (response.status === 404) return undefined;
  throw new RegistryError('http.refused', `${url.href} answers ${response.status}`, {
    expected: '200 or 404',
    found: String(response.status),
  });
}

async function readBounded(response: HttpResponse, url: URL): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_SIZE) {
        throw new RegistryError('http.too-long', `${url.href} has more than ${MAX_SIZE} bytes`);
      }
      chunks.push(chunk);
    }
  } catch (cause) {
    throw explainNetworkFailure(url.host, cause);
  }
  return Buffer.concat(chunks);
}

/**
 * Whether a signed message (RFC 4880 11.3: a compressed data packet of raw DEFLATE, or none) names the
 * digest as what it signs. Who signed it is for the cluster to judge.
 */
function speaksOf(message: Buffer, digest: Digest): boolean {
  const isCompressed = message[0] === 0xa3 && message[1] === 1;
  return (isCompressed ? inflate(message.subarray(2)) : message).includes(`"${digest}"`);
}

function inflate(bytes: Buffer): Buffer {
  try {
    return inflateRawSync(bytes, { maxOutputLength: 16 * MAX_SIZE });
  } catch {
    return Buffer.alloc(0); // it speaks of nothing, and is told as that
  }
}

const isTimeout = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'TimeoutError';
