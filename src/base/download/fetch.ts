import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import type { Digest } from '../digest.ts';
import { explainDiskFailure } from '../disk/disk-errors.ts';
import { makeDirectory } from '../disk/files.ts';
import { openOwnFile } from '../disk/open-file.ts';
import { IntegrityError, RegistryError } from '../errors.ts';
import { readUserInfo } from '../http/address.ts';
import { formatBasic } from '../http/basic.ts';
import { headerOf, readSmallBody } from '../http/body.ts';
import type { Http, HttpResponse } from '../http/http.ts';
import { explainNetworkFailure, isPassingStatus, TransientError } from '../http/network-failure.ts';
import type { TlsOptions } from '../http/tls.ts';
import { parseRetryAfter } from '../retry.ts';
import { redactUrl } from '../text/redact.ts';
import { createResumableFile, fillFile, type FillOptions } from './fill-file.ts';
import {
  isOutOfRange,
  judgeOutOfRange,
  listRanges,
  openByRange,
  parseContentRange,
  startOf,
  totalOf,
  type OutOfRange,
} from './range-forms.ts';
import { joinAnswers } from './source-answers.ts';
import type { OpenBytes, OpenOptions, Source } from './sources.ts';

export type GetOptions = {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: TlsOptions;
  readonly signal: AbortSignal;
};

const MAX_REDIRECTS = 10;

/**
 * GET of a public document: redirects are followed, never from HTTPS to HTTP. User name and
 * password of the URL are sent to its own origin, as Go's client does. The caller judges the
 * status, but a status that a later attempt may cure is thrown.
 *
 * @throws RegistryError `http.redirect`, `http.unavailable`, and errors of `Http`
 */
export async function fetchPublic(http: Http, options: GetOptions): Promise<HttpResponse> {
  let url = options.url;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const headers = { ...options.headers, ...authorize(http, options.url, url) };
    const response = await http.request({ ...options, url, headers });
    const { location } = response.headers;
    if (![301, 302, 303, 307, 308].includes(response.status) || typeof location !== 'string') {
      return checkTransient(response, url);
    }
    response.body.destroy();
    url = nextUrl(url, location);
  }
  throw new RegistryError(
    'http.redirect',
    `${redactUrl(options.url)} redirects more than ${MAX_REDIRECTS} times`,
  );
}

function authorize({ redaction }: Http, named: URL, url: URL): { readonly authorization?: string } {
  const userInfo = url.origin === named.origin ? readUserInfo(named, redaction) : undefined;
  return userInfo ? { authorization: formatBasic(userInfo) } : {};
}

/** The body, or undefined if it has more bytes than the limit. */
export async function readLimited(
  { body }: HttpResponse,
  url: URL,
  limit: number,
): Promise<Buffer | undefined> {
  try {
    return await readSmallBody(body, limit);
  } catch (cause) {
    throw explainNetworkFailure(url.host, cause);
  }
}

/** @throws TransientError `http.unavailable` if a later attempt may get another answer */
export function checkTransient(response: HttpResponse, url: URL): HttpResponse {
  if (!isPassingStatus(response.status)) return response;
  response.body.destroy();
  const wait = response.headers['retry-after'];
  throw new TransientError('http.unavailable', `${redactUrl(url)} answers ${response.status}`, {
    expected: '200',
    found: String(response.status),
    retryAfter: parseRetryAfter(typeof wait === 'string' ? wait : undefined, Date.now()),
    host: url.host,
    answered: true,
    limited: response.status === 429,
  });
}

function nextUrl(from: URL, location: string): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const isSafe =
    to?.protocol === 'https:' || (to?.protocol === 'http:' && from.protocol === 'http:');
  if (to && isSafe) return to;
  throw new RegistryError(
    'http.redirect',
    `${redactUrl(from)} redirects to an address that is not ${from.protocol.slice(0, -1)}`,
  );
}

const refused = (url: URL, status: number, offset = 0): RegistryError =>
  new RegistryError('download.refused', `${redactUrl(url)} answers ${status}`, {
    expected: offset > 0 ? `206 from byte ${offset}, or 200` : '200',
    found: String(status),
    hint: 'check the address; it must be public',
  });

const tooLarge = (url: URL, limit: number, found: string): IntegrityError =>
  new IntegrityError(
    'download.too-large',
    `${redactUrl(url)} has ${found} bytes, but at most ${limit} are expected`,
    { expected: `at most ${limit}`, found, hint: 'check the address' },
  );

