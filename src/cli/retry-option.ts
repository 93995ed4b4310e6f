import { Option } from 'commander';
import { DURATION_FORM, parseDuration } from '../base/text/quantities.ts';
import { UsageError } from '../base/errors.ts';

/** `--retry-for` of every command that fetches: milliseconds. */
export const createRetryOption = (): Option =>
  new Option(
    '--retry-for <duration>',
    'how long to wait for a host that answered before and brings no byte (default: 10m)',
  ).argParser(parseRetryFor);

/** @throws UsageError `usage.retry-for` */
function parseRetryFor(text: string): number {
  const duration = parseDuration(text);
  if (duration !== undefined) return duration;
  throw new UsageError('usage.retry-for', `--retry-for is "${text}"`, {
    expected: DURATION_FORM,
    found: text,
  });
}
