import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { digestOf } from '../base/digest.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { untilAborted, withTimeLimit } from '../base/wait.ts';
import type { Audit } from './audit/audit.ts';
import type { App, Exchange, Service } from './context.ts';
import { ApiFailure } from './openapi.ts';

/* Owns the web page, the metrics and the probes. */

type PageFile = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: typeof HEADERS & { ETag: string };
};

/** Counters for `/metrics`: no label has a value that clients choose. */
export type Metrics = {
  readonly count: (request: CountedRequest) => void;
  readonly format: () => Promise<string>;
  readonly contentType: string;
};

export type CountedRequest = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly milliseconds: number;
  /** True if the client did not receive all of the answer. */
  readonly isCut: boolean;
};

/** The files are the same for every user and hold no secrets; the API checks access to records. */
export function addPage(app: App): void {
  const files = readFiles();
  for (const path of ['/', '/page/:file']) {
    app.get(path, (exchange) => sendFile(exchange, files.get(exchange.req.path)));
  }
}

/** @param audit counts the lines of the audit log that did not reach syslog */
export function createMetrics(audit: Pick<Audit, 'dropped'>): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'sealift_http_requests_total',
    help: 'Answered requests.',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const cut = new Counter({
    name: 'sealift_downloads_cut_total',
    help: 'Downloads that ended before the client had all bytes.',
    labelNames: ['route'],
    registers,
  });
  const durations = new Histogram({
    name: 'sealift_http_request_duration_seconds',
    help: 'Time until the answer was sent.',
    labelNames: ['route'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600],
    registers,
  });
  new Gauge({
    name: 'sealift_audit_syslog_dropped',
    help: 'Lines of the audit log that did not reach syslog.',
    registers,
    collect() {
      this.set(audit.dropped());
    },
  });
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of this process.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  return {
    count({ method, route, status, milliseconds, isCut }) {
      if (isCut) cut.inc({ route });
      requests.inc({ method, route, status });
      durations.observe({ route }, milliseconds / 1000);
    },
    format: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

/** `/live`: the process runs; `/ready` and `/health`: its records can be read and it has an ISO to serve. */
export function addProbes(app: App, service: Service, metrics: Metrics): void {
  app.get('/live', (exchange) => exchange.json({ status: 'ok' }));
  for (const path of ['/ready', '/health']) {
    app.get(path, async (exchange) => {
      await requireReady(service);
      return exchange.json({ status: 'ok' });
    });
  }
  app.get('/metrics', async (exchange) =>
    exchange.body(await metrics.format(), 200, { 'Content-Type': metrics.contentType }),
  );
}

const FOLDER = new URL('templates/page/', PACKAGE_ROOT);

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Policy that lets the page run, show and request only content of this server; no text becomes markup. */
const POLICY = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'img-src', 'connect-src'].map((name) => `${name} 'self'`),
  ...['base-uri', 'form-action', 'frame-ancestors'].map((name) => `${name} 'none'`),
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'Cache-Control': 'no-cache', // revalidated each time, and answered with 304
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** Reads the files, by request path. */
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

/** Milliseconds allowed for the check; a database may accept connections and not answer. */
const CHECK = 3000;

async function requireReady({ ending, state, releases }: Service): Promise<void> {
  if (ending.aborted) throw new ApiFailure(503, 'the service is ending');
  try {
    await withTimeLimit(CHECK, new AbortController().signal, (limit) =>
      untilAborted(state.check(), limit),
    );
  } catch (cause) {
    throw new ApiFailure(503, 'the records cannot be read', cause);
  }
  if (await releases.isReady()) return;
  throw new ApiFailure(503, 'the store has no ISO that can be read');
}
