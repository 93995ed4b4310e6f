/** Characters that no POSIX shell gives a meaning to, wherever they stand in a word. */
const PLAIN = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/**
 * A path as one word of a command that a person copies to a shell (POSIX 2.2): quoted where it must be,
 * and never an option.
 */
export function formatShellPath(path: string): string {
  const word = path.startsWith('-') ? `./${path}` : path;
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
