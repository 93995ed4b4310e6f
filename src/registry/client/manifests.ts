import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import { readSmallBody } from '../../base/http/body.ts';
import type { Descriptor } from '../descriptor.ts';
import {
  MAX_MANIFEST_SIZE,
  MEDIA_TYPE,
  mediaTypeOf,
  parseStored,
  type StoredManifest,
} from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import { explainAnswer } from './answer.ts';
import { headerOf, readText } from '../../base/http/body.ts';
import type { Ask, Requester } from './requester.ts';
import type { TransportResponse } from './transport.ts';

/** One place a manifest may be: a mirror or the origin. */
export type Candidate = {
  readonly reference: Reference;
  /** Certificates are not checked and plain HTTP is allowed. */
  readonly insecure: boolean;
};

type Asked = Candidate & { readonly signal: AbortSignal };

/** distribution-spec, "Pulling manifests"; servers convert what is not listed, which changes digests. */
const ACCEPT = [
  MEDIA_TYPE.ociIndex,
  MEDIA_TYPE.dockerList,
  MEDIA_TYPE.ociManifest,
  MEDIA_TYPE.dockerManifest,
].join(', ');

/**
 * The manifest a reference names (end-3); undefined on 404. Its bytes have the digest asked for, or
 * for a tag that of Docker-Content-Digest; wrong ones are asked for once more.
 *
 * @throws IntegrityError `manifest.digest-mismatch`, `manifest.too-large`, and those of parseManifest
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

const WRONG_DIGEST = 'manifest.digest-mismatch';

function askOnce(requester: Requester, asked: Asked): Promise<StoredManifest | undefined> {
  return requester(askFor(asked, 'GET'), async (response) => {
    if (response.status === 404) return drain(response);
    await checkOk(response, asked);
    return readManifest(response, asked.reference);
  });
}

/** What a reference names now, without its bytes (end-3, HEAD); undefined on 404 alone. */
export async function headManifest(
  requester: Requester,
  asked: Asked,
): Promise<Descriptor | undefined> {
  const head = await requester(askFor(asked, 'HEAD'), async (response) => {
    await readText(response.body);
    return response;
  });
  if (head.status === 404) return undefined;
  const descriptor = head.status === 200 ? readHead(head.headers) : undefined;
  // Some registries refuse HEAD or leave the digest out: the manifest itself tells.
  return descriptor ?? (await fetchManifest(requester, asked))?.descriptor;
}

/**
 * What is attached to a manifest, as the registry lists it (end-12a), or as the tag does that stands for
 * the list where a registry has none ("Unavailable Referrers API"). No further pages are asked for.
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
      return readManifest(response, { registry, repository });
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
  await readText(body);
  return undefined;
}

async function checkOk(response: TransportResponse, { reference }: Asked): Promise<void> {
  const { status, headers, body } = response;
  if (status === 200) return;
  const text = await readText(body);
  const about = `GET manifest ${formatReference(reference)}`;
  throw explainAnswer(reference.registry, { status, headers, text, about }, Date.now());
}

async function readManifest(
  { headers, body }: TransportResponse,
  reference: Reference,
): Promise<StoredManifest> {
  const bytes = await readSmallBody(body, MAX_MANIFEST_SIZE);
  if (!bytes) {
    throw new IntegrityError(
      'manifest.too-large',
      `manifest ${formatReference(reference)} has more than ${MAX_MANIFEST_SIZE} bytes`,
      { expected: `at most ${MAX_MANIFEST_SIZE} bytes`, found: 'more' },
    );
  }
  const digest = digestOf(bytes);
  checkDigest(reference, reference.digest ?? announcedDigest(headers), digest);
  return parseStored(bytes, digest, headerOf(headers, 'content-type'));
}

function checkDigest(reference: Reference, expected: Digest | undefined, found: Digest): void {
  if (expected === undefined || expected === found) return;
  throw new IntegrityError(
    WRONG_DIGEST,
    `manifest ${formatReference(reference)} should be ${expected}, but is ${found}`,
    { expected, found },
  );
}

type Headers = TransportResponse['headers'];

/** Absent where the registry sends none, or one of another algorithm. */
function announcedDigest(headers: Headers): Digest | undefined {
  const text = headerOf(headers, 'docker-content-digest')?.trim();
  return text !== undefined && isDigest(text) ? text : undefined;
}

function readHead(headers: Headers): Descriptor | undefined {
  const digest = announcedDigest(headers);
  const mediaType = mediaTypeOf(headerOf(headers, 'content-type'));
  const size = Number(headerOf(headers, 'content-length') ?? NaN);
  if (!digest || mediaType === undefined || !Number.isSafeInteger(size) || size <= 0) {
    return undefined;
  }
  return { mediaType, digest, size };
}

/** A registry answers 404. */
export const unknownManifest = (reference: Reference): RegistryError =>
  new RegistryError(
    'registry.manifest-unknown',
    `there is no ${formatReference(reference)} on ${reference.registry}`,
    { hint: 'check the repository and the tag or digest' },
  );
