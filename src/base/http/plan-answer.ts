import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { parseRange, type ByteRange } from './range.ts';

/** Served bytes, of a known size, that never change under their ETag. */
export type Served = {
  /** Bytes. */
  readonly size: number;
  /** Strong (RFC 9110 8.8.3), with its quotes. */
  readonly etag: string;
  /**
   * Fills the buffer with the bytes from `offset`; at once, and without a promise, if they are at
   * hand. The buffer is no longer written to when it settles.
   */
  readonly fill: (bytes: Buffer, offset: number, signal: AbortSignal) => Promise<void> | undefined;
};

export type ServeOptions = {
  /** Default: `application/octet-stream`. */
  readonly contentType?: string;
  /** Has the client save it under this name. */
  readonly filename?: string;
  /**
   * Strong (RFC 9110 8.8.2.2): no other content was ever served with a time of the same second. It may be
   * named in If-Range.
   */
  readonly lastModified?: Date;
  /** Others, such as Cache-Control. They are on every answer except 405. */
  readonly headers?: OutgoingHttpHeaders;
};

/** The answer to a request. */
export type PlannedAnswer = {
  readonly status: 200 | 206 | 304 | 405 | 412 | 416;
  readonly headers: OutgoingHttpHeaders;
  /** Absent if no body is sent. Both bytes are included. */
  readonly body?: ByteRange;
};

type Asked = Pick<IncomingMessage, 'method' | 'headers'>;
type About = Pick<Served, 'size' | 'etag'>;

/** Plans an answer by RFC 9110: methods, preconditions in the order of 13.2.2, ranges. */
export function planAnswer(asked: Asked, served: About, options: ServeOptions): PlannedAnswer {
  if (asked.method !== 'GET' && asked.method !== 'HEAD') {
    return { status: 405, headers: { 'Allow': 'GET, HEAD', 'Content-Length': 0 } };
  }
  const about: OutgoingHttpHeaders = {
    ...options.headers,
    'ETag': served.etag,
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
  };
  if (options.lastModified) about['Last-Modified'] = options.lastModified.toUTCString();
  const refused = checkConditions(asked.headers, served.etag, options.lastModified);
  if (refused === 304) return { status: 304, headers: about };
  if (refused === 412) return { status: 412, headers: { ...about, 'Content-Length': 0 } };
  return planBody(asked, served, { ...options, about });
}

function planBody(
  { method, headers }: Asked,
  { size, etag }: About,
  { about, ...options }: ServeOptions & { readonly about: OutgoingHttpHeaders },
): PlannedAnswer {
  // 14.2: Range is defined for GET alone.
  const condition = String(headers['if-range'] ?? '');
  const isMeant = method === 'GET' && isCurrent(condition, etag, options.lastModified);
  const range = isMeant ? parseRange(headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    const unsatisfied = { 'Content-Range': `bytes */${size}`, 'Content-Length': 0 };
    return { status: 416, headers: { ...about, ...unsatisfied } };
  }
  const described: OutgoingHttpHeaders = {
    ...about,
    'Content-Type': options.contentType ?? 'application/octet-stream',
  };
  if (options.filename !== undefined) {
    described['Content-Disposition'] = formatDisposition(options.filename);
  }
  if (range) {
    const { start, end } = range;
    described['Content-Range'] = `bytes ${start}-${end}/${size}`;
    described['Content-Length'] = end - start + 1;
    return { status: 206, headers: described, body: range };
  }
  described['Content-Length'] = size;
  const body = { start: 0, end: size - 1 };
  return { status: 200, headers: described, ...(method === 'GET' && { body }) };
}

/** 13.2.2, steps 1 to 4. */
function checkConditions(
  headers: IncomingHttpHeaders,
  etag: string,
  lastModified: Date | undefined,
): 304 | 412 | undefined {
  const changed = secondsOf(lastModified?.getTime());
  const ifMatch = headers['if-match'];
  if (ifMatch !== undefined) {
    if (!hasTag(ifMatch, etag)) return 412;
  } else if (changed > secondsOf(Date.parse(headers['if-unmodified-since'] ?? ''))) return 412;
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch === undefined) {
    return changed <= secondsOf(Date.parse(headers['if-modified-since'] ?? '')) ? 304 : undefined;
  }
  // 13.1.2: the comparison is weak.
  return hasTag(ifNoneMatch.replaceAll('W/', ''), etag) ? 304 : undefined;
}

/** True if the list has the tag. Our tags have no commas in them. */
const hasTag = (list: string, etag: string): boolean =>
  list.split(',').some((tag) => tag.trim() === '*' || tag.trim() === etag);

/** Seconds of a time; NaN if there is no time: every comparison with it is false. */
const secondsOf = (milliseconds = NaN): number => Math.floor(milliseconds / 1000);

/** 13.1.5: the condition holds if it names exactly the content that would be sent, by tag or by time. */
const isCurrent = (condition: string, etag: string, lastModified: Date | undefined): boolean =>
  condition === '' || condition === etag || condition === lastModified?.toUTCString();

/** RFC 9110 5.6.2. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** RFC 6266; RFC 8187 for text that is not ASCII. */
function formatDisposition(filename: string): string {
  if (TOKEN.test(filename)) return `attachment; filename=${filename}`;
  const plain = filename.replace(/[^\x20-\x7e]/g, '_').replace(/["\\]/g, '_');
  const extended = encodeURIComponent(Buffer.from(filename).toString()).replace(
    /['()*]/g,
    (character) => {
      return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
    },
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}
