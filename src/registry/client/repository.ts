import {
  isOutOfRange,
  judgeOutOfRange,
  listRanges,
  openByRange,
  parseContentRange,
  type OutOfRange,
} from '../../base/download/range-forms.ts';
import type { OpenBytes, OpenOptions } from '../../base/download/sources.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import { headerOf, readBodyText } from '../../base/http/body.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Budget, Retries } from '../../base/retry.ts';
import type { BlobSource, Content } from '../../base/store/blob-source.ts';
import { type Descriptor, MEDIA_TYPE, type StoredManifest } from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import { explainAnswer } from './answer.ts';
import { takeHead, takeManifest, WRONG_DIGEST } from './manifest-answer.ts';
import type { Ask, Requester } from './requester.ts';
import type { TransportResponse, Endpoint } from './transport.ts';

/** A place that may have a manifest: a mirror or the origin. */
export type MirrorCandidate = {
  readonly reference: Reference;
  readonly insecure: boolean;
};

type Asked = MirrorCandidate & { readonly signal: AbortSignal };

/** distribution-spec, "Pulling manifests"; servers convert what is not listed, which changes digests. */
const ACCEPT = [
  MEDIA_TYPE.ociIndex,
  MEDIA_TYPE.dockerList,
  MEDIA_TYPE.ociManifest,
  MEDIA_TYPE.dockerManifest,
].join(', ');

/**
 * The manifest that a reference names (end-3); undefined on 404. Its bytes are checked against the digest of
 * the reference, or for a tag against Docker-Content-Digest; wrong bytes are requested again, once.
 */
export async function fetchManifest(
  requester: Requester,
  asked: Asked,
): Promise<StoredManifest | undefined> {
  try {
    return await askOnce(requester, asked);
  } catch (error) {
    if (!(error instanceof IntegrityError) || error.code !== WRONG_DIGEST) throw error;
    return askOnce(requester, asked);
  }
}

function askOnce(requester: Requester, asked: Asked): Promise<StoredManifest | undefined> {
  return requester(askFor(asked, 'GET'), async (response) => {
    if (response.status === 404) return drain(response);
    await checkOk(response, asked);
    return takeManifest(response, asked.reference);
  });
}

/**
 * The descriptor that a reference names now (end-3). HEAD costs least, but decides nothing alone: proxies of
 * Nexus and Harbor answer it with 404 for manifests that GET brings, others with 403, 405 or 500.
 */
export async function headManifest(
  requester: Requester,
  asked: Asked,
): Promise<Descriptor | undefined> {
  const known = ATTACHED.test(asked.reference.tag ?? '')
    ? undefined
    : await askHead(requester, asked);
  return known ?? (await fetchManifest(requester, asked))?.descriptor;
}

/** A tag of cosign or of the referrers fallback: it is mostly absent, and HEAD would cost a request more. */
const ATTACHED = /^sha256-[0-9a-f]{64}/;

/** Undefined unless the registry says it all: 200 with a digest, a type and a size. */
async function askHead(requester: Requester, asked: Asked): Promise<Descriptor | undefined> {
  try {
    return await requester(
      { ...askFor(asked, 'HEAD'), isOnce: true },
      async ({ status, headers, body }) => {
        await readBodyText(body);
        return status === 200 ? takeHead(headers) : undefined;
      },
    );
  } catch (error) {
    asked.signal.throwIfAborted();
    if (error instanceof RegistryError) return undefined; // GET fails with it again, or does not
    throw error;
  }
}

/**
 * Descriptors attached to a manifest, as listed by the registry (end-12a), or by the fallback tag of a
 * registry without that list ("Unavailable Referrers API"). Only the first page is read.
 */
export async function fetchReferrers(
  requester: Requester,
  asked: Asked,
): Promise<readonly Descriptor[] | undefined> {
  const { registry, repository, digest = '' } = asked.reference;
  const answered = await requester(
    { ...askFor(asked, 'GET'), path: `referrers/${digest}` },
    async (response) => {
      if (response.status !== 200) return drain(response);
      return takeManifest(response, { registry, repository });
    },
  );
  const tag = digest.replace(':', '-');
  const listed =
    answered ??
    (await fetchManifest(requester, { ...asked, reference: { registry, repository, tag } }));
  return listed?.manifest.kind === 'index' ? listed.manifest.manifests : undefined;
}

