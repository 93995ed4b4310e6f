import type { DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { maskLogin } from '../base/text/redact.ts';
import type { ParsedText } from './parse-text.ts';

/* Owns problems with their lines, in which secret values are masked. */

export type ReportDetails = {
  /** `config.rule` unless a more exact code is given. */
  readonly code?: string | undefined;
  readonly hint?: string | undefined;
  /** The path as the peers print it, if it is not the path of the document. */
  readonly shownPath?: string | undefined;
  /** True if the value on the line must not be shown: the line is shown up to its colon. */
  readonly hideValue?: boolean | undefined;
};

/** Makes a problem about the value at a path, or about an offset of the text. */
export type ReportProblem = (
  place: string | { readonly offset: number; readonly path?: string },
  problem: string,
  details?: ReportDetails,
) => DocumentProblem;

type Source = Pick<ParsedText, 'text' | 'lines'> & {
  readonly file: string;
  /** Keys in lower case whose values may be shown. A key that is not among them may be a misspelt secret. */
  readonly publicKeys: ReadonlySet<string>;
  readonly offsetOf: (path: string) => number;
  /** Absent: the lines of the text, with secret values masked. */
  readonly shownLines?: readonly string[];
};

/** Longer texts are from a file that was not written by hand. */
const MAX_TEXT = 1000;

/** Creates a report; it costs nothing before the first problem: most files have no problem. */
export function createReport(source: Source): ReportProblem {
  const { text, lines, file, publicKeys, offsetOf } = source;
  let masked = source.shownLines;
  return (place, problem, { code = 'config.rule', hint, shownPath, hideValue = false } = {}) => {
    const { offset, path = '' } =
      typeof place === 'string' ? { offset: offsetOf(place), path: place } : place;
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    masked ??= maskLines(text, publicKeys);
    const lineText = showLine(masked[line - 1] ?? '', publicKeys);
    return {
      severity: 'error',
      code,
      file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: cut(shownPath ?? path),
      problem: cut(problem),
      lineText: hideValue ? lineText.replace(/^([^:]*:).*$/, '$1') : lineText,
      ...withoutUndefined({ hint }),
    };
  };
}

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;

/** A key of a mapping on one line, as in JSON. */
const INNER_KEY = /[{,]\s*["']?([\w.-]+)["']?\s*:/g;

/** Shows a line, unless it is too long to help or holds unknown keys. */
function showLine(line: string, publicKeys: ReadonlySet<string>): string {
  if (line.length > MAX_TEXT) return '';
  const keys = [...line.matchAll(INNER_KEY)].map(([, key = '']) => key.toLowerCase());
  return keys.every((key) => publicKeys.has(key)) ? maskUserInfo(line) : '';
}

/** Masks user and password of URLs, even broken ones: up to the last @ of a word, except that of a digest. */
export const maskUserInfo = (text: string): string =>
  text
    .replaceAll(/(?<!\S)((?:(?!\/\/)\S)*)\/\/\S*@/g, '$1//[redacted]@')
    .replaceAll(/(?<![^\s"'/@])[^\s"'/@]+@(?!sha\d+:)/g, maskPair)
    .replaceAll(/[^\s"']+/g, (word) => (word.includes('/') ? maskLogin(word) : word));

/** Masks `user:password@` behind the words that belong to a name, as in `proxy=user:password@`. */
function maskPair(text: string): string {
  const start = text.search(/(?<![^=,])[^=,][^=,:]*:/);
  return start < 0 ? text : `${text.slice(0, start)}${MASK}@`;
}

const KEY = /^(?<start>(?<indent>\s*)(?:- \s*)?["']?(?<name>[\w.-]+)["']?\s*:)(?<value>.*)$/;
const SECRET_NAME = /secret|pass|token|auth|sshkey|ignitionconfig/i;
const SECRET_TEXT = /auths?\\*["']\s*:|PRIVATE KEY|\b(?=\w*?(?:secret|pass|token))\w+\\*["']?\s*:/i;
const REFERENCE = /^\s*["']?(?:file|env):[^\s"']+["']?(?:\s*|\s+#.*)$/;
const NEXT_KEY = /^(?<indent>\s*)(?:- )?[A-Za-z][\w.-]*\s*:(?:\s|$)/;
const MASK = '[redacted]';

/**
 * The lines of a configuration file with every secret value masked, even if the YAML is broken: only the text
 * is examined. An unknown key may be a misspelt secret, so its value is masked too. A value ends at the next
 * key of the same or a lower level; `file:` and `env:` references are not secrets and stay.
 *
 * @param knownKeys in lower case
 */
function maskLines(text: string, knownKeys: ReadonlySet<string>): readonly string[] {
  let secretIndent: number | undefined;
  return text.split(/\r\n|\n|\r/).map((line) => {
    if (secretIndent !== undefined && !endsValue(line, secretIndent)) {
      return line.trim() === '' ? line : MASK;
    }
    const found = findSecret(line, knownKeys);
    secretIndent = found?.indent;
    return found?.masked ?? line;
  });
}

function findSecret(
  line: string,
  knownKeys: ReadonlySet<string>,
): { readonly masked: string; readonly indent?: number } | undefined {
  const key = parseKey(line);
  if (key === undefined || isPublic(key.name, knownKeys)) {
    return SECRET_TEXT.test(line) ? { masked: MASK } : undefined;
  }
  if (REFERENCE.test(key.value)) return undefined;
  const indent = key.indent.length;
  if (key.value.trim() !== '') return { masked: `${key.start} ${MASK}`, indent };
  // Nothing to mask here, but the lines below may hold the value.
  return SECRET_NAME.test(key.name) ? { masked: line, indent } : undefined;
}

const isPublic = (name: string, knownKeys: ReadonlySet<string>): boolean =>
  knownKeys.has(name.toLowerCase()) && !SECRET_NAME.test(name);

type KeyLine = Readonly<Record<'start' | 'indent' | 'name' | 'value', string>>;

const parseKey = (line: string): KeyLine | undefined =>
  KEY.exec(line)?.groups as KeyLine | undefined;

function endsValue(line: string, secretIndent: number): boolean {
  const indent = NEXT_KEY.exec(line)?.groups?.['indent'];
  return indent !== undefined && indent.length <= secretIndent;
}

// The forms of the Kubernetes field errors that the peers print after the path.

export const required = (why: string): string => `Required value: ${why}`;

/** The value in nearly the form of Go's `%q`; long values are cut, secrets of URLs masked. */
export const invalid = (value: string, why: string): string =>
  `Invalid value: ${showValue(value)}: ${why}`;

export const unsupported = (value: string, supported: readonly string[]): string =>
  `Unsupported value: ${showValue(value)}: supported values: ${supported.map(showValue).join(', ')}`;

export const tooMany = (count: number, most: number): string =>
  `Too many: ${count}: must have at most ${most} items`;

const MAX_SHOWN = 200;
const MAX_VALUE = 1000;

/** A value for a message: cut if it is long, with secrets of URLs masked. */
export function showValue(value: string): string {
  // Not even a part: a suffix could reveal a password.
  if (value.length > MAX_VALUE) return `"[${value.length} characters]"`;
  const shown = maskUserInfo(value);
  return JSON.stringify(shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown);
}
