import type { Readable } from 'node:stream';
import { readSmallBody } from '../../base/http/read-body.ts';

const MAX_TEXT_SIZE = 64 * 1024;

/** A short body as text, to its end, so that the connection can be used again; '' when it is long. */
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
