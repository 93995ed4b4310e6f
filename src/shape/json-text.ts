import { isUtf8 } from 'node:buffer';

/* Owns the reading of JSON texts: their bounds, and members that are written twice. */

export type JsonManner = {
  readonly most: JsonBounds;
  /**
   * Fate of a member that an object has twice. `refused`: a person wrote the text and meant both, and readers
   * differ. Go's encoding/json merges objects and takes the last of other values; `JSON.parse` always takes the
   * last. Absent: the last counts, for what programs write.
   */
  readonly repeated?: 'refused';
};

/** The manner for a text that a person writes. */
export const TYPED_JSON: JsonManner = {
  most: { values: 100_000, depth: 64 },
  repeated: 'refused',
};

/** The value of a text, or the reason why it has no value, as a sentence without its subject. */
export type JsonReading = { readonly value: unknown; readonly why?: undefined } | JsonFault;

export type JsonFault = { readonly why: string; readonly isRepeated: boolean };

/** Reads a JSON text. The reason of a refusal names at most a member and a line: the text may be a secret. */
export function readJsonText(source: Uint8Array | string, manner: JsonManner): JsonReading {
  const bytes = typeof source === 'string' ? Buffer.from(source) : source;
  const refuse = (why: string): JsonReading => ({ why, isRepeated: false });
  const excess = findJsonExcess(bytes, manner.most);
  if (excess !== undefined) return refuse(excess);
  if (!isUtf8(bytes)) return refuse('is not UTF-8');
  const text = typeof source === 'string' ? source : Buffer.from(source).toString('utf8');
  const value = parseQuietly(text);
  if (value === undefined) return refuse('is not JSON');
  const repeated = manner.repeated === 'refused' ? explainRepeated(text) : undefined;
  return repeated === undefined ? { value } : { why: repeated, isRepeated: true };
}

/** `JSON.parse` quotes the text in its error. No JSON text has the value undefined. */
function parseQuietly(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A quote, or a character that opens or closes an object or a list. */
const TOKEN = /["{}[\]]/g;

/** The first member that an object of a valid JSON text has twice: `has "auths" twice`, with its line. */
function explainRepeated(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (let at = findToken(json, 0); at >= 0; at = findToken(json, at + 1)) {
    if (json[at] === '"') {
      const end = endOfText(json, at) + 1;
      if (isName(json, end)) {
        const name = JSON.parse(json.slice(at, end)) as string;
        if (open.at(-1)?.has(name)) return nameRepeated(json, at, name);
        open.at(-1)?.add(name);
      }
      at = end - 1;
    } else if (json[at] === '{' || json[at] === '[') open.push(new Set());
    else open.pop();
  }
  return undefined;
}

function findToken(json: string, from: number): number {
  TOKEN.lastIndex = from;
  return TOKEN.exec(json)?.index ?? -1;
}

/** Position of the second quote of a string. No pattern: one takes stack for each escape of a long string. */
function endOfText(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end;
}

function isEscaped(json: string, at: number): boolean {
  let slashes = 0;
  while (json[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}

/** True if a colon follows: the string before it is the name of a member. */
function isName(json: string, end: number): boolean {
  let at = end;
  while (/\s/.test(json[at] ?? '')) at++;
  return json[at] === ':';
}

const LONGEST_NAME = 100;

function nameRepeated(json: string, at: number, name: string): string {
  const line = json.slice(0, at).split('\n').length;
  const place = json.includes('\n') ? `, the second time in line ${line}` : '';
  return `has ${JSON.stringify(name.slice(0, LONGEST_NAME))} twice${place}`;
}

export type JsonBounds = {
  /** Arrays, objects, members and elements. */
  readonly values: number;
  /** Arrays and objects in each other: recursive work on a value takes stack for each. */
  readonly depth: number;
};

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * The reason why a JSON text should not be parsed, as a sentence without its subject; undefined if
 * there is no reason. Three bytes of text can take a hundred of memory: this takes no memory.
 */
export function findJsonExcess(text: Uint8Array, bounds: JsonBounds): string | undefined {
  let values = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0;
    if (byte === QUOTE) at = endOfString(text, at);
    else if (byte === COMMA || byte === COLON) values++;
    else if (OPENING.has(byte)) {
      values++;
      if (++depth > bounds.depth) return `has more than ${bounds.depth} levels`;
    } else if (CLOSING.has(byte)) depth--;
    if (values > bounds.values) return `has more than ${bounds.values} values`;
  }
  return undefined;
}

/** Position of the second quote of the string that begins at `start`; the end of the text without one. */
function endOfString(text: Uint8Array, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === QUOTE) return at;
    if (text[at] === BACKSLASH) at++;
  }
  return text.length;
}
