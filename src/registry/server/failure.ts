import { withoutUndefined } from '../../base/lists.ts';
/** distribution-spec 1.1, "Error Codes", and two of distribution's own; each with its status. */
const STATUS = {
  BLOB_UNKNOWN: 404,
  DIGEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  PAGINATION_NUMBER_INVALID: 400,
  UNKNOWN: 500,
  UNSUPPORTED: 404,
} as const;

/** An answer that is an error. */
export type Failure = {
  readonly kind: 'failure';
  readonly status: number;
  readonly code: keyof typeof STATUS;
  readonly message: string;
  readonly detail: Readonly<Record<string, string | undefined>> | undefined;
};

export const failure = (
  code: Failure['code'],
  message: string,
  detail?: Failure['detail'],
): Failure => ({ kind: 'failure', status: STATUS[code], code, message, detail });

/** distribution-spec 1.1, "Error Codes": the body of every answer from 400 up. */
export const encodeFailure = ({ code, message, detail }: Failure): Buffer =>
  Buffer.from(JSON.stringify({ errors: [{ code, message, ...withoutUndefined({ detail }) }] }));
