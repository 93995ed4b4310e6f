import { type Digest, hexOf } from '../../base/digest.ts';
import type { VirtualIso } from '../../media/serve/virtual.ts';
import type { Exchange, Service } from '../context.ts';
import { ApiFailure } from '../openapi.ts';
import type { DigestedImage } from './digests.ts';

/* Owns how the SHA-256 of an image is answered: below its URL, and in the heads of its bytes. */

/** Suffix of the path of an image. */
const SUFFIX = '.sha256';

/** Name of the file that a path asks for, and if it asks for its SHA-256. */
export const readAskedName = (
  file: string,
): { readonly file: string; readonly isSha256: boolean } =>
  file.endsWith(SUFFIX)
    ? { file: file.slice(0, -SUFFIX.length), isSha256: true }
    : { file, isSha256: false };

/** URL of the SHA-256 of an image. @param url short: without a query */
export const formatSha256Url = (url: string): string => url + SUFFIX;

/** Answers in the form of `sha256sum`, or 202 and how far it is: a request begins to compute it. */
export async function answerSha256(
  { digests }: Pick<Service, 'digests'>,
  exchange: Exchange,
  { filename, ...asked }: DigestedImage & { readonly filename: string },
): Promise<Response> {
  const found = await digests.requestSha256(asked);
  if ('digest' in found) return exchange.text(`${hexOf(found.digest)}  ${filename}\n`);
  if ('reason' in found) throw new ApiFailure(404, found.reason);
  const { hashed, isRunning, rate } = found;
  const { size } = asked.image;
  const status = isRunning ? 'computing' : 'waiting';
  const body = { status, hashed_bytes: hashed, size_bytes: size };
  const seconds = Math.ceil((size - hashed) / rate);
  return exchange.json(body, 202, {
    'Retry-After': String(Math.min(LONGEST_PAUSE, Math.max(1, seconds))),
  });
}

/** Seconds until a client asks again. */
const LONGEST_PAUSE = 30;

/** Head of an image whose SHA-256 is known (RFC 9530 3). */
export const describeSha256 = (digest: Digest | undefined): Readonly<Record<string, string>> =>
  digest === undefined
    ? {}
    : { 'Repr-Digest': `sha-256=:${Buffer.from(hexOf(digest), 'hex').toString('base64')}:` };

/** Members of an answer that describe an image before it is downloaded. */
export async function describeImage(
  { digests }: Pick<Service, 'digests'>,
  asked: DigestedImage & { readonly image: VirtualIso },
): Promise<{
  readonly size_bytes: number;
  readonly medium_digest: Digest | undefined;
  readonly sha256: string | undefined;
}> {
  const sha256 = await digests.findSha256(asked);
  return {
    size_bytes: asked.image.size,
    medium_digest: await digests.readMediumDigest(asked),
    sha256: sha256 && hexOf(sha256),
  };
}
