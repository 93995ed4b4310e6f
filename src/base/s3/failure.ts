import { RegistryError, SealiftError, type ErrorDetails } from '../errors.ts';
import {
  explainNetworkFailure,
  isPassingStatus,
  networkCodeOf,
  TransientError,
} from '../http/network-failure.ts';
import { isObject, withoutUndefined } from '../lists.ts';
import { parseRetryAfter } from '../retry.ts';

/* Owns what the answers of an object store mean. */

type Asked = {
  /** Subject of the request: `s3://bucket/key`. */
  readonly about: string;
  readonly host: string;
};

/** Codes and hints by the name of the service's answer. */
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
    hint: 'check the credentials and their permissions for the bucket',
  },
  404: { code: 'object-store.not-found', hint: 'check the address and AWS_ENDPOINT_URL_S3' },
  412: { code: 'object-store.changed', hint: 'run again when no other program writes to it' },
};

/**
 * The meaning of a value that the SDK threw: a TransientError if another try may help, a
 * RegistryError with `object-store.not-found`, `object-store.forbidden`, `object-store.changed`,
 * `object-store.upload-lost` or `object-store.answer`, the result of `explainNetworkFailure` for
 * an answer that breaks off, and anything else as it is, because it is a bug or ours.
 */
export function explainS3Failure(error: unknown, { about, host }: Asked): unknown {
  if (error instanceof SealiftError || !(error instanceof Error)) return error;
  const status = statusOf(error);
  if (status === undefined || breaksOff(error, status)) return explainNetworkFailure(host, error);
  const [name, said] = nameOf(error);
  const answer = `${host} answers ${status}${name} to a request for ${about}`;
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

/** Names of answers that mean "later" despite a status below 500, or a 200 before them. */
const PASSING = new Set(['SlowDown', 'RequestTimeout', 'InternalError', 'ServiceUnavailable']);

/** The name of an error. For an answer without a body, the SDK makes an error that reveals nothing. */
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
