import { createHash, type Hash } from 'node:crypto';
import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import type { Http, HttpResponse, TlsOptions } from '../../base/http/http.ts';
import { explainNetworkFailure } from '../../base/http/network-failure.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { redactUrl } from '../../base/text/redact.ts';
import type { Budget } from '../../base/retry.ts';
import { explainDiskFailure } from '../../base/disk/write-errors.ts';
import { fetchPublic } from './http-get.ts';

export type Download = {
  readonly url: URL;
  /** Absent where only what is made of the bytes can be compared. */
  readonly digest?: Digest;
  /** Bytes; a file that is larger is not what is looked for. */
  readonly limit: number;
  /** Where the bytes go; what a run before this one left there is continued. */
  readonly path: string;
  readonly http: Http;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
  readonly onProgress?: (bytes: number, total?: number) => void;
};

/** A file that is being written: its bytes so far, hashed. */
type Partial = { readonly file: FileHandle; size: number; hash: Hash; furthest: number };

/**
 * Fetches a public file. A broken connection is continued by Range where it broke
 * off, inside a run and by a later run; a server that ignores Range starts over.
 *
 * @throws IntegrityError `download.digest`, `download.too-large`, after which nothing is left;
 * RegistryError `download.refused`, and what `fetchPublic` throws.
 */
export async function downloadFile(
  download: Download,
): Promise<{ readonly size: number; readonly digest: Digest }> {
  const { http, url, path, digest, signal } = download;
  await makeDirectory(dirname(path));
  const file = await openOwnFile(path, { append: true });
  const partial: Partial = { file, size: 0, hash: createHash('sha256'), furthest: 0 };
  try {
    await readPartial(partial, signal);
    await http.retries.run({ host: url.host, signal }, (budget) =>
      continueDownload(download, partial, budget),
    );
    await file.sync();
    const found: Digest = `sha256:${partial.hash.digest('hex')}`;
    if (digest === undefined || found === digest) return { size: partial.size, digest: found };
    const { size } = partial;
    partial.size = 0;
    throw new IntegrityError(
      'download.digest',
      `${redactUrl(url)} should be ${digest}, but is ${found} (${size} bytes)`,
      { expected: digest, found, hint: 'compare the sha256 with the one its publisher names' },
    );
  } finally {
    await file.close();
    if (partial.size === 0) await rm(path, { force: true });
  }
}

async function readPartial(partial: Partial, signal: AbortSignal): Promise<void> {
  const written = partial.file.createReadStream({
    start: 0,
    autoClose: false,
    highWaterMark: 1 << 20,
  });
  for await (const chunk of written) {
    signal.throwIfAborted();
    partial.hash.update(chunk as Buffer);
    partial.size += (chunk as Buffer).length;
  }
}

async function continueDownload(
  download: Download,
  partial: Partial,
  budget: Budget,
): Promise<void> {
  const { http, url, signal, tls } = download;
  const response = await fetchPublic(http, {
    url,
    signal,
    ...(tls && { tls }),
    ...(partial.size > 0 && { headers: { range: `bytes=${partial.size}-` } }),
  });
  if (response.status === 416 && partial.size > 0) {
    response.body.resume();
    if (isAtEnd(response, partial.size)) return;
    // What is here is longer than what is there: it was another file.
    await startOver(partial);
    await continueDownload(download, partial, budget);
    return;
  }
  if (response.status === 200) await startOver(partial);
  else checkContinues(response, partial.size, url);
  await receive(response, withProgress(download, partial, budget), partial);
}

/** Bytes that were here before, from a server that starts over, are not progress. */
function withProgress(download: Download, partial: Partial, budget: Budget): Download {
  return {
    ...download,
    onProgress(bytes, total) {
      if (bytes > partial.furthest) {
        partial.furthest = bytes;
        budget.progress();
      }
      download.onProgress?.(bytes, total);
    },
  };
}

async function receive(
  response: HttpResponse,
  download: Download,
  partial: Partial,
): Promise<void> {
  const { url, path, limit, onProgress } = download;
  const total = totalOf(response);
  try {
    requireBelow(limit, total ?? 0, url);
    for await (const chunk of readBody(response, download)) {
      requireBelow(limit, partial.size + chunk.length, url);
      await append(chunk, partial, path);
      onProgress?.(partial.size, total);
    }
  } catch (error) {
    response.body.destroy();
    if (error instanceof IntegrityError) await startOver(partial); // nobody continues it
    throw error;
  }
}

/** RFC 9110 8.6 and 14.4: bytes of the whole file, where the server says so. */
function totalOf({ headers }: HttpResponse): number | undefined {
  const range = headers['content-range'];
  const text = typeof range === 'string' ? range.split('/')[1] : headers['content-length'];
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function requireBelow(limit: number, size: number, url: URL): void {
  if (size <= limit) return;
  throw new IntegrityError(
    'download.too-large',
    `${redactUrl(url)} has ${size} bytes or more, but at most ${limit} are expected`,
    { expected: `at most ${limit}`, found: String(size), hint: 'check the address' },
  );
}

/** Only what the connection throws is the network's fault: writing has its own. */
async function* readBody(
  { body }: HttpResponse,
  { url, signal }: Download,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) yield chunk;
  } catch (cause) {
    signal.throwIfAborted();
    throw explainNetworkFailure(url.host, cause);
  }
}

/** RFC 9110 15.5.17: no bytes are left after ours, and the server says how many there are. */
const isAtEnd = ({ status, headers }: HttpResponse, size: number): boolean =>
  status === 416 && headers['content-range'] === `bytes */${size}`;

function checkContinues({ status, headers, body }: HttpResponse, size: number, url: URL): void {
  const range = headers['content-range'];
  if (status === 206 && typeof range === 'string' && range.startsWith(`bytes ${size}-`)) return;
  body.destroy();
  throw new RegistryError('download.refused', `${redactUrl(url)} answers ${status}`, {
    expected: size > 0 ? `206 from byte ${size}, or 200` : '200',
    found: String(status),
    hint: 'check the address; it must be public',
  });
}

async function startOver(partial: Partial): Promise<void> {
  await partial.file.truncate(0);
  partial.size = 0;
  partial.hash = createHash('sha256');
}

/** Hashes what is on the disk and nothing else, so that both stay in step when either breaks off. */
async function append(chunk: Buffer, partial: Partial, path: string): Promise<void> {
  try {
    await partial.file.appendFile(chunk);
  } catch (error) {
    const needed = partial.size + chunk.length;
    throw explainDiskFailure(error, { directory: dirname(path), needed });
  }
  partial.hash.update(chunk);
  partial.size += chunk.length;
}
