import { Option } from 'commander';
import { relative } from 'node:path';
import { nameHeld } from '../../base/disk/work-directory.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { redact, redactValues } from '../../base/text/redact.ts';
import { toPrintable, toPrintableLines } from '../../base/text/words.ts';
import { waitFor } from '../../base/wait.ts';
import type { CliHost } from '../host.ts';

export type OutputFormat = 'text' | 'json';

/** `-o json` of every command that prints a result. */
export const createOutputOption = (formats: readonly string[] = ['text', 'json']): Option =>
  new Option('-o, --output-format <format>', 'how the result is printed')
    .choices(formats)
    .default('text');

/** `--force` of every command that writes files whose names are given. */
export const createForceOption = (): Option =>
  new Option('--force', 'overwrite files that are not of an earlier run').default(false);

/** Where messages and events go. */
export type Messages = Pick<CliHost, 'stderr' | 'log'>;

/**
 * Writes a message for people to stderr: without secrets of URLs, and with escapes for what would
 * command the terminal.
 */
export function writeMessage(host: Messages, text: string): void {
  host.log?.record({ type: 'message', message: text.trimEnd() });
  if (host.log?.level() !== 'quiet') showMessage(host, text);
}

/** The same for what is not recorded here, and shown in any case. */
export function showMessage({ stderr }: Pick<CliHost, 'stderr'>, text: string): void {
  stderr.write(toMessage(text));
}

/**
 * A sentence that may quote what has line breaks, under what it begins with: no line of it looks like one
 * of the program.
 */
export const indentLines = (text: string): string => redact(text).replaceAll(/\n */g, '\n    ');

/** Characters of a line; what a document names may be of any length. */
const MOST_OF_LINE = 20_000;

/** What `writeMessage` writes. */
export const toMessage = (text: string): string =>
  redact(nameHeld(text))
    .split('\n')
    .map((line) =>
      toPrintableLines(
        line.length > MOST_OF_LINE
          ? `${line.slice(0, MOST_OF_LINE)}... and ${line.length - MOST_OF_LINE} more characters`
          : line,
      ),
    )
    .join('\n');

/** Writes an event to stderr as one line of JSON. */
export function writeEvent(host: Messages, event: object): void {
  host.log?.record(event);
  if (host.log?.level() !== 'quiet') showEvent(host, event);
}

/** The same for what is not recorded here, and shown in any case. */
export function showEvent({ stderr }: Pick<CliHost, 'stderr'>, event: object): void {
  stderr.write(`${formatEvent(event)}\n`);
}

/** One line of JSON, which reads an escape as the character itself. */
export const formatEvent = (event: object): string =>
  toPrintable(
    JSON.stringify(event, (_key, value: unknown) =>
      typeof value === 'string' ? redact(nameHeld(value)) : value,
    ),
  );

/** Writes a result that people read: control characters are escaped. */
export const writeResult = (host: CliHost, text: string): Promise<void> =>
  writeContent(host, toPrintableLines(redactValues(text)));

/** Writes the content of a file, to the byte. Waits until a slow reader has taken it. */
export function writeContent({ stdout, signal }: CliHost, text: string): Promise<void> {
  return waitFor(signal, (resolve, reject) => {
    stdout.write(text, (error) => {
      if (error) reject(error);
      else resolve(undefined);
    });
  });
}

/** Writes a piece of a file's content; false where the reader is slow, until `drain`. */
export const writePiece = ({ stdout }: CliHost, piece: Uint8Array): boolean => stdout.write(piece);

/** Prints a value as JSON with sorted keys, or as the text made of it. */
export const writeFormatted = <T extends Json>(
  { host, outputFormat }: { readonly host: CliHost; readonly outputFormat: OutputFormat },
  value: T,
  formatText: (value: T) => string,
): Promise<void> =>
  writeResult(host, outputFormat === 'json' ? formatReadableJson(value) : formatText(value));

/** Characters of a list that are written at once. */
const PIECE = 1 << 16;

/**
 * Prints the items of a list as they come, in the form of `writeFormatted`: a list may have half a
 * million. Where reading it fails, what was read before is printed.
 */
export async function writeList<T extends Json>(
  { host, outputFormat }: { readonly host: CliHost; readonly outputFormat: OutputFormat },
  items: AsyncIterable<T>,
  formatText: (item: T) => string,
): Promise<void> {
  const isJson = outputFormat === 'json';
  let text = '';
  let count = 0;
  for await (const item of items) {
    if (isJson) text += `${count === 0 ? '[' : ','}\n${indentJson(formatReadableJson(item))}`;
    else text += formatText(item);
    count++;
    if (text.length < PIECE) continue;
    await writeResult(host, text);
    text = '';
  }
  if (isJson) text += count === 0 ? '[]\n' : '\n]\n';
  await writeResult(host, text);
}

const indentJson = (text: string): string => text.trimEnd().replaceAll(/^/gm, '  ');

/** Characters that no POSIX shell gives a meaning to, wherever they stand in a word. */
const PLAIN = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/**
 * A path as one word of a command that a person copies to a shell (POSIX 2.2): quoted where it must be,
 * and never an option.
 */
export function formatShellPath(path: string): string {
  const word = path.startsWith('-') ? `./${path}` : path;
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Relative where it is below the working directory. */
export function formatPath(path: string, { cwd }: Pick<CliHost, 'cwd'>): string {
  const below = relative(cwd, path);
  return below === '' || below.startsWith('..') ? path : below;
}
