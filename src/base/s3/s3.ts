import type { S3Client } from '@aws-sdk/client-s3';
import { variableOf } from '../environment.ts';
import { ConfigError } from '../errors.ts';
import type { Http } from '../http/http.ts';
import type { TlsOptions } from '../http/tls.ts';
import { withoutUndefined } from '../lists.ts';
import type { Retries } from '../retry.ts';
import { untilAborted } from '../wait.ts';
import { explainS3Failure } from './failure.ts';
import type * as sdkModule from './sdk.ts';

type Sdk = typeof sdkModule;

export type S3Call = {
  readonly sdk: Sdk;
  readonly client: S3Client;
  readonly options: { readonly abortSignal: AbortSignal; readonly requestTimeout?: number };
};

export type S3CallOptions = {
  /** Object of the request, for errors: `s3://bucket/key`. */
  readonly about: string;
  readonly signal: AbortSignal;
  /** Milliseconds until the answer begins, including the time for sending; default: as for all requests. */
  readonly timeout?: number;
};

/** An object store; nothing is loaded or asked before the first call. */
export type S3 = {
  /**
   * Makes one request, and repeats it after a failure that may pass.
   *
   * @throws the explanation of the answer by `explainS3Failure`; ConfigError
   * `object-store.credentials`, `object-store.region`
   */
  readonly call: <Output>(
    operation: (call: S3Call) => Promise<Output>,
    options: S3CallOptions,
  ) => Promise<Output>;
  /** The address of the service; undefined if it follows from the region. */
  readonly endpoint: string | undefined;
  /** Host of the service: for messages, and for its retries. */
  readonly hostOf: (signal: AbortSignal) => Promise<string>;
  readonly retries: Retries;
};

export type S3Options = {
  readonly http: Http;
  readonly tls?: TlsOptions;
  readonly env: NodeJS.ProcessEnv;
};

/**
 * The service that the variables of AWS name: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION,
 * AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the settings that the
 * SDK finds in profiles and on the machine. A service that is named by its address is addressed by
 * paths, not by names of hosts.
 */
export function createS3(options: S3Options): S3 {
  const { http, env } = options;
  let opened: Promise<{ readonly sdk: Sdk; readonly client: S3Client }> | undefined;
  const open = () => (opened ??= openClient(options));
  return {
    endpoint: endpointOf(env),
    retries: http.retries,
    hostOf: async (signal) => identify((await open()).client, http, signal),
    async call(operation, { about, signal, timeout }) {
      const { sdk, client } = await open();
      const host = await identify(client, http, signal);
      const given = { abortSignal: signal, ...withoutUndefined({ requestTimeout: timeout }) };
      return http.retries.run({ host, signal }, async () => {
        try {
          return await operation({ sdk, client, options: given });
        } catch (error) {
          signal.throwIfAborted();
          throw explainS3Failure(error, { about, host });
        }
      });
    },
  };
}

const endpointOf = (env: NodeJS.ProcessEnv): string | undefined =>
  variableOf(env, 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL');

async function openClient({ http, tls, env }: S3Options) {
  // The SDK prints its own warning on versions of Node that we support.
  Object.assign(process.env, { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' });
  const sdk = await import('./sdk.ts');
  const endpoint = endpointOf(env);
  const region = variableOf(env, 'AWS_REGION', 'AWS_DEFAULT_REGION');
  const client = new sdk.S3Client({
    ...withoutUndefined({
      endpoint,
      region: region ?? (endpoint === undefined ? undefined : 'us-east-1'),
      credentials: staticCredentials(env),
    }),
    forcePathStyle: endpoint !== undefined,
    // Services other than AWS refuse checksums that they do not know; the signature covers the bytes.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 1,
    requestHandler: createS3Handler(http, tls),
  });
  return { sdk, client };
}

function staticCredentials(env: NodeJS.ProcessEnv) {
  const accessKeyId = variableOf(env, 'AWS_ACCESS_KEY_ID');
  const secretAccessKey = variableOf(env, 'AWS_SECRET_ACCESS_KEY');
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  const sessionToken = variableOf(env, 'AWS_SESSION_TOKEN');
  return { accessKeyId, secretAccessKey, ...withoutUndefined({ sessionToken }) };
}

/**
 * Finds our identity before anything is sent; secrets are masked from now on.
 *
 * @returns the host of the service
 */
async function identify(
  { config }: S3Client,
  { redaction }: Http,
  signal: AbortSignal,
): Promise<string> {
  // Both may ask a service of the machine, which may not answer.
  const finding = config.region().catch((cause: unknown) => {
    throw noRegion(cause);
  });
  const region = await untilAborted(finding, signal);
  const asking = config.credentials().catch((cause: unknown) => {
    throw noCredentials(cause);
  });
  const found = await untilAborted(asking, signal);
  redaction.addLogin(found.accessKeyId, found.secretAccessKey);
  if (found.sessionToken !== undefined) redaction.add(found.sessionToken);
  const endpoint = await config.endpoint?.();
  if (!endpoint) return `s3.${region}.amazonaws.com`;
  const { hostname, port } = endpoint;
  return port === undefined ? hostname : `${hostname}:${port}`;
}

const noCredentials = (cause: unknown): ConfigError =>
  new ConfigError('object-store.credentials', 'no credentials for the object store were found', {
    cause,
    ...withoutUndefined({ found: cause instanceof Error ? cause.message : undefined }),
    hint: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
  });

const noRegion = (cause: unknown): ConfigError =>
  new ConfigError('object-store.region', 'the region of the object store is not known', {
    cause,
    hint: 'set AWS_REGION, and AWS_ENDPOINT_URL_S3 for a service that is not AWS',
  });

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

/** Headers that our `Http` sets by itself, or cannot send. */
const LEFT_OUT = new Set(['content-length', 'expect', 'connection']);

/** Has the SDK use our own `Http`: the same proxies, certificates and time limits as for registries. */
const createS3Handler = (http: Http, tls: TlsOptions | undefined) => ({
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

/** RFC 3986 2.3, as the signature requires. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
