import { RE2JS, RE2JSSyntaxException } from 're2js';
import { ConfigError } from '../errors.ts';

/** Matches anywhere in a text, in time linear in its length. */
export type GoPattern = { readonly test: (text: string) => boolean };

/** Every shorter start of a refused pattern may be compiled to find the place of the mistake. */
const MAX_LOCATED_SIZE = 1000;

/** For these errors, Go quotes the whole pattern. */
const MISSING_PAREN = 'missing closing )';
const UNEXPECTED_PAREN = 'unexpected )';

/** Forms of Perl that need backtracking: `\1`, `\k<name>`, `(?=`, `(?!`, `(?<=`, `(?<!`, `(?>`. */
const BACKTRACKING = /^(?:\\[1-9k]|\(\?(?:[=!>]|<[=!]))/;

/**
 * Compiles a regular expression with the syntax and the meaning of Go's package `regexp`
 * (https://pkg.go.dev/regexp/syntax, flag Perl).
 *
 * @throws ConfigError `pattern.malformed` for a pattern that Go refuses, with the position of the character
 */
export function compileGoPattern(pattern: string): GoPattern {
  try {
    const compiled = RE2JS.compile(pattern);
    return { test: (text) => compiled.test(text) };
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    throw describe(pattern, error);
  }
}

function describe(pattern: string, cause: RE2JSSyntaxException): ConfigError {
  const start = locate(pattern, cause);
  const isWhole = [MISSING_PAREN, UNEXPECTED_PAREN].includes(cause.error);
  const fragment = cause.input === null || isWhole ? '' : ` "${cause.input}"`;
  const place =
    start === undefined ? '' : ` at character ${Array.from(pattern.slice(0, start)).length + 1}`;
  const hint = BACKTRACKING.test(pattern.slice(start))
    ? 'Go has no lookaround and no backreferences: write the alternatives out'
    : 'write it in the syntax of Go: https://pkg.go.dev/regexp/syntax';
  return new ConfigError(
    'pattern.malformed',
    `"${pattern}" is not a Go regular expression: ${cause.error}${fragment}${place}`,
    { cause, hint },
  );
}

/**
 * Finds the place of an error. Go's errors quote the faulty part and do not give its position. The
 * parser reads from left to right, so the shortest start of the pattern that is refused for the
 * same reason ends with the faulty part.
 */
function locate(pattern: string, { error, input }: RE2JSSyntaxException): number | undefined {
  if (pattern.length > MAX_LOCATED_SIZE) return undefined;
  if (error === 'trailing backslash at end of expression') return pattern.length - 1;
  if (input === null) return undefined;
  if (error === MISSING_PAREN) return endOfLast(pattern, (failure) => failure !== undefined);
  if (error === UNEXPECTED_PAREN) return endOfLast(pattern, (failure) => failure?.error === error);
  const end = endOfLast(pattern, (one) => one?.error === error && one.input === input);
  return end + 1 - input.length;
}

/** The end of the longest start of the pattern for which `isSame` is false. */
function endOfLast(
  pattern: string,
  isSame: (failure: RE2JSSyntaxException | undefined) => boolean,
): number {
  let end = pattern.length;
  while (end > 0 && isSame(failureOf(pattern.slice(0, end)))) end -= 1;
  return end;
}

function failureOf(pattern: string): RE2JSSyntaxException | undefined {
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return error;
    throw error;
  }
}
