import type { Http } from '../http/http.ts';
import type { TlsOptions } from '../http/tls.ts';
import { withoutUndefined } from '../members.ts';

type S3Request = {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

type HandlerOptions = { readonly abortSignal?: unknown; readonly requestTimeout?: number };

/** Headers that our door sets by itself, or cannot send. */
const LEFT_OUT = new Set(['content-length', 'expect', 'connection']);

/** Has the SDK speak through our one door: the same proxies, certificates and time limits as for registries. */
export const createS3Handler = (http: Http, tls: TlsOptions | undefined) => ({
  async handle(request: S3Request, { abortSignal, requestTimeout }: HandlerOptions = {}) {
    const entries = Object.entries(request.headers);
    const { status, headers, body } = await http.request({
      method: request.method as 'GET',
      url: urlOf(request),
      headers: Object.fromEntries(entries.filter(([name]) => !LEFT_OUT.has(name.toLowerCase()))),
      ...withoutUndefined({
        body: request.body as Uint8Array | string | undefined,
        signal: abortSignal as AbortSignal | undefined,
        headersTimeout: requestTimeout,
        tls,
      }),
    });
    const texts = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]);
    return {
      response: {
        statusCode: status,
        headers: Object.fromEntries(texts) as Record<string, string>,
        body,
      },
    };
  },
  destroy: () => undefined,
});

function urlOf({ protocol, hostname, port, path, query = {} }: S3Request): URL {
  const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`);
  url.search = Object.entries(query)
    .flatMap(([name, values]) => [values].flat().map((value) => [name, value ?? ''] as const))
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join('&');
  return url;
}

/** RFC 3986 2.3, as the signature has it. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
