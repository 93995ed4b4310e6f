/*
 * This file owns the commands that messages print: a person copies them to a shell, and they work as
 * they are printed.
 */

/** Characters that have no meaning to any POSIX shell, at any place in a word. */
const PLAIN = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/** Formats a word of a command (POSIX 2.2): quoted if necessary. */
const formatWord = (word: string): string =>
  PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Formats a path as one word of a command: quoted if necessary, and never an option. */
const formatShellPath = (path: string): string =>
  formatWord(path.startsWith('-') ? `./${path}` : path);

/** A word of a command as it is, or a path. */
type Word = string | { readonly path: string };

/** Formats a command of this program. */
export const formatCommand = (...words: readonly Word[]): string =>
  formatProgram('sealift', ...words);

/** Formats a command of any program. */
export const formatProgram = (program: string, ...words: readonly Word[]): string =>
  [
    formatShellPath(program),
    ...words.map((word) =>
      typeof word === 'string' ? formatWord(word) : formatShellPath(word.path),
    ),
  ].join(' ');
