import { Argument, Option, type Command } from 'commander';
import { DURATION_FORM, parseDuration } from '../base/text/words.ts';
import { UsageError } from '../base/errors.ts';
import { isAreaSize, parseSize } from '../config/rules.ts';
import { readSchema } from '../shape/document.ts';

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

/** `--set` of every command that takes the configuration of an appliance. */
export const createSetOption = (): Option =>
  new Option(
    '--set <path=value>',
    'lay a value over those of the files, as in build.concurrency=4; may be repeated',
  ).argParser(addTo);

/** The argument of the same commands. */
export const createConfigArgument = (
  description = 'configuration files, later ones laid over',
): Argument =>
  new Argument('[config...]', description).default(
    ['appliance-config.yaml'],
    'appliance-config.yaml',
  );

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

/** What commands that lay out an ISO take over from earlier ones. */
export const addReuseOptions = (command: Command): Command =>
  addSeedOptions(command)
    .option('--fresh-layout', 'do not leave blobs where the ISO that is replaced has them')
    .option(
      '--cache <place>',
      'share blobs with other builds, in a folder or in a repository (oci://REGISTRY/REPOSITORY)',
    )
    .addOption(
      new Option(
        '--cache-limit <size>',
        'afterwards, leave at most so much in --cache (as in 200GiB)',
      ).argParser(parseCacheSize('usage.cache-limit')),
    )
    .option('--checksum', 'compute the digest of the ISO even where an earlier one is cloned')
    .option('--rehash', 'ignore what earlier builds wrote down of files: read and hash them again');

/** Where commands that write an ISO find blobs before they ask the network. */
export const addSeedOptions = (command: Command): Command =>
  command
    .option(
      '--seed <source>',
      'take blobs from an ISO (a file or https://), the root of a registry or an OCI layout; may be repeated',
      (value: string, earlier: unknown) =>
        addTo(value, Array.isArray(earlier) ? (earlier as readonly string[]) : []),
    )
    .option('--no-seed', 'take no blobs from the ISO that is replaced');

/** Reads an option's value as a size. */
export const parseCacheSize =
  (code: string) =>
  (text: string): number => {
    if (/^\d+(?:\.\d+)? ?(?:[KMGT]i?B|B)$/.test(text)) return parseSize(text);
    throw refuseOption(code, text, { expected: 'a size such as 200GiB' });
  };

/** Reads `--ignition-area`, which has the range of `build.ignitionArea`. */
export function parseAreaSize(text: string): number {
  const size = /^\d+(?:\.\d+)? ?(?:[KMGT]i?B|B)$/.test(text) ? parseSize(text) : 0;
  if (isAreaSize(size)) return size;
  throw refuseOption('usage.ignition-area', text, { expected: 'a size from 256KiB to 64MiB' });
}

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
