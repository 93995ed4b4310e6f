import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { routePath } from 'hono/route';
import { IntegrityError, RegistryError, SealiftError } from '../base/errors.ts';
import { addClusterRoutes, addVersionRoutes } from './clusters.ts';
import { BASE_PATH, type App, type Environment, type Service, checkAsker } from './context.ts';
import { isReadMethod } from './door.ts';
import { addFixedRoutes } from './fixed.ts';
import { addDownloadRoutes } from './images/downloads.ts';
import { addFormRoutes } from './forms/routes.ts';
import { addPresignedRoutes } from './images/presigned.ts';
import { addImageRoutes } from './images/routes.ts';
import { addInfraEnvRoutes } from './infra-envs/routes.ts';
import { formatFailure, PRIVATE, RETRY_AFTER } from './failure.ts';
import { ApiFailure, WrongMethod } from './openapi.ts';
import { addHostUrlRoutes } from './images/host-urls.ts';
import { addContentsRoute } from './store/contents.ts';
import { addPlainRules } from './transport.ts';
import { addPage, addProbes, type CountedRequest, type Metrics } from './page.ts';
import {
  allowOrigins,
  checkAccept,
  checkMethod,
  readRequestPath,
  refuseUnrouted,
} from './routing.ts';

/* Owns the order of the routes, and the answers to their errors. */

/** An answered request, without its query, which may hold a token. */
export type AnsweredRequest = CountedRequest & {
  /** Cause of a failure on the server's side. */
  readonly error?: unknown;
};

export type AppOptions = {
  readonly metrics: Metrics;
  readonly onAnswer: (request: AnsweredRequest) => void;
};

export function createApp(service: Service, { metrics, onAnswer }: AppOptions): App {
  const app: App = new Hono<Environment>({ getPath: readRequestPath });
  app.use(async (exchange, next) => {
    const started = performance.now();
    await next();
    if (exchange.get('isOffered')) return; // the worker reports its answer
    const served = exchange.get('served');
    const { error = served?.error, req } = exchange;
    const route = routePath(exchange, -1);
    const status = served?.status ?? exchange.res.status;
    const { incoming } = exchange.env;
    service.audit.answered({ incoming, method: req.method, route, status, error });
    onAnswer({
      method: req.method,
      route: route === '/*' ? 'unknown' : route,
      status,
      isCut: served?.complete === false,
      milliseconds: performance.now() - started,
      ...(error !== undefined && !(error instanceof ApiFailure) && { error }),
    });
  });
  app.use(allowOrigins(service));
  app.use(async (exchange, next) => {
    for (const [name, value] of Object.entries(PRIVATE)) exchange.header(name, value);
    checkAsker(service, exchange.env.incoming);
    checkAccept(exchange);
    checkMethod(app, exchange);
    service.knownUrls.begin(exchange.env.incoming);
    await next();
  });
  addPlainRules(app, service);
  addProbes(app, service, metrics);
  app.use(async (exchange, next) => {
    if (exchange.req.path.startsWith(BASE_PATH)) service.budgets.countCall(exchange.env.incoming);
    if (!isReadMethod(exchange.req.method)) await service.audit.requireWritable();
    await next();
  });
  app.get(`${BASE_PATH}/openapi.json`, (exchange) =>
    exchange.body(service.openApi.bytes, 200, { 'Content-Type': 'application/json' }),
  );
  addClusterRoutes(app, service);
  addInfraEnvRoutes(app, service);
  addFormRoutes(app, service);
  addDownloadRoutes(app, service);
  addHostUrlRoutes(app, service);
  addPresignedRoutes(app, service);
  addImageRoutes(app, service);
  addVersionRoutes(app, service);
  addContentsRoute(app, service);
  addFixedRoutes(app, service);
  addPage(app);
  app.notFound((exchange) => refuseUnrouted(app, exchange));
  app.onError((error) => answerFailure(error));
  return app;
}

/** RFC 9110, 11.6.1. */
const HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'Bearer' },
  ...RETRY_AFTER,
};

/** Formats an error as an answer. Details of unforeseen errors go to the log only. */
export function answerFailure(error: Error): Response {
  const failure =
    error instanceof ApiFailure
      ? error
      : error instanceof HTTPException
        ? new ApiFailure(error.status, error.message)
        : error instanceof RegistryError
          ? new ApiFailure(503, `the ${placeOf(error)} cannot be read now`)
          : explainOther(error);
  return Response.json(formatFailure(failure), {
    status: failure.status,
    headers: {
      ...PRIVATE,
      ...HEADERS[failure.status],
      ...(failure instanceof WrongMethod && { Allow: failure.allow }),
    },
  });
}

/** A tenant can act on some failures of records. The others are for the operator, in the log. */
function explainOther(error: Error): ApiFailure {
  const code = error instanceof SealiftError ? error.code : '';
  if (code === 'service.tenant-limit') return new ApiFailure(403, error.message);
  if (code === 'service.record-damaged') return new ApiFailure(500, error.message);
  if (error instanceof IntegrityError && code.startsWith('service.')) {
    return new ApiFailure(503, 'the records cannot be read now');
  }
  return new ApiFailure(500, 'internal error');
}

const placeOf = ({ code }: RegistryError): string =>
  code === 'service.database' ? 'database' : 'store';