function askFor({ reference, insecure, signal }: Asked, method: 'GET' | 'HEAD'): Ask {
  const name = reference.digest ?? reference.tag ?? 'latest';
  return {
    endpoint: { host: reference.registry, insecure },
    repository: reference.repository,
    path: `manifests/${name}`,
    method,
    headers: { accept: ACCEPT },
    signal,
  };
}

async function drain({ body }: TransportResponse): Promise<undefined> {
  await readBodyText(body);
  return undefined;
}

async function checkOk(response: TransportResponse, { reference }: Asked): Promise<void> {
  const { status, headers, body } = response;
  if (status === 200) return;
  const text = await readBodyText(body);
  const about = `GET manifest ${formatReference(reference)}`;
  throw explainAnswer(reference.registry, { status, headers, text, about }, Date.now());
}

export const unknownManifest = (reference: Reference): RegistryError =>
  new RegistryError(
    'registry.manifest-unknown',
    `there is no ${formatReference(reference)} on ${reference.registry}`,
    { hint: 'check the repository and the tag or digest' },
  );

/**
 * The blobs of a repository (distribution-spec, end-2). Every opening asks the registry itself: the
 * URLs that it redirects to are valid for minutes only. An answer whose headers already contradict the
 * descriptor's size is refused before its body is read.
 */
export function createRegistrySource(
  requester: Requester,
  {
    endpoint,
    repository,
    retries,
  }: { readonly endpoint: Endpoint; readonly repository: string; readonly retries: Retries },
): BlobSource {
  const { host } = endpoint;
  const ask = (blob: Content, { offset, signal, budget }: OpenOptions, range?: string) => {
    const headers = { accept: '*/*', ...withoutUndefined({ range }) };
    const path = `blobs/${blob.digest}`;
    const request = { endpoint, repository, path, headers, signal, ...(budget && { budget }) };
    return requester(request, (response) => takeBlob(response, { blob, offset, host }));
  };
  const open: BlobSource['open'] = async (blob, options) => {
    const { offset, size = blob.size - offset } = options;
    const ranges = listRanges(offset, offset + size, options.size === undefined);
    const opened = await openByRange(ranges, (range) =>
      ask(blob, range === undefined ? { ...options, offset: 0 } : options, range),
    );
    if (isOutOfRange(opened)) throw differs({ blob, offset: 0, host }, '0');
    return opened;
  };
  const openBudget = (signal: AbortSignal): Budget => retries.open(host, signal);
  return { name: host, local: false, openBudget, open };
}

type Wanted = { readonly blob: Content; readonly offset: number; readonly host: string };

async function takeBlob(
  response: TransportResponse,
  wanted: Wanted,
): Promise<OpenBytes | OutOfRange | undefined> {
  const { status, headers, body } = response;
  const { blob, offset, host } = wanted;
  switch (status) {
    case 200:
      checkSize(wanted, headerOf(headers, 'content-length'));
      return { offset: 0, body };
    case 206:
      checkRange(wanted, headerOf(headers, 'content-range'));
      return { offset, body };
    case 404:
      await readBodyText(body);
      return undefined;
    case 416:
      await readBodyText(body);
      return judgeOutOfRange(headerOf(headers, 'content-range'), (size) => size === blob.size);
    default: {
      const text = await readBodyText(body);
      throw explainAnswer(host, { status, headers, text, about: `GET ${blob.digest}` }, Date.now());
    }
  }
}

function checkSize(wanted: Wanted, size: string | undefined): void {
  if (size === undefined || !/^\d+$/.test(size) || Number(size) === wanted.blob.size) return;
  throw differs(wanted, size);
}

/** RFC 9110 14.4. */
function checkRange(wanted: Wanted, range: string | undefined): void {
  const { first, size } = parseContentRange(range);
  if (first !== wanted.offset) {
    throw new RegistryError(
      'registry.range',
      `${wanted.host} sends a different part of blob ${wanted.blob.digest} than requested`,
      { expected: `bytes from ${wanted.offset}`, found: range ?? 'no Content-Range' },
    );
  }
  checkSize(wanted, size?.toString());
}

function differs({ blob, host }: Wanted, found: string): IntegrityError {
  const isLonger = Number(found) > blob.size;
  return new IntegrityError(
    isLonger ? 'blob.too-long' : 'blob.too-short',
    `blob ${blob.digest} should be ${blob.size} bytes, but ${host} has ${found}`,
    { expected: String(blob.size), found },
  );
}
