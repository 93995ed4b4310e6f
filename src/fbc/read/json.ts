/**
 * State of the search for the end of a JSON object without parsing it. Only braces, brackets and strings count (RFC 8259
 * 4, 5 and 7); `JSON.parse` reports every other fault.
 */
export type ObjectScan = {
  /** Bytes seen, from the object's first one. */
  position: number;
  depth: number;
  deepest: number;
  /** Commas, and openings of objects and arrays: an object has at most one value more. */
  values: number;
  inString: boolean;
  /** The next byte is the second one of an escape. */
  isEscaped: boolean;
  /** The next string in the outermost object is a key. */
  expectsKey: boolean;
  keyStart: number;
  /** Start and end of the outermost keys, quotes included. */
  readonly keys: (readonly [start: number, end: number])[];
};

export type ParsedDocument = {
  readonly value: unknown;
  /** Keys of the outermost mapping as written, repeated if they are repeated. */
  readonly keys: readonly string[];
};

export type ParseResult = ParsedDocument | { readonly problem: string };

/**
 * Levels of arrays and objects. Go's encoding/json reads ten times as many, and a bundle with all its
 * manifests has some dozens: writing a value again takes stack for each.
 */
const MAX_DEPTH = 1000;

/** Limit of parsed values, a few hundred megabytes; a bundle with all its manifests has thousands. */
const MAX_VALUES = 1_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const IS_STRUCTURAL = new Uint8Array(256);
for (const byte of [QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET]) {
  IS_STRUCTURAL[byte] = 1;
}

export const startScan = (): ObjectScan => ({
  position: 0,
  depth: 0,
  deepest: 0,
  values: 0,
  inString: false,
  isEscaped: false,
  expectsKey: false,
  keyStart: -1,
  keys: [],
});

/**
 * Continues where it stopped. `bytes` start at the object's brace and hold at least those seen before.
 *
 * @returns true if the object ends within them, at `scan.position`
 */
export function scanObject(scan: ObjectScan, bytes: Uint8Array): boolean {
  let at = scan.position;
  while (at < bytes.length) {
    if (scan.inString) {
      at = skipString(scan, bytes, at);
      continue;
    }
    const byte = bytes[at++] ?? 0;
    if (IS_STRUCTURAL[byte] === 0) continue;
    step(scan, byte, at - 1);
    if (scan.depth === 0) break;
  }
  scan.position = at;
  return scan.depth === 0 && at > 0;
}

function step(scan: ObjectScan, byte: number, at: number): void {
  switch (byte) {
    case QUOTE:
      scan.inString = true;
      if (scan.expectsKey && scan.depth === 1) scan.keyStart = at;
      break;
    case COMMA:
      scan.values++;
      if (scan.depth === 1) scan.expectsKey = true;
      break;
    case OPEN_BRACE:
    case OPEN_BRACKET:
      scan.values++;
      scan.depth++;
      scan.deepest = Math.max(scan.deepest, scan.depth);
      scan.expectsKey = scan.depth === 1;
      break;
    default:
      scan.depth--;
  }
}

function skipString(scan: ObjectScan, bytes: Uint8Array, from: number): number {
  let at = scan.isEscaped ? from + 1 : from;
  scan.isEscaped = false;
  while (at < bytes.length) {
    const byte = bytes[at++];
    if (byte === BACKSLASH) {
      at++;
    } else if (byte === QUOTE) {
      endString(scan, at);
      return at;
    }
  }
  scan.isEscaped = at > bytes.length;
  return bytes.length;
}

function endString(scan: ObjectScan, end: number): void {
  scan.inString = false;
  if (scan.keyStart < 0) return;
  scan.keys.push([scan.keyStart, end]);
  scan.keyStart = -1;
  scan.expectsKey = false;
}

/** Parses the object that `scan` has found at the start of `bytes`. */
export function parseObject(scan: ObjectScan, bytes: Buffer): ParseResult {
  if (scan.deepest > MAX_DEPTH) {
    return { problem: `is nested ${scan.deepest} levels deep, but at most ${MAX_DEPTH} are read` };
  }
  if (scan.values > MAX_VALUES) {
    return { problem: `has more than ${MAX_VALUES} values, the most that is read` };
  }
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8', 0, scan.position));
    const keys = scan.keys.map(([start, end]) =>
      String(JSON.parse(bytes.toString('utf8', start, end))),
    );
    return { value, keys };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { problem: `is not valid JSON: ${error.message}` };
  }
}
