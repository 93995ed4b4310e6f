import type { Readable } from 'node:stream';
import { formatDuration } from '../text/quantities.ts';
import { startTimer, type Timer } from '../wait.ts';

/** Milliseconds for all of a small document: a byte now and then keeps the time between pieces short for ever. */
export const DOCUMENT_TIME = 60_000;

/** Ends a body with an Error ETIMEDOUT after so many milliseconds, unless the timer is stopped before. */
export const limitTime = (body: Readable, timeLimit: number): Timer =>
  startTimer(timeLimit, () => {
    const message = `the answer is not whole after ${formatDuration(timeLimit)}`;
    body.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }));
  });

/**
 * The bytes of a small document, or undefined when there are more than `limit`: the rest is not read.
 *
 * @throws an Error ETIMEDOUT when it is not whole in time (default 60 s); what the body throws
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
