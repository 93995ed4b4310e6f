import { toPrintable } from '../base/text/words.ts';
import type { Exchange, Service } from './context.ts';

/* Owns the warnings of requests: the head of the answer, and the log. */

/** Most warnings of one answer: clients limit the size of its head. */
const MOST_WARNINGS = 10;
const LONGEST_WARNING = 400;

/**
 * Adds warnings to the head of an answer, where the API of Kubernetes has them too (RFC 9111 5.5, 299); no
 * client of assisted-service has a member for them. Those about a change are logged as well.
 */
export function addWarnings(
  { warn }: Pick<Service, 'warn'>,
  exchange: Exchange,
  warnings: readonly string[],
): void {
  const { method, path } = exchange.req;
  for (const warning of warnings.slice(0, MOST_WARNINGS)) {
    const text = toPrintable(warning).slice(0, LONGEST_WARNING);
    const quoted = text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll(/[^ -~]/g, '?');
    exchange.header('Warning', `299 - "${quoted}"`, { append: true });
    if (method !== 'GET') warn(`${method} ${path}: ${text}`);
  }
}
