/**
 * What commands a terminal (C0, C1, DEL), turns text around (bidi controls), or is not seen: format
 * characters, tags, variation selectors, fillers, blanks other than the space, halves of surrogate
 * pairs. Not tab and line break. By Unicode's properties, so that none is forgotten.
 */
const COMMANDING =
  /(?![\t\n ])[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffe\uffff]/gu;

/** A text of unknown origin on several lines; control characters are escaped. */
export const toPrintableLines = (text: string): string =>
  text.replaceAll(COMMANDING, escapeCharacter);

/** The same on one line: the name of a file, or a key. */
export const toPrintable = (text: string): string =>
  toPrintableLines(text).replaceAll('\n', escapeCharacter);

/** A value of a foreign document in a message: a scalar as it is, anything else by what it is. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A character as JSON and YAML (1.2.2, 5.7) escape it: `\u` and four hex digits, for each of its UTF-16 units. */
export const escapeCharacter = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
