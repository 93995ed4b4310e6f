import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Http, HttpResponse, TlsOptions } from '../../base/http.ts';
import { redactUrl } from '../../base/redact.ts';
import { explainDiskFailure } from '../../registry/cache/disk-failure.ts';
import { explainNetworkFailure } from '../../registry/client/failure.ts';
import { retry, type Pacing } from '../../registry/client/retry.ts';
import { fetchPublic } from './http-get.ts';

export type Download = {
  readonly url: URL;
  readonly digest: Digest;
  /** Where the bytes go; what a run before this one left there is continued. */
  readonly path: string;
  readonly http: Http;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
  readonly pacing?: Pacing;
  readonly onProgress?: (bytes: number) => void;
};

/** A file that is being written: its bytes so far, hashed. */
type Partial = { readonly file: FileHandle; size: number; hash: Hash };

/**
 * Fetches a public file of known digest. A broken connection is continued by Range where it broke
 * off, inside a run and by a later run; a server that ignores Range starts over.
 *
 * @throws IntegrityError `download.digest`, after which nothing is left; RegistryError
 * `download.refused`, and what `fetchPublic` throws.
 */
export async function downloadFile(download: Download): Promise<{ readonly size: number }> {
  const { url, path, digest, signal, pacing } = download;
  await mkdir(dirname(path), { recursive: true });
  const file = await open(path, 'a+', 0o600);
  try {
    const partial = await readPartial(path, file);
    await retry(() => continueDownload(download, partial), { ...pacing, host: url.host, signal });
    await file.sync();
    const found = `sha256:${partial.hash.digest('hex')}`;
    if (found === digest) return { size: partial.size };
    await rm(path, { force: true });
    throw new IntegrityError(
      'download.digest',
      `${redactUrl(url)} should be ${digest}, but is ${found} (${partial.size} bytes)`,
      { expected: digest, found, hint: 'compare the sha256 with the one its publisher names' },
    );
  } finally {
    await file.close();
  }
}

async function readPartial(path: string, file: FileHandle): Promise<Partial> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk as Buffer);
    size += (chunk as Buffer).length;
  }
  return { file, size, hash };
}

async function continueDownload(download: Download, partial: Partial): Promise<void> {
  const { http, url, signal, tls, path, onProgress } = download;
  const response = await fetchPublic(http, {
    url,
    signal,
    ...(tls && { tls }),
    ...(partial.size > 0 && { headers: { range: `bytes=${partial.size}-` } }),
  });
  if (isAtEnd(response, partial.size)) {
    response.body.resume();
    return;
  }
  if (response.status === 200) await startOver(partial);
  else checkContinues(response, partial.size, url);
  for await (const chunk of readBody(response, download)) {
    await append(chunk, partial, path);
    onProgress?.(partial.size);
  }
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
