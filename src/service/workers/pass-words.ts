import type { IncomingMessage } from 'node:http';

/* Owns the words of the head by which workers pass requests on to the first process, and get offers of images. */

/** Header of a request that a worker passes on. A worker removes it from the requests of clients. */
export const PASSED = 'x-sealift-passed';

/** Header of an answer that is an offer, not what the client asked for. */
export const OFFERED = 'x-sealift-offered';

/** Facts about a request that a worker has passed on. */
export type Passed = {
  /** True if the client speaks TLS. */
  readonly isTls: boolean;
  /** True if the worker can answer it, given an offer. */
  readonly takesOffer: boolean;
};

export const formatPassed = ({ isTls, takesOffer }: Passed): string =>
  `${isTls ? 'tls' : 'plain'}${takesOffer ? ' offer' : ''}`;

export function parsePassed({ headers }: Pick<IncomingMessage, 'headers'>): Passed {
  const words = String(headers[PASSED] ?? '').split(' ');
  return { isTls: words.includes('tls'), takesOffer: words.includes('offer') };
}
