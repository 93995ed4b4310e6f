import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
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
  /** True if `fill` reads a file of this machine and needs no signal. */
  readonly isAtHand?: boolean;
};

export type ServeOptions = {
  /** Default: `application/octet-stream`. */
  readonly contentType?: string;
  /** Has the client save it under this name. */
  readonly filename?: string;
  /** For If-Range: strong (RFC 9110 8.8.2.2), so no other content was served within the same second. */
  readonly lastModified?: Date;
  /** Others, such as Cache-Control. They are on every answer except 405. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** The constant parts of all answers with one content. */
export type AnswerTerms = {
  /** Bytes. */
  readonly size: number;
  readonly etag: string;
  readonly modified?: { readonly text: string; readonly seconds: number };
  /** Names and values, in turn: those of every answer, and those of answers that describe the content. */
  readonly about: readonly string[];
  readonly described: readonly string[];
};

export type PlannedAnswer = {
  readonly status: 200 | 206 | 304 | 405 | 412 | 416;
  /** Names and values, in turn. */
  readonly headers: string[];
  /** Absent if no body is sent. Both bytes are included. */
  readonly body?: ByteRange;
};

type Asked = Pick<IncomingMessage, 'method' | 'headers'>;

/** Makes ready all that is the same in every answer. */
export function readTerms(
  { size, etag }: Pick<Served, 'size' | 'etag'>,
  { contentType = 'application/octet-stream', ...options }: ServeOptions,
): AnswerTerms {
  const { lastModified, filename, headers = {} } = options;
  const about = Object.entries(headers).flat();
  about.push('ETag', etag, 'Accept-Ranges', 'bytes', 'X-Content-Type-Options', 'nosniff');
  if (lastModified) about.push('Last-Modified', lastModified.toUTCString());
  const described = [...about, 'Content-Type', contentType];
  if (filename !== undefined) described.push('Content-Disposition', formatDisposition(filename));
  const modified = lastModified && {
    text: lastModified.toUTCString(),
    seconds: secondsOf(lastModified.getTime()),
  };
  return { size, etag, about, described, ...(modified && { modified }) };
}

/** Plans an answer by RFC 9110: methods, preconditions in the order of 13.2.2, ranges. */
export function planAnswer({ method, headers }: Asked, terms: AnswerTerms): PlannedAnswer {
  if (method !== 'GET' && method !== 'HEAD') {
    return { status: 405, headers: ['Allow', 'GET, HEAD', 'Content-Length', '0'] };
  }
  const { size, about } = terms;
  const refused = checkConditions(headers, terms);
  if (refused === 304) return { status: 304, headers: [...about] };
  if (refused === 412) return { status: 412, headers: [...about, 'Content-Length', '0'] };
  // 14.2: Range is defined for GET alone.
  const isMeant = method === 'GET' && isCurrent(headers['if-range'], terms);
  const range = isMeant ? parseRange(headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    const unsatisfied = ['Content-Range', `bytes */${size}`, 'Content-Length', '0'];
    return { status: 416, headers: [...about, ...unsatisfied] };
  }
  return planBody(method, range, terms);
}

function planBody(
  method: string,
  range: ByteRange | undefined,
  { size, described }: AnswerTerms,
): PlannedAnswer {
  const headers = [...described];
  if (range) {
    const { start, end } = range;
    headers.push('Content-Range', `bytes ${start}-${end}/${size}`);
    headers.push('Content-Length', String(end - start + 1));
    return { status: 206, headers, body: range };
  }
  headers.push('Content-Length', String(size));
  if (method === 'HEAD') return { status: 200, headers };
  return { status: 200, headers, body: { start: 0, end: size - 1 } };
}

/** 13.2.2, steps 1 to 4. */
function checkConditions(
  headers: IncomingHttpHeaders,
  { etag, modified }: AnswerTerms,
): 304 | 412 | undefined {
  const changed = modified?.seconds ?? NaN;
  const ifMatch = headers['if-match'];
  if (ifMatch !== undefined) {
    if (!hasTag(ifMatch, etag)) return 412;
  } else if (changed > readTime(headers['if-unmodified-since'])) return 412;
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch === undefined) {
    return changed <= readTime(headers['if-modified-since']) ? 304 : undefined;
  }
  // 13.1.2: the comparison is weak.
  return hasTag(ifNoneMatch.replaceAll('W/', ''), etag) ? 304 : undefined;
}

/** True if the list has the tag. Our tags have no commas in them. */
const hasTag = (list: string, etag: string): boolean =>
  list.split(',').some((tag) => tag.trim() === '*' || tag.trim() === etag);

/** Seconds of a time; NaN if there is no time: every comparison with it is false. */
const secondsOf = (milliseconds: number): number => Math.floor(milliseconds / 1000);

const readTime = (text: string | undefined): number =>
  text === undefined ? NaN : secondsOf(Date.parse(text));

/** 13.1.5: the condition holds if it names exactly the content that would be sent, by tag or by time. */
const isCurrent = (
  condition: string | string[] | undefined,
  { etag, modified }: AnswerTerms,
): boolean =>
  condition === undefined || condition === '' || condition === etag || condition === modified?.text;

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
