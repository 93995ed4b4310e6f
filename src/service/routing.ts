import { cors } from 'hono/cors';
import { getPath } from 'hono/utils/url';
import { toPrintable } from '../base/text/words.ts';
import { BASE_PATH, type App, type Environment, type Exchange, type Service } from './context.ts';
import { ApiFailure, WrongMethod } from './openapi.ts';
import type { MiddlewareHandler } from 'hono';

/* Owns how requests of the API find their routes: paths, methods, types of answers, other origins. */

/** Path of a request. In the API, slashes that are doubled or at the end mean nothing, as in Go's routers. */
export function readRequestPath(request: Request): string {
  const path = getPath(request);
  return /^\/+api\//.test(path) ? path.replaceAll(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '') : path;
}

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const;

export function refuseUnrouted(app: App, { req }: Exchange): never {
  const isApi = isOfApi(req.path);
  const allowed = [...METHODS, ...(isApi ? [] : ['HEAD'])].filter((method) =>
    app.router
      .match(method === 'HEAD' ? 'GET' : method, req.path)[0]
      .some(([[, route]]) => route.path !== '/*'),
  );
  if (allowed.length > 0) throw new WrongMethod(req.method, allowed);
  throw new ApiFailure(404, `path ${toPrintable(req.path).slice(0, LONGEST_PATH)} was not found`);
}

const LONGEST_PATH = 256;

const isOfApi = (path: string): boolean => path.startsWith(`${BASE_PATH}/v2/`);

/** Refuses HEAD in the API, as assisted-service does; images are asked with it. */
export function checkMethod(app: App, exchange: Exchange): void {
  const { method, path } = exchange.req;
  if (method === 'HEAD' && isOfApi(path)) refuseUnrouted(app, exchange);
}

/** Types of the answers of the API, and of files. */
const TYPES: readonly string[] = [
  '*/*',
  'application/*',
  'application/json',
  'application/octet-stream',
];

/** Refuses requests of the API for answers of other types. */
export function checkAccept({ req }: Exchange): void {
  const accept = req.header('accept') ?? '';
  if (accept.trim() === '' || !isOfApi(req.path)) return;
  const types = accept.split(',').map((each) => (each.split(';')[0] ?? '').trim().toLowerCase());
  if (types.some((type) => TYPES.includes(type))) return;
  throw new ApiFailure(
    400,
    'unsupported media type requested, only [application/json] are available',
  );
}

/** Seconds that a browser remembers which requests another origin may make. */
const REMEMBERED = 600;

/** Lets pages of the configured origins use the API; the browser keeps others from the answers. */
export function allowOrigins({
  corsOrigins,
}: Pick<Service, 'corsOrigins'>): MiddlewareHandler<Environment> {
  const allow = cors({
    origin: [...corsOrigins],
    allowMethods: [...METHODS],
    allowHeaders: ['Authorization', 'Content-Type'],
    exposeHeaders: ['Content-Disposition', 'Warning'],
    maxAge: REMEMBERED,
  });
  return (exchange, next) =>
    corsOrigins.includes(exchange.req.header('origin') ?? '') ? allow(exchange, next) : next();
}
