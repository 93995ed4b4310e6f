/** What a JSON text may make its reader build. */
export type JsonBounds = {
  /** Arrays, objects, members and elements. */
  readonly values: number;
  /** Arrays and objects in each other: what is done with a value recursively takes stack for each. */
  readonly depth: number;
};

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * Why a JSON text should not be parsed, as a sentence without its subject; undefined when nothing
 * speaks against it. Three bytes of text can take a hundred of memory: this takes none.
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

/** Where the string that begins at `start` has its second quote; the end of a text that has none. */
function endOfString(text: Uint8Array, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === QUOTE) return at;
    if (text[at] === BACKSLASH) at++;
  }
  return text.length;
}
