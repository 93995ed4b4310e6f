import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { restate } from '../../base/download/source-answers.ts';
import { IntegrityError } from '../../base/errors.ts';
import { headerOf, readSmallBody } from '../../base/http/body.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  type Descriptor,
  MAX_MANIFEST_SIZE,
  mediaTypeOf,
  parseStored,
  type StoredManifest,
} from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import type { TransportResponse } from './transport.ts';

/* Owns what an answer to a request for a manifest holds: its bytes, verified, or its descriptor. */

export const WRONG_DIGEST = 'manifest.digest-mismatch';

/** The bytes of an answer with 200, checked against the reference's digest, or Docker-Content-Digest. */
export async function takeManifest(
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
  const expected = reference.digest ?? announcedDigest(headers);
  const page = isPage(headers) ? adviseOnPage(reference) : undefined;
  if (expected !== undefined && expected !== digest) {
    throw new IntegrityError(
      WRONG_DIGEST,
      `manifest ${formatReference(reference)} should be ${expected}, but is ${digest}`,
      { expected, found: digest, ...withoutUndefined({ hint: page }) },
    );
  }
  try {
    return parseStored(bytes, digest, headerOf(headers, 'content-type'));
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    const message = `${formatReference(reference)}: ${error.message}`;
    throw restate(error, message, page ?? error.hint);
  }
}

/** A proxy or a login may answer with a page and 200. */
const isPage = (headers: Headers): boolean =>
  /^text\/html\b/i.test(headerOf(headers, 'content-type') ?? '');

const adviseOnPage = ({ registry }: Reference): string =>
  `check whether a proxy or a login page answers in place of ${registry}: it sent a web page`;

type Headers = TransportResponse['headers'];

/** Undefined if the registry sends none, or one of another algorithm. */
function announcedDigest(headers: Headers): Digest | undefined {
  const text = headerOf(headers, 'docker-content-digest')?.trim();
  return text !== undefined && isDigest(text) ? text : undefined;
}

/** Undefined unless an answer to HEAD has a digest, a type and a size. */
export function takeHead(headers: Headers): Descriptor | undefined {
  const digest = announcedDigest(headers);
  const mediaType = mediaTypeOf(headerOf(headers, 'content-type'));
  const size = Number(headerOf(headers, 'content-length') ?? NaN);
  if (!digest || mediaType === undefined || !Number.isSafeInteger(size) || size <= 0) {
    return undefined;
  }
  return { mediaType, digest, size };
}
