import { redactUrl } from '../text/redact.ts';
import type { Http } from './http.ts';

/** A request that was made, with its URL redacted, and its outcome. */
export type HttpRequestEvent = {
  readonly type: 'http-request';
  readonly method: string;
  readonly url: string;
  /** Status of the answer; absent if no answer came. */
  readonly status?: number;
  /** Reason why no answer came. */
  readonly problem?: string;
};

/** Returns the same `Http` with a report of every request: each source that is tried, and each retry. */
export const reportRequests = (http: Http, onEvent: (event: HttpRequestEvent) => void): Http => ({
  ...http,
  async request(wanted) {
    const about = {
      type: 'http-request',
      method: wanted.method ?? 'GET',
      url: redactUrl(wanted.url),
    } as const;
    try {
      const response = await http.request(wanted);
      onEvent({ ...about, status: response.status });
      return response;
    } catch (error) {
      onEvent({ ...about, problem: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  },
});
