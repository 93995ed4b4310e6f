import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import type { Digest } from '../../base/digest.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { createResumableFile } from '../../base/disk/resumable-file.ts';
import { explainDiskFailure } from '../../base/disk/write-errors.ts';
import { fillFile, type FillOptions } from '../../base/download/fill-file.ts';
import type { OpenBytes, OpenOptions, Source } from '../../base/download/source.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Http, HttpResponse } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { joinAnswers } from '../../registry/source-answers.ts';
import { fetchPublic, refused, tooLarge } from './http-get.ts';

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

/**
 * Fetches a public file. A broken connection is continued by Range where it broke
 * off, inside a run and by a later run; a server that ignores Range starts over.
 *
 * @throws IntegrityError `download.digest`, `download.too-large`, after which nothing is left;
 * RegistryError `download.refused`, `download.too-short`, and what `fetchPublic` throws; DiskError
 */
export async function downloadFile(
  download: Download,
): Promise<{ readonly size: number; readonly digest: Digest }> {
  const { http, url, path } = download;
  await makeDirectory(dirname(path));
  const handle = await openOwnFile(path);
  const file = createResumableFile(handle);
  const source: Source = {
    name: url.host,
    local: false,
    openBudget: (signal) => http.retries.open(url.host, signal),
  };
  try {
    await fillFile(file, {
      ...download,
      sources: [source],
      wanted: describeFile(download),
      prefix: (await handle.stat()).size,
      cutsOff: true,
    });
    await handle.sync();
    return { size: file.size(), digest: file.digest() };
  } catch (error) {
    if (error instanceof IntegrityError) await handle.truncate(0); // nobody continues it
    throw explainDiskFailure(error, { directory: dirname(path), needed: file.size() });
  } finally {
    const { size } = await handle.stat();
    await handle.close();
    if (size === 0) await rm(path, { force: true });
  }
}

function describeFile(download: Download): FillOptions<Source>['wanted'] {
  const { url, digest, limit } = download;
  const name = redactUrl(url);
  return {
    ...(digest && { digest }),
    limit,
    open: (_, options) => open(download, options),
    explainLong: () => tooLarge(url, limit, `more than ${limit}`),
    explainShort: (_, sent) =>
      new RegistryError('download.too-short', `${name} ends after ${sent} bytes`, {
        expected: 'more bytes',
        found: String(sent),
        hint: 'run the same command again later',
      }),
    explainWrong: ({ found, size }) =>
      new IntegrityError(
        'download.digest',
        `${name} should be ${digest ?? 'another file'}, but is ${found} (${size} bytes)`,
        {
          ...(digest && { expected: digest }),
          found,
          hint: 'compare the sha256 with the one its publisher names',
        },
      ),
    explainAll: joinAnswers,
  };
}

async function open(download: Download, options: OpenOptions): Promise<OpenBytes> {
  const { url, limit } = download;
  const { offset } = options;
  const response = await get(download, options);
  const { status, headers, body } = response;
  if (status === 416 && offset > 0) {
    body.resume();
    // RFC 9110 15.5.17: no bytes are left after ours, and the server says how many there are.
    const isAtEnd = headers['content-range'] === `bytes */${offset}`;
    if (isAtEnd) return { offset, body: Readable.from([]), total: offset };
    // What is here is longer than what is there: it was another file.
    return open(download, { ...options, offset: 0 });
  }
  const start = startOf(response, offset);
  const total = totalOf(response);
  if (start !== undefined && (total ?? 0) <= limit) return { offset: start, body, total };
  body.destroy();
  throw start === undefined ? refused(url, status, offset) : tooLarge(url, limit, String(total));
}

const get = ({ http, url, tls }: Download, options: OpenOptions): Promise<HttpResponse> =>
  http.retries.run({ ...options, host: url.host }, () =>
    fetchPublic(http, {
      url,
      signal: options.signal,
      ...(tls && { tls }),
      ...(options.offset > 0 && { headers: { range: `bytes=${options.offset}-` } }),
    }),
  );

/** The first byte of an answer; undefined where it is not what was asked for. */
function startOf({ status, headers }: HttpResponse, offset: number): number | undefined {
  const range = headers['content-range'];
  const continues = typeof range === 'string' && range.startsWith(`bytes ${offset}-`);
  if (status === 200) return 0;
  return status === 206 && continues ? offset : undefined;
}

/** RFC 9110 8.6 and 14.4: bytes of the whole file, where the server says so. */
function totalOf({ headers }: HttpResponse): number | undefined {
  const range = headers['content-range'];
  const text = typeof range === 'string' ? range.split('/')[1] : headers['content-length'];
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
