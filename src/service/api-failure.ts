/** What the service answers instead of what was asked: a status, and a reason that the client may read. */
export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

/** The body of assisted-service's errors; those of authentication have another one. */
export const formatFailure = ({ status, message }: ApiFailure): object =>
  status === 401 || status === 403
    ? { code: status, message }
    : { kind: 'Error', id: status, href: '', code: String(status), reason: message };

export const notFound = (what: string, id: string): ApiFailure =>
  new ApiFailure(404, `${what} ${id} not found`);
