import { Option } from 'commander';
import { formatReadableJson, type Json } from '../../base/canonical-json.ts';
import { waitFor } from '../../base/wait.ts';
import type { CliHost } from '../host.ts';

export type OutputFormat = 'text' | 'json';

/** `-o json` of every command that prints a result. */
export const createOutputOption = (): Option =>
  new Option('-o, --output-format <format>', 'how the result is printed')
    .choices(['text', 'json'])
    .default('text');

/** `--force` of every command that writes files whose names are given. */
export const createForceOption = (): Option =>
  new Option('--force', 'overwrite files that are not of an earlier run').default(false);

/** Waits until a slow reader has taken the text. */
export function writeResult({ stdout, signal }: CliHost, text: string): Promise<void> {
  return waitFor(signal, (resolve, reject) => {
    stdout.write(text, (error) => {
      if (error) reject(error);
      else resolve(undefined);
    });
  });
}

/** Prints a value as JSON with sorted keys, or as the text made of it. */
export async function writeFormatted<T extends Json>(
  host: CliHost,
  format: OutputFormat,
  result: { readonly value: T; readonly formatText: (value: T) => string },
): Promise<void> {
  const { value, formatText } = result;
  await writeResult(host, format === 'json' ? formatReadableJson(value) : formatText(value));
}
