import { Option } from 'commander';
import { DURATION_FORM, parseDuration } from '../base/text/quantities.ts';
import { UsageError } from '../base/errors.ts';
import { readSchema } from '../config/document/schema.ts';

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

export const DEFAULT_CONCURRENCY = 8;

/** `--concurrency`, which has the range of `build.concurrency`. */
export function createConcurrencyOption(): Option {
  const { minimum, maximum } = readRange();
  const range = `${minimum} to ${maximum}`;
  return new Option(
    '--concurrency <n>',
    `extents poured at a time, ${range} (default: 8)`,
  ).argParser(parseConcurrency);
}

/** @throws UsageError `usage.concurrency` */
function parseConcurrency(text: string): number {
  const { minimum, maximum } = readRange();
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= minimum && value <= maximum) return value;
  throw new UsageError('usage.concurrency', `--concurrency is "${text}"`, {
    expected: `a whole number from ${minimum} to ${maximum}`,
    found: text,
  });
}

function readRange(): { readonly minimum: number; readonly maximum: number } {
  const { minimum, maximum } =
    readSchema().properties?.['build']?.properties?.['concurrency'] ?? {};
  if (minimum === undefined || maximum === undefined) throw new Error('the schema has no range');
  return { minimum, maximum };
}
