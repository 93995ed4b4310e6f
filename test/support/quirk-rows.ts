import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { ELSEWHERE, type Asked, type Quirk, type Reply } from './quirky-front.ts';

/* Habits of registries, and of proxies in front of them, that a standard allows or that people met. */

export type Row = {
  readonly family: string;
  readonly name: string;
  /** Made for each run, as some count. */
  readonly create: () => Quirk;
  /** True if every command must succeed; else each succeeds, or names what is wrong. */
  readonly isHarmless: boolean;
  /** True if a reader of parts cannot read it: parts of packed bytes are not those of the bytes. */
  readonly hasNoParts?: boolean;
  /** Credentials of the user; default: none. */
  readonly credential?: 'entry' | 'helper' | 'missing helper';
  /** True if it asks for patience without end, for which some commands have ten minutes. */
  readonly isEndless?: boolean;
  /** True if blobs break off: they come in several parts, none of them twice. */
  readonly isBroken?: boolean;
};

type Kind = Asked['kind'];
type Change = (reply: Reply, asked: Asked) => Reply;

const refuse = (status: number, headers: Reply['headers'] = {}): Reply => ({
  status,
  headers,
  body: Buffer.from('<html>no</html>'),
});

/** Changes what comes for reading one kind of thing. */
const changing =
  (kinds: readonly Kind[], change: Change): (() => Quirk) =>
  () =>
  async (asked, next) => {
    const reply = await next();
    const isRead = asked.method === 'GET' || asked.method === 'HEAD';
    return isRead && kinds.includes(asked.kind) ? change(reply, asked) : reply;
  };

const withHeaders = (reply: Reply, headers: Reply['headers']): Reply => {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const kept = Object.entries(reply.headers).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...reply, headers: { ...Object.fromEntries(kept), ...headers } };
};

const BOTH: readonly Kind[] = ['manifests', 'blobs'];

const STATUSES = [206, 301, 307, 400, 401, 403, 404, 405, 410, 416, 425, 429, 500, 501, 503];
const RETRIED = [425, 429, 500, 503];

const codes: readonly Row[] = STATUSES.flatMap((status) =>
  (['HEAD', 'GET'] as const).flatMap((method) =>
    BOTH.flatMap((kind) =>
      (['once', 'always'] as const).map((times): Row => {
        const isHead = method === 'HEAD';
        const isRetried = RETRIED.includes(status);
        // A registry that always asks for patience before an upload never gives in.
        const isEndless = isRetried && times === 'always';
        return {
          family: 'codes',
          name: `${status} to ${method} of ${kind}, ${times}`,
          isHarmless: isHead ? !isEndless || kind === 'manifests' : isRetried && times === 'once',
          isEndless,
          create: () => (asked, next) => {
            const isMeant =
              asked.method === method &&
              asked.kind === kind &&
              (times === 'always' || asked.nth === 1);
            return isMeant ? refuse(status) : next();
          },
        };
      }),
    ),
  ),
);

