import { Option } from 'commander';
import { relative } from 'node:path';
import { nameHeld } from '../../base/disk/work-directory.ts';
import { ReaderGoneError, isErrno } from '../../base/errors.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { toPrintable, toPrintableLines } from '../../base/text/words.ts';
import { waitFor } from '../../base/wait.ts';
import type { CliHost } from '../host.ts';

/* This file owns all writing to stdout and stderr: messages, events and results, redacted and escaped. */

export type OutputFormat = 'text' | 'json' | 'markdown';

export const createOutputOption = (
  formats: readonly OutputFormat[] = ['text', 'json', 'markdown'],
): Option =>
  new Option('-o, --output-format <format>', 'how the result is printed')
    .choices(formats)
    .default('text');

export const createForceOption = (): Option =>
  new Option('--force', 'overwrite files that no earlier run wrote').default(false);

/** Destination of messages and events. */
export type Messages = Pick<CliHost, 'stderr' | 'redaction' | 'log'>;

/** The stream of messages, and what may not be on it. */
type Shown = Pick<CliHost, 'stderr' | 'redaction'>;

/**
 * Writes a message for people to stderr: without secrets of URLs, and with escapes for characters
 * that would control the terminal.
 */
export function writeMessage(host: Messages, text: string): void {
  host.log?.record({ type: 'message', message: text.trimEnd() });
  if (host.log?.level() !== 'quiet') showMessage(host, text);
}

/** Writes a message for people that is not recorded here, and is always shown. */
export function showMessage({ stderr, redaction }: Shown, text: string): void {
  stderr.write(toMessage(text, redaction));
}

/**
 * Indents all lines of a text but the first: it may quote foreign text, no line of which may look
 * like a line of the program.
 */
export const indentLines = (text: string, { mask }: Redaction): string =>
  mask(text).replaceAll(/\n */g, '\n    ');

/** Most characters printed of a line: names in a document may be of any length. */
const MOST_OF_LINE = 20_000;

/** The text that `writeMessage` writes. */
export const toMessage = (text: string, { mask }: Redaction): string =>
  mask(nameHeld(text))
    .split('\n')
    .map((line) =>
      toPrintableLines(
        line.length > MOST_OF_LINE
          ? `${line.slice(0, MOST_OF_LINE)}... and ${line.length - MOST_OF_LINE} more characters`
          : line,
      ),
    )
    .join('\n');

export function writeEvent(host: Messages, event: object): void {
  host.log?.record(event);
  if (host.log?.level() !== 'quiet') showEvent(host, event);
}

/** Writes an event as one line of JSON; it is not recorded here, and is always shown. */
export function showEvent({ stderr, redaction }: Shown, event: object): void {
  stderr.write(`${formatEvent(event, redaction)}\n`);
}

/** Formats one line of JSON; control characters are escapes, which a reader of JSON decodes. */
export const formatEvent = (event: object, { mask }: Redaction): string =>
  toPrintable(
    JSON.stringify(event, (_key, value: unknown) =>
      typeof value === 'string' ? mask(nameHeld(value)) : value,
    ),
  );

/** Writes a result that people read, with control characters escaped. */
export const writeResult = (host: CliHost, text: string): Promise<void> =>
  writeContent(host, toResult(host, text));

const toResult = ({ redaction }: CliHost, text: string): string =>
  toPrintableLines(redaction.maskValues(text));

/**
 * Writes the content of a file byte for byte. Waits until a slow reader has taken it. For a reader
 * that has gone, the text is dropped: the command goes on to its verdict, which decides the exit
 * code.
 */
export async function writeContent(host: CliHost, text: string): Promise<void> {
  await send(host, text);
}

/** Writes a piece of a content that is read while it is written. */
export async function writePiece(host: CliHost, piece: Uint8Array | string): Promise<void> {
  if (!(await send(host, piece))) throw new ReaderGoneError();
}

/** Writes to stdout; false if its reader has gone, which no other place checks. */
const send = ({ stdout, signal }: CliHost, piece: Uint8Array | string): Promise<boolean> =>
  waitFor(signal, (resolve, reject) => {
    stdout.write(piece, (error) => {
      if (error && !isErrno(error, 'EPIPE')) reject(error);
      else resolve(!error);
    });
  });

/** Least number of characters of a list that are written at once, except at its end. */
const PIECE = 1 << 16;

/**
 * Prints the items of a list as they come, in the form of `writeReport`: a list may have half a
 * million. If reading it fails, the items read before are printed.
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
    await writePiece(host, toResult(host, text));
    text = '';
  }
  if (isJson) text += count === 0 ? '[]\n' : '\n]\n';
  await writeResult(host, text);
}

const indentJson = (text: string): string => text.trimEnd().replaceAll(/^/gm, '  ');

/** Formats a path: relative if it is below the working directory. */
export function formatPath(path: string, { cwd }: Pick<CliHost, 'cwd'>): string {
  const below = relative(cwd, path);
  return below === '' || below.startsWith('..') ? path : below;
}
