/* Owns the place of a fault in a text that is not JSON (RFC 8259). */

/** Line and column of a character, from 1. */
export type JsonPlace = { readonly line: number; readonly column: number };

/** Blanks, then a mark, a string, or a number or word. */
const TOKEN =
  /[ \t\n\r]*(?:([{}[\]:,])|("(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/uy;

/** Kinds of tokens that may follow each state; `pop` closes an object or a list. */
const VALUE = { '{': 'first name', '[': 'first item', 'string': 'end', 'word': 'end' } as const;
const FOLLOWING: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'value': VALUE,
  'first item': { ...VALUE, ']': 'pop' },
  'name': { string: 'colon' },
  'first name': { 'string': 'colon', '}': 'pop' },
  'colon': { ':': 'value' },
  'end of {': { ',': 'name', '}': 'pop' },
  'end of [': { ',': 'value', ']': 'pop' },
};

/** Finds where a text stops being JSON; undefined if it is JSON. The cost grows with its length. */
export function findJsonFault(text: string): JsonPlace | undefined {
  const reading: Reading = { open: [], state: 'value' };
  let at = 0;
  while (reading.state !== 'end' || reading.open.length > 0) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (token === null || !take(reading, kindOf(token))) return placeOf(text, at);
    at = TOKEN.lastIndex;
  }
  return text.slice(at).trim() === '' ? undefined : placeOf(text, at);
}

type Reading = { readonly open: string[]; state: string };

/** Takes a token; false if it must not stand here. */
function take(reading: Reading, kind: string): boolean {
  const { open, state } = reading;
  const next = FOLLOWING[state === 'end' ? `end of ${open.at(-1) ?? ''}` : state]?.[kind];
  if (next === undefined) return false;
  if (kind === '{' || kind === '[') open.push(kind);
  if (next === 'pop') open.pop();
  reading.state = next === 'pop' ? 'end' : next;
  return true;
}

const kindOf = ([, mark, string]: RegExpExecArray): string =>
  mark ?? (string === undefined ? 'word' : 'string');

/** The place of the first character after blanks. */
function placeOf(text: string, from: number): JsonPlace {
  const end = from + (/^[ \t\n\r]*/.exec(text.slice(from))?.[0].length ?? 0);
  const lines = text.slice(0, end).split(/\r\n|\n|\r/);
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}
