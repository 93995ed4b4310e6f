import type { Digest } from '../../base/digest.ts';
import type { ServeOptions } from '../../base/http/plan-answer.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { type PackedOverlay, parsePackedOverlay } from '../../media/serve/overlay.ts';
import type { FetchedFile } from '../audit/fetches.ts';
import type { IsoIdentity } from '../../media/serve/virtual.ts';

/*
 * Owns the form in which the first process hands an image to a worker: a line of JSON, then the packed overlay. A worker
 * gets the bytes of one customer's overlay this way, and no key.
 */

/** An image that a worker can serve by itself. */
export type ImageOffer = {
  /** The file of the ISO, and the ISO's digest. */
  readonly base: { readonly file: IsoIdentity; readonly digest: Digest };
  readonly overlay: PackedOverlay | undefined;
  readonly options: ServeOptions;
  /** Template of its route. */
  readonly route: string;
  readonly tenant: string;
  /** The image as the audit log names it; a worker gives it back with its answers. */
  readonly file: FetchedFile;
  readonly records: readonly string[];
  readonly expires?: Date | undefined;
  /** True if the URL alone decides, until one of the records changes. */
  readonly isLasting: boolean;
};

export function encodeOffer({ overlay, options, expires, ...rest }: ImageOffer): Buffer {
  const { lastModified, ...others } = options;
  const head = {
    ...rest,
    options: others,
    lastModified: lastModified?.getTime(),
    expires: expires?.getTime(),
    hasOverlay: overlay !== undefined,
  };
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(head)}\n`),
    ...(overlay ? [overlay.packed] : []),
  ]);
}

type Head = Omit<ImageOffer, 'overlay' | 'expires'> & {
  readonly lastModified?: number;
  readonly expires?: number;
  readonly hasOverlay: boolean;
};

/** Decodes an offer, which is trusted: only the first process has the socket file. */
export function decodeOffer(bytes: Buffer): ImageOffer {
  const line = bytes.indexOf('\n');
  const { lastModified, expires, hasOverlay, options, ...rest } = JSON.parse(
    bytes.toString('utf8', 0, line),
  ) as Head;
  return {
    ...rest,
    overlay: hasOverlay ? parsePackedOverlay(bytes.subarray(line + 1)) : undefined,
    options: { ...options, ...withoutUndefined({ lastModified: toDate(lastModified) }) },
    expires: toDate(expires),
  };
}

const toDate = (milliseconds: number | undefined): Date | undefined =>
  milliseconds === undefined ? undefined : new Date(milliseconds);
