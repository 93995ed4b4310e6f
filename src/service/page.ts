import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { digestOf } from '../base/digest.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { ApiFailure } from './api-failure.ts';
import type { App, Exchange } from './context.ts';

const FOLDER = new URL('templates/page/', PACKAGE_ROOT);

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing is run, shown or asked that is not of this server, and no text becomes markup. */
const POLICY = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'img-src', 'connect-src'].map((name) => `${name} 'self'`),
  ...['base-uri', 'form-action', 'frame-ancestors'].map((name) => `${name} 'none'`),
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'Cache-Control': 'no-cache', // asked for again each time, and answered by 304
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

type PageFile = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: typeof HEADERS & { ETag: string };
};

/**
 * The page for people, which makes the calls of the interface. Its files are the same for everybody and have
 * no secret: whoever may ask for records is decided by the calls.
 */
export function addPage(app: App): void {
  const files = readFiles();
  for (const path of ['/', '/page/:file']) {
    app.get(path, (exchange) => sendFile(exchange, files.get(exchange.req.path)));
  }
}

/** By the path that they are asked for. */
const readFiles = (): ReadonlyMap<string, PageFile> =>
  new Map(
    readdirSync(FOLDER).flatMap((name) => {
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const bytes = new Uint8Array(readFileSync(new URL(name, FOLDER)));
      const headers = { ...HEADERS, 'ETag': `"${digestOf(bytes)}"`, 'Content-Type': type };
      return [[type === TYPES['.html'] ? '/' : `/page/${name}`, { bytes, headers }]];
    }),
  );

function sendFile(exchange: Exchange, file: PageFile | undefined): Response {
  if (!file) throw new ApiFailure(404, 'path not found');
  const known = (exchange.req.header('if-none-match') ?? '').split(',').map((tag) => tag.trim());
  if (known.includes(file.headers.ETag)) return exchange.body(null, 304, file.headers);
  return exchange.body(file.bytes, 200, file.headers);
}
