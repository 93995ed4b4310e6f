import { escapeCharacter } from './escape-character.ts';

/** What moves a terminal's cursor, changes its colours, or hides or turns text; not tab and line break. */
const COMMANDING =
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text of unknown origin on several lines, in which nothing commands the terminal. */
export const toPrintableLines = (text: string): string =>
  text.replaceAll(COMMANDING, escapeCharacter);

/** The same on one line: the name of a file, or a key. */
export const toPrintable = (text: string): string =>
  toPrintableLines(text).replaceAll('\n', escapeCharacter);
