import { ConfigError, RegistryError, SealiftError, type ErrorDetails } from '../errors.ts';
import {
  explainNetworkFailure,
  isPassingStatus,
  networkCodeOf,
  TransientError,
} from '../http/network-failure.ts';
import { isObject, withoutUndefined } from '../members.ts';
import { parseRetryAfter } from '../retry.ts';

type Asked = {
  /** What for: `s3://bucket/key`. */
  readonly about: string;
  readonly host: string;
};

/** By the name that the service gives its answer. */
const NAMED: Readonly<Record<string, { readonly code: string; readonly hint: string }>> = {
  NoSuchUpload: { code: 'object-store.upload-lost', hint: 'run again: a new upload begins' },
  InvalidPart: {
    code: 'object-store.answer',
    hint: 'run the same command again: parts that the service does not have are sent again',
  },
  NoSuchBucket: {
    code: 'object-store.not-found',
    hint: 'check the name of the bucket, and AWS_REGION',
  },
};

const BY_STATUS: Readonly<Record<number, { readonly code: string; readonly hint: string }>> = {
  301: { code: 'object-store.answer', hint: 'name the region of the bucket with AWS_REGION' },
  401: { code: 'object-store.forbidden', hint: 'check the credentials' },
  403: {
    code: 'object-store.forbidden',
    hint: 'check the credentials, and what they may do with the bucket',
  },
  404: { code: 'object-store.not-found', hint: 'check the address and AWS_ENDPOINT_URL_S3' },
  412: { code: 'object-store.changed', hint: 'run again when nobody else writes to it' },
};

/**
 * What a thrown value of the SDK means: a TransientError where another try may help, a RegistryError with
 * `object-store.not-found`, `object-store.forbidden`, `object-store.changed`, `object-store.upload-lost` or `object-store.answer`, what
 * `explainNetworkFailure` makes of an answer that breaks off, and anything else as it is, because it is a bug or ours.
 */
export function explainS3Failure(error: unknown, { about, host }: Asked): unknown {
  if (error instanceof SealiftError || !(error instanceof Error)) return error;
  const status = statusOf(error);
  if (status === undefined || breaksOff(error, status)) return explainNetworkFailure(host, error);
  const [name, said] = nameOf(error);
  const answer = `${host} answers ${status}${name} to what is asked of ${about}`;
  const details: ErrorDetails = { found: String(status), ...said };
  if (isPassingStatus(status) || PASSING.has(error.name)) {
    return new TransientError('object-store.unavailable', answer, {
      ...details,
      host,
      answered: true,
      limited: status === 429 || error.name === 'SlowDown',
      retryAfter: parseRetryAfter(headerOf(error, 'retry-after'), Date.now()),
    });
  }
  const { code, hint } = NAMED[error.name] ?? BY_STATUS[status] ?? { code: 'object-store.answer' };
  return new RegistryError(code, answer, { ...details, ...withoutUndefined({ hint }) });
}

const breaksOff = (error: Error, status: number): boolean =>
  status < 300 && networkCodeOf(error) !== undefined;

/** Answers with a status below 500, or with 200 in front, that say "later" all the same. */
const PASSING = new Set(['SlowDown', 'RequestTimeout', 'InternalError', 'ServiceUnavailable']);

/** Of an answer without a body, the SDK makes an error that says nothing. */
const nameOf = (error: Error): readonly [name: string, said: ErrorDetails] =>
  /^(?:Unknown|UnknownError|Error)$/.test(error.name)
    ? ['', {}]
    : [` ${error.name}`, { cause: error }];

function statusOf(error: Error): number | undefined {
  const metadata: unknown = '$metadata' in error ? error.$metadata : undefined;
  const status = isObject(metadata) ? metadata['httpStatusCode'] : undefined;
  return typeof status === 'number' ? status : undefined;
}

function headerOf(error: Error, name: string): string | undefined {
  const response: unknown = '$response' in error ? error.$response : undefined;
  const headers = isObject(response) ? response['headers'] : undefined;
  const value = isObject(headers) ? headers[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

export const noCredentials = (cause: unknown): ConfigError =>
  new ConfigError('object-store.credentials', 'no credentials for the object store were found', {
    cause,
    ...withoutUndefined({ found: cause instanceof Error ? cause.message : undefined }),
    hint: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
  });

export const noRegion = (cause: unknown): ConfigError =>
  new ConfigError('object-store.region', 'the region of the object store is not known', {
    cause,
    hint: 'set AWS_REGION, and AWS_ENDPOINT_URL_S3 for a service that is not AWS',
  });
