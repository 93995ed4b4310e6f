import { afterAll, beforeAll, expect, it } from 'vitest';
import { readOpenApiFile, startService, type TestService } from '../support/service.ts';

/* Owns the comparison of the routes with the OpenAPI document. */

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

type Document = { readonly paths: Readonly<Record<string, object>> };

/** The page and its files, which no program asks for. */
const PAGE = ['GET /', 'GET /page/{file}'];

it('has every route as an operation, and every operation as a route', async () => {
  const { paths } = (await readOpenApiFile()) as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const routes = service.routes
    .filter(({ method }) => method !== 'ALL') // what every request passes
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  expect([...routes].sort()).toEqual([...operations, ...PAGE].sort());
});
