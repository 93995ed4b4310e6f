/**
 * One challenge of a WWW-Authenticate header (RFC 9110 11.6.1). Scheme and parameter names are case
 * insensitive and held in lower case.
 */
export type Challenge = {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
};

// RFC 9110 5.6.2 (token), 5.6.4 (quoted-string), 11.2 (token68); sticky, read from one position on.
const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const SEPARATORS = /[\s,]*/y;
const EQUALS = /\s*=\s*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=\s*(?:,|$))/y;

/**
 * Reads every challenge of one or several header lines. A line is read as far as it makes sense:
 * what follows a broken parameter is left out, as there is nobody to complain to.
 */
export function parseChallenges(header: string | readonly string[] | undefined): Challenge[] {
  if (header === undefined) return [];
  return (typeof header === 'string' ? [header] : header).flatMap(parseLine);
}

type Cursor = { readonly text: string; at: number };

/**
 * A comma separates parameters as well as challenges: a token that is followed by `=` is a
 * parameter of the challenge before it, any other one is a new scheme.
 */
function parseLine(text: string): Challenge[] {
  const cursor: Cursor = { text, at: 0 };
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  for (;;) {
    take(cursor, SEPARATORS);
    const word = take(cursor, TOKEN)?.[0].toLowerCase();
    if (word === undefined) return challenges;
    const current = challenges.at(-1);
    if (current === undefined || take(cursor, EQUALS) === undefined) {
      challenges.push({ scheme: word, parameters: Object.create(null) as Record<string, string> });
      skipToken68(cursor);
      continue;
    }
    const value = takeValue(cursor);
    if (value === undefined) return challenges;
    current.parameters[word] = value;
  }
}

/** Negotiate and NTLM carry a token68 behind the scheme; nobody here speaks them. */
function skipToken68(cursor: Cursor): void {
  const start = cursor.at;
  const hasSpace = take(cursor, /[ \t]+/y) !== undefined;
  if (!hasSpace || take(cursor, TOKEN68) === undefined) cursor.at = start;
}

function takeValue(cursor: Cursor): string | undefined {
  const quoted = take(cursor, QUOTED)?.[1];
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? take(cursor, TOKEN)?.[0];
}

function take(cursor: Cursor, pattern: RegExp): RegExpExecArray | undefined {
  pattern.lastIndex = cursor.at;
  const match = pattern.exec(cursor.text);
  if (match === null) return undefined;
  cursor.at = pattern.lastIndex;
  return match;
}
