import { escapeCharacter } from './escape-character.ts';

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
