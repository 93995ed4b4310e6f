import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { untilAborted, withTimeLimit } from '../base/wait.ts';
import type { App, Service } from './context.ts';
import { ApiFailure } from './api-failure.ts';

/** Counted for `/metrics`: no label has a value that clients choose. */
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
  /** The client does not have all of it. */
  readonly isCut: boolean;
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'sealift_http_requests_total',
    help: 'Requests that were answered.',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const cut = new Counter({
    name: 'sealift_downloads_cut_total',
    help: 'Answers with bytes of images and files that ended before the client had all of them.',
    labelNames: ['route'],
    registers,
  });
  const durations = new Histogram({
    name: 'sealift_http_request_duration_seconds',
    help: 'Time until the answer was handed over.',
    labelNames: ['route'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600],
    registers,
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

/** `/live`: it runs; `/ready` and `/health`: it answers with its records, and has an ISO to serve. */
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

/** Milliseconds; a database may be there and not answer. */
const CHECK = 3000;

/** @throws ApiFailure 503 */
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
