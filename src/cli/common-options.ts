import { Option } from 'commander';
import { DURATION_FORM, parseDuration } from '../base/text/quantities.ts';
import { UsageError } from '../base/errors.ts';
import { readSchema } from '../config/document/schema.ts';

/** The refusal of an option's value; the code is `usage.` and the name of the option. */
export const refuseOption = (
  code: string,
  found: string,
  details: { readonly expected: string; readonly hint?: string },
): UsageError =>
  new UsageError(code, `--${code.replace('usage.', '')} is "${found}"`, { ...details, found });

/** Reads an option's value as a whole number; both ends are in the range. */
export const parseWhole =
  (code: string, [least, most]: readonly [number, number]) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw refuseOption(code, text, { expected: `a whole number from ${least} to ${most}` });
  };

/** Gathers the values of an option that may be repeated. */
export const addTo = (value: string, earlier: readonly string[] = []): readonly string[] => [
  ...earlier,
  value,
];

/** `--retry-for` of every command that fetches: milliseconds. */
export const createRetryOption = (): Option =>
  new Option(
    '--retry-for <duration>',
    'how long to wait for a host that answered before and brings no byte (default: 10m)',
  ).argParser((text) => {
    const duration = parseDuration(text);
    if (duration !== undefined) return duration;
    throw refuseOption('usage.retry-for', text, { expected: DURATION_FORM });
  });

export const DEFAULT_CONCURRENCY = 8;

/** `--concurrency`, which has the range of `build.concurrency`. */
export function createConcurrencyOption(): Option {
  const { minimum: least, maximum: most } =
    readSchema().properties?.['build']?.properties?.['concurrency'] ?? {};
  if (least === undefined || most === undefined) throw new Error('the schema has no range');
  return new Option(
    '--concurrency <n>',
    `extents poured at a time, ${least} to ${most} (default: 8)`,
  ).argParser(parseWhole('usage.concurrency', [least, most]));
}
