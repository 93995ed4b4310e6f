import type { Readable } from 'node:stream';
import { redactUrl } from '../text/redact.ts';
import { formatDuration } from '../text/words.ts';
import { startTimer, type Timer } from '../wait.ts';
import type { Http } from './http.ts';

/* Owns reading small bodies within limits of size and time, and the report of every request. */

/**
 * Milliseconds for the whole of a small document: a server that sends a byte now and then would
 * never exceed the time between pieces.
 */
export const DOCUMENT_TIME = 60_000;

/**
 * Ends a body with an Error ETIMEDOUT after so many milliseconds, unless the timer is stopped
 * before.
 */
export const limitTime = (body: Readable, timeLimit: number): Timer =>
  startTimer(timeLimit, () => {
    const message = `the answer is not complete after ${formatDuration(timeLimit)}`;
    body.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }));
  });

/**
 * The bytes of a small document, or undefined if there are more than `limit`: the rest is not
 * read.
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

/**
 * A short body as text, read to its end, so that the connection can be used again; '' if it is
 * long.
 */
export async function readText(body: Readable): Promise<string> {
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

/** A request that was made, with its URL redacted, and its outcome. */
export type HttpRequestEvent = {
  readonly type: 'http-request';
  readonly method: string;
  readonly url: string;
  /** Status of the answer; absent if no answer came. */
  readonly status?: number;
  /** Reason why no answer came. */
  readonly problem?: string;
};

/**
 * Returns the same `Http` with a report of every request: each source that is tried, and each
 * retry.
 */
export const reportRequests = (http: Http, onEvent: (event: HttpRequestEvent) => void): Http => ({
  ...http,
  async request(wanted) {
    const about = {
      type: 'http-request',
      method: wanted.method ?? 'GET',
      url: redactUrl(wanted.url),
    } as const;
    try {
      const response = await http.request(wanted);
      onEvent({ ...about, status: response.status });
      return response;
    } catch (error) {
      onEvent({ ...about, problem: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  },
});
