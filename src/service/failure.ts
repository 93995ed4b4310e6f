/* Owns the form of refusals, apart from the routes: workers refuse as well. */

/** Formats an error in assisted-service's format; authentication errors have another format. */
export const formatFailure = ({
  status,
  message,
}: {
  readonly status: number;
  readonly message: string;
}): object =>
  status === 401 || status === 403
    ? { code: status, message }
    : { kind: 'Error', id: status, href: '', code: String(status), reason: message };

/** Headers of every answer, unless a route has others: URLs of images are secrets. */
export const PRIVATE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** RFC 9110, 10.2.3: seconds. */
export const RETRY_AFTER: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  429: { 'Retry-After': '5' },
  503: { 'Retry-After': '5' },
};
