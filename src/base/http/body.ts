import { Readable } from 'node:stream';
import { formatDuration } from '../text/words.ts';
import { startTimer, type Timer } from '../wait.ts';

/* Owns reading small bodies within limits of size and time, and sending bodies in pieces. */

/** Milliseconds for all of a small document: a byte now and then never exceeds the time between pieces. */
export const DOCUMENT_TIME = 60_000;

/** Ends a body with an Error ETIMEDOUT after so many milliseconds, unless the timer is stopped before. */
export const limitTime = (body: Readable, timeLimit: number): Timer =>
  startTimer(timeLimit, () => {
    const message = `the answer is not complete after ${formatDuration(timeLimit)}`;
    body.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }));
  });

/**
 * The bytes of a small document, or undefined if there are more than `limit`: the rest is not read.
 *
 * @throws an Error ETIMEDOUT if it is not whole in time (default 60 s); the body's own errors
 */
export async function readSmallBody(
  body: Readable,
  limit: number,
  timeLimit = DOCUMENT_TIME,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = limitTime(body, timeLimit);
  try {
    for await (const chunk of body) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > limit) return undefined;
    }
    return Buffer.concat(chunks, size);
  } finally {
    timer.stop();
  }
}

const MAX_TEXT_SIZE = 64 * 1024;

/** A short body as text, read to its end, so that the connection can be used again; '' if it is long. */
export async function readBodyText(body: Readable): Promise<string> {
  return (await readSmallBody(body, MAX_TEXT_SIZE))?.toString() ?? '';
}

/** The first value of a header. */
export function headerOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  name: string,
): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** Reports each piece that is taken from a body, so that sending a long one does not count as silence. */
export function watchBody(
  body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined,
  onPiece: () => void,
): string | Uint8Array | Readable | null {
  if (body === undefined) return null;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  const stream = Readable.from(watch(body, onPiece), { objectMode: false, highWaterMark: 1 });
  // The sender gets its failure; before that, there may be no listener.
  return stream.on('error', () => undefined);
}

async function* watch(
  body: AsyncIterable<Uint8Array>,
  onPiece: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    onPiece();
    yield piece;
  }
}
