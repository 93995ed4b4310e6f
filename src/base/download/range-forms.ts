import { RegistryError } from '../errors.ts';
import { headerOf } from '../http/body.ts';
import type { HttpResponse } from '../http/http.ts';

/* Owns the forms of ranges (RFC 9110 14): how bytes are asked for, and how answers are read. */

/** The answer 416 to a range: the object may begin there all the same, or its size is another one. */
export type OutOfRange = 'out of range' | 'another size';

export const isOutOfRange = (opened: unknown): opened is OutOfRange => typeof opened === 'string';

/**
 * Values of `Range` for bytes of an object, in the order in which they are tried: more servers know
 * the closed form. None for all of it.
 *
 * @param end the byte after the last one, if it is known
 */
export function listRanges(offset: number, end: number | undefined, isWhole: boolean) {
  if (offset === 0 && isWhole) return [];
  const closed = end !== undefined && end > offset ? [`bytes=${offset}-${end - 1}`] : [];
  return [...closed, `bytes=${offset}-`];
}

/**
 * Opens an object by the first form of a range that its server accepts (RFC 9110 14.1.2): some know
 * the closed form only, others the open one. A server that accepts none has another object, or packs
 * its answers, whose ranges are then those of the packed bytes: its answer from byte 0 shows that.
 *
 * @param ranges values of the header `Range`
 */
export async function openByRange<Opened>(
  ranges: readonly string[],
  ask: (range: string | undefined) => Promise<Opened | OutOfRange>,
): Promise<Opened | OutOfRange> {
  for (const range of ranges) {
    const opened = await ask(range).catch(refuseCodedPart);
    if (opened === 'another size') break;
    if (opened !== 'out of range') return opened;
  }
  return ask(undefined);
}

function refuseCodedPart(error: unknown): OutOfRange {
  if (error instanceof RegistryError && error.code === 'http.content-coding') return 'another size';
  throw error;
}

/** Judges a 416 by the size that it states (RFC 9110 14.4), if any. */
export const judgeOutOfRange = (
  range: string | undefined,
  isPossible: (size: number) => boolean,
) => {
  const { size } = parseContentRange(range);
  return size === undefined || isPossible(size) ? 'out of range' : 'another size';
};

/** RFC 9110 14.4. `size` is absent if the server does not know it. */
export function parseContentRange(text: string | undefined): {
  readonly first?: number;
  readonly last?: number;
  readonly size?: number;
} {
  const [, first, last, size = ''] =
    /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15}|\*)$/i.exec(text?.trim() ?? '') ?? [];
  return {
    ...(first !== undefined && { first: Number(first), last: Number(last) }),
    ...(/^\d/.test(size) && { size: Number(size) }),
  };
}

type Answer = Pick<HttpResponse, 'status' | 'headers'>;

/** The first byte of an answer; undefined if it is not the requested one. */
export function startOf({ status, headers }: Answer, offset: number): number | undefined {
  if (status === 200) return 0;
  const { first } = parseContentRange(headerOf(headers, 'content-range'));
  return status === 206 && first === offset ? offset : undefined;
}

/** RFC 9110 8.6 and 14.4: bytes of the whole file, if the server reports them. */
export function totalOf({ status, headers }: Answer): number | undefined {
  if (status === 206) return parseContentRange(headerOf(headers, 'content-range')).size;
  const text = headerOf(headers, 'content-length') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
