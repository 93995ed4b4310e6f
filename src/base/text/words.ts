/** The name that was probably meant: at most a third of its letters, and at least one, differ. */
export const findNearestName = (name: string, known: Iterable<string>): string | undefined =>
  listNearestNames(name, known)[0];

/** The names that were probably meant, nearest first. */
export function listNearestNames(name: string, known: Iterable<string>): readonly string[] {
  const limit = Math.max(1, Math.floor(name.length / 3));
  return [...known]
    .filter((candidate) => Math.abs(candidate.length - name.length) <= limit)
    .map((candidate) => ({
      candidate,
      distance: countEdits(name.toLowerCase(), candidate.toLowerCase()),
    }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
}

/** `did you mean "x"?`, for a hint; undefined if no known name is near. */
export function suggestName(name: string, known: Iterable<string>): string | undefined {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? undefined : `did you mean "${nearest}"?`;
}

/** `; did you mean "x"?`, for the end of a sentence; empty if no known name is near. */
export function appendSuggestion(name: string, known: Iterable<string>, separator = '; '): string {
  const suggestion = suggestName(name, known);
  return suggestion === undefined ? '' : separator + suggestion;
}

/** Levenshtein distance, with one row of the table in memory. */
function countEdits(from: string, to: string): number {
  const row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    let diagonal = i - 1;
    row[0] = i;
    for (let j = 1; j <= to.length; j++) {
      const above = row[j] ?? 0;
      const replaced = diagonal + (from[i - 1] === to[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, above + 1, (row[j - 1] ?? 0) + 1);
      diagonal = above;
    }
  }
  return row[to.length] ?? 0;
}

/**
 * Characters that command a terminal (C0, C1, DEL), turn text around (bidi controls), or are invisible:
 * format characters, tags, variation selectors, fillers, blanks other than the space, halves of surrogate
 * pairs. Tab and line break are not included. Defined by Unicode properties, so that none is forgotten.
 */
const COMMANDING =
  /(?![\t\n ])[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffe\uffff]/gu;

/** A text of unknown origin on several lines; control characters are escaped. */
export const toPrintableLines = (text: string): string =>
  text.replaceAll(COMMANDING, escapeCharacter);

/** A text of unknown origin on one line (the name of a file, or a key); control characters are escaped. */
export const toPrintable = (text: string): string =>
  toPrintableLines(text).replaceAll('\n', escapeCharacter);

/** A name for messages: short, on one line, without characters that move a terminal's cursor. */
export const printable = (name: string): string =>
  toPrintable(
    JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}...` : name).slice(1, -1),
  ).replaceAll('\\\\', '\\');

/** A value of a foreign document in a message: a scalar as it is, anything else by its kind. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** `\u` and four hex digits for each UTF-16 unit, as in JSON and YAML (1.2.2, 5.7). */
export const escapeCharacter = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes in a form for people, with one decimal and a binary unit: `41.3 GiB`. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < SIZE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${SIZE_UNITS[unit] ?? ''}`;
}

/** The form that `parseSize` reads, for errors and `--help`. */
export const SIZE_FORM = 'a size such as 700MiB or 4GiB';

/** A size with its unit. */
export const SIZE = /^([0-9]{1,15}(?:\.[0-9]{1,15})?) ?(?:([KMGT])(i?))?B$/u;

/** Bytes of `45GiB`, `4.7 GB`, `1024`, rounded down; undefined for other texts, and from 2^53 on. */
export function parseSize(text: string): number | undefined {
  const [, number, prefix = '', base] = SIZE.exec(/\d$/.test(text) ? `${text}B` : text) ?? [];
  if (number === undefined) return undefined;
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(prefix);
  const size = Math.floor(Number(number) * (base === 'i' ? 1024 : 1000) ** power);
  return Number.isSafeInteger(size) ? size : undefined;
}

/** `950 ms`, `12 s`, `3 min 05 s`, `2 h 07 min`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** In milliseconds, largest first, in the order in which they are written. */
const TIME_UNITS = [3_600_000, 60_000, 1000] as const;

/** The form that `parseDuration` reads, for errors and `--help`. */
export const DURATION_FORM = 'a time such as 30s, 10m or 1h30m, with 99h at most; 0s for none';

/** The same where a time is required. */
export const TIME_FORM = 'a time such as 30s, 10m or 1h30m, with 99h at most; a second or more';

export const DURATION = /^(?=.)(?:([0-9]{1,2})h)?(?:([0-9]{1,4})m)?(?:([0-9]{1,5})s)?$/u;

/** Milliseconds of `1h30m`, `90s`, `0`, in the form of Go's time.ParseDuration; undefined for other texts. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const [, ...numbers] = match;
  return TIME_UNITS.reduce((sum, unit, index) => sum + unit * Number(numbers[index] ?? 0), 0);
}

/** A thing and its problem as a sentence; a problem that has a subject of its own stands behind a colon. */
export const joinProblem = (thing: string, problem: string): string =>
  /^(?:begins|contains|ends|has|is|must|names|says) /.test(problem)
    ? `${thing} ${problem}`
    : `${thing}: ${problem}`;

/** Go leaves an empty text out of what it writes, as if it had not been given. */
export const unlessEmpty = (text: string | undefined): string | undefined =>
  text === '' ? undefined : text;
