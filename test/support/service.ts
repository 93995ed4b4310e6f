import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { createRedaction } from '../../src/base/text/redact.ts';
import { Secret } from '../../src/base/secret.ts';
import { withoutUndefined } from '../../src/base/lists.ts';
import type { AnsweredRequest } from '../../src/service/app.ts';
import type { ServerLimits } from '../../src/base/http/server.ts';
import { createServiceServer } from '../../src/service/server.ts';
import { openService, type ServiceSettings } from '../../src/service/service.ts';

const redaction = createRedaction();

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
};

export type Call = {
  readonly body?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is, in place of JSON; bytes have no type of their own. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
};

export type TestService = {
  readonly url: string;
  readonly data: string;
  readonly answered: readonly AnsweredRequest[];
  readonly warnings: readonly string[];
  readonly routes: readonly { readonly method: string; readonly path: string }[];
  /** Asks, and checks the answer against the OpenAPI document that the service itself serves. */
  readonly call: (method: string, path: string, call?: Call) => Promise<Answer>;
  readonly close: () => Promise<void>;
};

export const API = '/api/assisted-install';
const SERVICE_KEY = new Secret('0123456789abcdef0123456789abcdef');
export const PULL_SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpjYW5hcnktcGFzc3dvcmQ="}}}';
export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPXmhdrEYpNBELFzRHT6SRI4Aa2wFLqX1Vf8OBBaVcGa me@example';

/** The service on a free port of loopback, with records of its own unless told. */
export async function startService({
  limits,
  ...settings
}: Partial<ServiceSettings> & {
  readonly limits?: Partial<ServerLimits>;
} = {}): Promise<TestService> {
  const data = settings.data ?? (await mkdtemp(join(tmpdir(), 'sealift-service-')));
  const ending = new AbortController();
  const answered: AnsweredRequest[] = [];
  const warnings: string[] = [];
  const opened = await openService({
    data,
    key: SERVICE_KEY,
    auth: { type: 'none' },
    isTls: false,
    urlLifetime: 3_600_000,
    now: Date.now,
    stores: [],
    cacheLimit: 1 << 30,
    digestRate: 1 << 30,
    warn: (message) => warnings.push(message),
    ending: ending.signal,
    host: { env: {}, redaction, cwd: data, signal: ending.signal, emit: () => undefined },
    onAnswer: (request) => answered.push(request),
    ...settings,
  });
  const { server, drain } = createServiceServer(opened, withoutUndefined({ limits }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const judge = await createJudge(url);
  return {
    url,
    data,
    answered,
    warnings,
    routes: opened.app.routes,
    async call(method, path, { body, token, headers, raw } = {}) {
      const answer = await fetch(url + path, {
        method,
        redirect: 'manual',
        headers: {
          ...((body !== undefined || typeof raw === 'string') && {
            'content-type': 'application/json',
          }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(raw !== undefined && { body: raw }),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      judge(method, path, { status: answer.status, type: typeOf(answer), text });
      const isJson = typeOf(answer) === 'application/json' && text !== '';
      const parsed = (isJson ? JSON.parse(text) : {}) as Record<string, unknown>;
      return { status: answer.status, headers: answer.headers, body: parsed, text };
    },
    async close() {
      ending.abort();
      server.closeIdleConnections();
      await drain(AbortSignal.timeout(1000)).catch(() => undefined);
      await opened.close();
      if (settings.data === undefined) await rm(data, { recursive: true, force: true });
    },
  };
}

const typeOf = ({ headers }: Response): string =>
  (headers.get('content-type') ?? '').replace(/;.*/, '');

type Judge = (
  method: string,
  path: string,
  answer: { readonly status: number; readonly type: string; readonly text: string },
) => void;

type Operation = {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, unknown>> }>
  >;
};

/** Throws where an answer is not what the document says of its operation. */
export async function createJudge(url: string): Promise<Judge> {
  const document = (await (await fetch(`${url}${API}/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addFormat('uuid', /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  ajv.addFormat('date-time', (text) => text === new Date(text).toISOString());
  ajv.addSchema(document, 'doc');
  const compiled = new Map<string, ValidateFunction>();
  return (method, path, { status, type, text }) => {
    // Slashes at the end, and doubled ones, mean nothing.
    const plain = (path.split('?')[0] ?? '').replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1');
    // RFC 9110 9.3.2: HEAD is answered as GET is, without the body.
    const asked = method === 'HEAD' ? 'get' : method.toLowerCase();
    const entries = Object.entries(document.paths)
      .sort(([a], [b]) => a.split('{').length - b.split('{').length)
      .filter(([template]) =>
        new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`).test(
          plain,
        ),
      );
    const entry = entries.find(([, operations]) => operations[asked]);
    const operation = entry?.[1][asked];
    if (!entry || !operation) {
      if (status === 404 || status === 405) return; // what no operation is for
      if (type === 'text/html') return; // the page
      throw new Error(`${method} ${plain} is not in the document, but answers ${status}`);
    }
    if (method === 'HEAD' && status === 405) return; // only images are asked with it
    const described = operation.responses[status];
    if (!described) throw new Error(`${method} ${entry[0]} answers ${status}: ${text}`);
    if (method === 'HEAD') return;
    if (!described.content) {
      if (text !== '') throw new Error(`${method} ${entry[0]} ${status} has a body`);
      return;
    }
    if (!(type in described.content)) throw new Error(`${method} ${entry[0]} answers ${type}`);
    if (type !== 'application/json') return;
    const escape = (part: string): string =>
      encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
    const pointer = ['paths', entry[0], method.toLowerCase(), 'responses', String(status)];
    const $ref = `doc#/${[...pointer, 'content', type, 'schema'].map(escape).join('/')}`;
    const validate = compiled.get($ref) ?? ajv.compile({ $ref });
    compiled.set($ref, validate);
    if (validate(JSON.parse(text))) return;
    throw new Error(`${method} ${entry[0]} ${status}: ${ajv.errorsText(validate.errors)}: ${text}`);
  };
}

export const readOpenApiFile = async (): Promise<object> =>
  JSON.parse(
    await readFile(new URL('../../schema/service.openapi.json', import.meta.url), 'utf8'),
  ) as object;
