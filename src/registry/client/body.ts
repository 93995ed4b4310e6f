import type { Readable } from 'node:stream';

const MAX_TEXT_SIZE = 64 * 1024;

/** A body's bytes; undefined when there are more than `limit`. The rest is not read. */
export async function readBody(body: Readable, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > limit) return undefined;
  }
  return Buffer.concat(chunks, size);
}

/** A short body as text, to its end, so that the connection can be used again; '' when it is long. */
export async function readText(body: Readable): Promise<string> {
  return (await readBody(body, MAX_TEXT_SIZE))?.toString() ?? '';
}

/** The first value of a header. */
export function headerOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  name: string,
): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