export type Download = {
  readonly url: URL;
  /** Absent if only the result made from the bytes can be compared. */
  readonly digest?: Digest;
  /** Bytes; a larger file is not the wanted one. */
  readonly limit: number;
  /** Target of the bytes; a part that an earlier run left there is continued. */
  readonly path: string;
  readonly http: Http;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
  readonly onProgress?: (bytes: number, total?: number) => void;
};

/**
 * Fetches a public file. A broken connection is continued by Range from the byte at which it broke
 * off, inside a run and by a later run; a server that ignores Range starts over.
 *
 * @throws IntegrityError `download.digest`, `download.too-large`, after which nothing is left;
 * RegistryError `download.refused`, `download.too-short`, and errors of `fetchPublic`; DiskError
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
      wanted: describeFile(download, createRangeOpener(download)),
      prefix: (await handle.stat()).size,
      cutsOff: true,
    });
    await handle.sync();
    return { size: file.size(), digest: file.digest() };
  } catch (error) {
    if (error instanceof IntegrityError) await handle.truncate(0); // no later run continues it
    throw explainDiskFailure(error, { directory: dirname(path), needed: file.size() });
  } finally {
    const { size } = await handle.stat();
    await handle.close();
    if (size === 0) await rm(path, { force: true });
  }
}

function describeFile(
  { url, digest, limit }: Download,
  open: (options: OpenOptions) => Promise<OpenBytes>,
): FillOptions<Source>['wanted'] {
  const name = redactUrl(url);
  return {
    ...(digest && { digest }),
    limit,
    open: (_, options) => open(options),
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
          hint: 'compare the SHA-256 with the one that its publisher states',
        },
      ),
    explainAll: joinAnswers,
  };
}

/**
 * Opens the file at any offset. Its size is known from the first answer that states it; some servers
 * know no range without its last byte.
 */
function createRangeOpener(download: Download) {
  let total: number | undefined;
  const open = async (options: OpenOptions): Promise<OpenBytes> => {
    const { offset } = options;
    const known = total;
    const refusals: string[] = [];
    const opened = await openByRange(listRanges(offset, known, true), async (range) => {
      const asked = range === undefined ? { ...options, offset: 0 } : options;
      const answer = await ask(download, asked, range);
      if (isOutOfRange(answer)) refusals.push(answer);
      else total = answer.total ?? total;
      return answer;
    });
    if (isOutOfRange(opened)) throw refused(download.url, 416);
    const mayBeClosed = known === undefined && refusals.length > 0 && (total ?? 0) > offset;
    if (!mayBeClosed) return opened;
    opened.body.destroy();
    return open(options);
  };
  return open;
}

async function ask(
  download: Download,
  options: OpenOptions,
  range: string | undefined,
): Promise<OpenBytes | OutOfRange> {
  const { url, limit } = download;
  const { offset } = options;
  const response = await get(download, options, range);
  const { status, headers, body } = response;
  if (status === 416) {
    body.resume();
    const stated = headerOf(headers, 'content-range');
    // RFC 9110 15.5.17: no bytes are left after ours, and the server reports how many there are.
    if (parseContentRange(stated).size === offset)
      return { offset, body: Readable.from([]), total: offset };
    return judgeOutOfRange(stated, (size) => size > offset);
  }
  const start = startOf(response, offset);
  const total = totalOf(response);
  if (start !== undefined && (total ?? 0) <= limit) return { offset: start, body, total };
  body.destroy();
  throw start === undefined ? refused(url, status, offset) : tooLarge(url, limit, String(total));
}

const get = (
  { http, url, tls }: Download,
  options: OpenOptions,
  range: string | undefined,
): Promise<HttpResponse> =>
  http.retries.run({ ...options, host: url.host }, () =>
    fetchPublic(http, {
      url,
      signal: options.signal,
      ...(tls && { tls }),
      ...(range !== undefined && { headers: { range } }),
    }),
  );

/**
 * A public document of at most `limit` bytes, as text.
 *
 * @throws IntegrityError `download.too-large`; RegistryError `download.refused`, and errors of `fetchPublic`
 */
export function fetchText(
  http: Http,
  options: GetOptions & { readonly limit: number },
): Promise<string> {
  const { url, signal, limit } = options;
  return http.retries.run({ host: url.host, signal }, async () => {
    const response = await fetchPublic(http, options);
    if (response.status === 200) return readText(response, url, limit);
    response.body.destroy();
    throw refused(url, response.status);
  });
}

async function readText(response: HttpResponse, url: URL, limit: number): Promise<string> {
  const text = (await readLimited(response, url, limit))?.toString('utf8');
  if (text !== undefined) return text;
  throw tooLarge(url, limit, `more than ${limit}`);
}