const CODINGS: readonly (readonly [
  name: string,
  pack: (bytes: Buffer) => Buffer,
  isKnown: boolean,
])[] = [
  ['gzip', gzipSync, true],
  ['x-gzip', gzipSync, true],
  ['GZIP', gzipSync, true],
  ['deflate', deflateSync, true],
  ['br', brotliCompressSync, true],
  ['identity', (bytes) => bytes, true],
  ['identity, gzip', gzipSync, true],
  ['zstd', (bytes) => bytes, false],
  ['gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes)), false],
  ['gzip that is none', (bytes) => bytes, false],
  ['gzip cut off', (bytes) => gzipSync(bytes).subarray(0, -9), false],
];

const codings: readonly Row[] = CODINGS.flatMap(([name, pack, isKnown]) =>
  [['manifests'], ['blobs'], BOTH].map((kinds): Row => ({
    family: 'codings',
    name: `${name}, for ${kinds.join(' and ')}`,
    isHarmless: isKnown,
    hasNoParts: kinds.includes('blobs') && name !== 'identity',
    create: changing(kinds as Kind[], (reply) => {
      const body = pack(reply.body);
      const coding = name.replace(/ (?:that|cut).*/, '');
      const headers = { 'content-encoding': coding, 'content-length': String(body.length) };
      return { ...withHeaders(reply, headers), body };
    }),
  })),
);

/** Breaks the first answer of each blob off, and answers ranges in one way. */
const breaking = (onRange: (reply: Reply, range: string) => Reply | undefined): (() => Quirk) => {
  const isLong = ({ body }: Reply): boolean => body.length > 3000;
  return () => async (asked, next) => {
    const { range } = asked.headers;
    const reply = await next();
    if (asked.kind !== 'blobs' || asked.method !== 'GET' || !isLong(reply)) return reply;
    if (range === undefined) return asked.nth === 1 ? { ...reply, cutAfter: 2000 } : reply;
    return onRange(reply, range) ?? reply;
  };
};

const RANGES: readonly (readonly [
  name: string,
  isHarmless: boolean,
  onRange: (reply: Reply, range: string) => Reply | undefined,
])[] = [
  ['of both forms', true, () => undefined],
  ['of the closed form', true, (_, range) => (range.endsWith('-') ? refuse(416) : undefined)],
  ['of the open form', true, (_, range) => (range.endsWith('-') ? undefined : refuse(416))],
  [
    'without a size',
    true,
    (reply) =>
      withHeaders(reply, {
        'content-range': String(reply.headers['content-range']).replace(/\/\d+$/, '/*'),
      }),
  ],
  ['with Content-Range in capitals', true, (reply) => capitalised(reply)],
  ['without Content-Range', false, (reply) => withHeaders(reply, { 'content-range': '' })],
  [
    'with another Content-Range',
    false,
    (reply) => withHeaders(reply, { 'content-range': 'bytes 0-9/10' }),
  ],
  [
    'that are packed',
    false,
    (reply) => ({
      ...withHeaders(reply, { 'content-encoding': 'gzip', 'content-length': '' }),
      body: gzipSync(reply.body),
    }),
  ],
  ['that it never has', false, () => refuse(416)],
  ['that it refuses', false, () => refuse(403)],
];

const capitalised = (reply: Reply): Reply => ({
  ...reply,
  headers: Object.fromEntries(
    Object.entries(reply.headers).map(([name, value]) => [name.toUpperCase(), value]),
  ),
});

const ranges: readonly Row[] = [
  ...RANGES.map(([name, isHarmless, onRange]): Row => ({
    family: 'ranges',
    name,
    isHarmless,
    isBroken: true,
    create: breaking(onRange),
  })),
];

const sizes: readonly Row[] = [
  ...BOTH.map((kind): Row => ({
    family: 'sizes',
    name: `no Content-Length of ${kind}`,
    isHarmless: true,
    create: changing([kind], (reply) => withHeaders(reply, { 'content-length': '' })),
  })),
  ...BOTH.flatMap((kind) =>
    [1, -1].map((more): Row => ({
      family: 'sizes',
      name: `Content-Length of ${kind} ${more > 0 ? 'one more' : 'one less'} than there is`,
      isHarmless: false,
      isEndless: more > 0, // the byte is waited for
      create: changing([kind], (reply) =>
        withHeaders(reply, { 'content-length': String(reply.body.length + more) }),
      ),
    })),
  ),
  ...BOTH.map((kind): Row => ({
    family: 'sizes',
    name: `Content-Length 0 of HEAD of ${kind}`,
    isHarmless: true,
    create: changing([kind], (reply, { method }) =>
      method === 'HEAD' ? withHeaders(reply, { 'content-length': '0' }) : reply,
    ),
  })),
];

const DATES = ['', 'Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'yesterday'];
const dates: readonly Row[] = [
  ...['Date', 'Last-Modified', 'Expires'].flatMap((header) =>
    DATES.map((date): Row => ({
      family: 'dates',
      name: `${header}: ${date === '' ? 'none' : date}`,
      isHarmless: true,
      create: changing(BOTH, (reply) => withHeaders(reply, { [header.toLowerCase()]: date })),
    })),
  ),
  ...['', '0', '1', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT', '-1'].map((after): Row => ({
    family: 'dates',
    name: `429, once, with Retry-After: ${after === '' ? 'none' : after}`,
    isHarmless: true,
    create: () => (asked, next) =>
      BOTH.includes(asked.kind) && asked.method === 'GET' && asked.nth === 1
        ? refuse(429, { 'retry-after': after })
        : next(),
  })),
];

const HEADERS: readonly (readonly [name: string, isHarmless: boolean, change: Change])[] = [
  ['names in capitals', true, capitalised],
  ['no digest', true, (reply) => withHeaders(reply, { 'docker-content-digest': '' })],
  [
    'a digest of sha512',
    true,
    (reply) => withHeaders(reply, { 'docker-content-digest': `sha512:${'a'.repeat(128)}` }),
  ],
  [
    'a digest with blanks',
    true,
    (reply) =>
      withHeaders(reply, {
        'docker-content-digest': ` ${String(reply.headers['docker-content-digest'] ?? '')} `,
      }),
  ],
  [
    'a wrong digest',
    false,
    (reply) => withHeaders(reply, { 'docker-content-digest': `sha256:${'a'.repeat(64)}` }),
  ],
  ['no type', true, (reply) => withHeaders(reply, { 'content-type': '' })],
  [
    'type application/json',
    true,
    (reply) => withHeaders(reply, { 'content-type': 'application/json' }),
  ],
  ['type text/html', true, (reply) => withHeaders(reply, { 'content-type': 'text/html' })],
  [
    'a type with a parameter',
    true,
    (reply) =>
      withHeaders(reply, {
        'content-type': `${String(reply.headers['content-type'] ?? '')}; charset=utf-8`,
      }),
  ],
  ['empty Link, ETag and Warning', true, (reply) => withHeaders(reply, { warning: '299 - "old"' })],
];
const headers: readonly Row[] = HEADERS.map(([name, isHarmless, change]) => ({
  family: 'headers',
  name,
  isHarmless,
  create: changing(BOTH, change),
}));

const redirects: readonly Row[] = BOTH.flatMap((kind) =>
  [301, 302, 303, 307, 308].flatMap((status) =>
    (['relative', 'absolute'] as const).map((form): Row => ({
      family: 'redirects',
      name: `${status} of ${kind}, ${form}`,
      isHarmless: true,
      create: () => (asked, next) => {
        const { path, method, headers } = asked;
        const isMeant = asked.kind === kind && !path.startsWith(ELSEWHERE);
        if (!isMeant || (method !== 'GET' && method !== 'HEAD')) return next();
        const base = form === 'absolute' ? `http://${headers.host ?? ''}` : '';
        return refuse(status, { location: `${base}${ELSEWHERE}${path}` });
      },
    })),
  ),
);

export const PLAIN_ROWS: readonly Row[] = [
  ...[codes, codings, ranges, sizes, dates, headers, redirects].flat(),
];
