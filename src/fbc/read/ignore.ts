import { createBudget, type DecodeBudget } from '../../base/decode/limits.ts';
import { ConfigError } from '../../base/errors.ts';

/** A line of an ignore file (gitignore(5)). */
export type IgnoreRule = {
  /** Names from the catalog's directory to the ignore file's. */
  readonly base: readonly string[];
  readonly isNegated: boolean;
  readonly onlyDirectories: boolean;
  /** False for a pattern without a slash within it, which matches a name at any depth below the base. */
  readonly isAnchored: boolean;
  readonly names: readonly NamePattern[];
};

/** Pattern of a name; `**` matches any number of names. */
type NamePattern = '**' | readonly CharacterPattern[];

/** `*` matches any number of characters. */
type CharacterPattern = '*' | OneCharacter;

type OneCharacter = {
  readonly matches: (character: string) => boolean;
  /** Comparisons that it takes to match. */
  readonly steps: number;
};

/** The rules of an ignore file in `base`. */
export function parseIgnoreFile(text: string, base: readonly string[]): readonly IgnoreRule[] {
  const isExactly = createExactly();
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map(trimEnd)
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => parseRule(line, base, isExactly));
}

/** Spaces at the end count only after a backslash. */
function trimEnd(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === ' ' && line[end - 2] !== '\\') end--;
  return line.slice(0, end);
}

function parseRule(line: string, base: readonly string[], isExactly: Exactly): IgnoreRule {
  const isNegated = line.startsWith('!');
  const pattern = isNegated ? line.slice(1) : line;
  const onlyDirectories = pattern.endsWith('/');
  const path = onlyDirectories ? pattern.slice(0, -1) : pattern;
  const names = path.replace(/^\//, '').split('/');
  return {
    base,
    isNegated,
    onlyDirectories,
    isAnchored: path.includes('/'),
    names: names.map((name, index) => {
      if (name !== '**') return parseName(name, isExactly);
      // At the end it matches the contents of a directory, not the directory itself.
      return index === names.length - 1 && names.length > 1 ? ['*'] : '**';
    }),
  };
}

function parseName(name: string, isExactly: Exactly): readonly CharacterPattern[] {
  const patterns: CharacterPattern[] = [];
  const characters = Array.from(name);
  const lastClose = characters.lastIndexOf(']');
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? '';
    const set = character === '[' && at < lastClose ? parseSet(characters, at) : undefined;
    if (set !== undefined) {
      patterns.push(set.pattern);
      at = set.end;
    } else if (character === '\\') {
      patterns.push(isExactly(characters[++at] ?? '\\'));
    } else {
      patterns.push(parseCharacter(character, isExactly));
    }
  }
  return patterns;
}

function parseCharacter(character: string, isExactly: Exactly): CharacterPattern {
  if (character === '*') return '*';
  return character === '?' ? { matches: () => true, steps: 1 } : isExactly(character);
}

type Exactly = (wanted: string) => OneCharacter;

/** One pattern for each character of a file: one for each place would take a hundred times the memory of the file. */
function createExactly(): Exactly {
  const known = new Map<string, OneCharacter>();
  return (wanted) => {
    const pattern = known.get(wanted) ?? { matches: (found) => found === wanted, steps: 1 };
    known.set(wanted, pattern);
    return pattern;
  };
}

/** `[abc]`, `[a-z]`, `[!a]`; undefined if the bracket is never closed: it is literal then. */
function parseSet(
  characters: readonly string[],
  from: number,
): { readonly pattern: CharacterPattern; readonly end: number } | undefined {
  const isNegated = characters[from + 1] === '!' || characters[from + 1] === '^';
  const start = from + (isNegated ? 2 : 1);
  const end = characters.indexOf(']', start + 1); // a bracket in the first place belongs to the set
  if (end < 0) return undefined;
  const ranges: (readonly [first: string, last: string])[] = [];
  for (let at = start; at < end; at++) {
    const first = characters[at] ?? '';
    const isRange = characters[at + 1] === '-' && at + 2 < end;
    if (isRange) at += 2;
    ranges.push([first, isRange ? (characters[at] ?? '') : first]);
  }
  const isIn = (character: string): boolean =>
    ranges.some(([first, last]) => first <= character && character <= last);
  const matches = (character: string): boolean => isIn(character) !== isNegated;
  return { pattern: { matches, steps: ranges.length }, end };
}

/** Rules times files, and characters times characters. `take` throws ConfigError `catalog.ignore-file`. */
export const createIgnoreBudget = (): DecodeBudget<'steps'> =>
  createBudget(
    { steps: 20_000_000 }, // about a second
    () =>
      new ConfigError(
        'catalog.ignore-file',
        'the ignore files of the catalog take too long to match',
        {
          hint: 'use fewer and shorter patterns in .indexignore',
        },
      ),
  );

/**
 * True if a file is ignored: the last rule that matches it or a directory above it decides. Unlike git, and
 * like the tools of catalogs, this lets a rule include a file below an ignored directory again.
 */
export function isIgnored(
  rules: readonly IgnoreRule[],
  path: readonly string[],
  effort: DecodeBudget<'steps'>,
): boolean {
  const names = path.map((text) => ({ text, characters: Array.from(text) }));
  const rule = rules.findLast((one) => matchesPath(one, names, effort));
  return rule !== undefined && !rule.isNegated;
}

/** A name of a path; its characters are listed once for all rules. */
type Name = { readonly text: string; readonly characters: readonly string[] };

function matchesPath(
  { base, isAnchored, names, onlyDirectories }: IgnoreRule,
  path: readonly Name[],
  effort: DecodeBudget<'steps'>,
): boolean {
  effort.take('steps', 10 + base.length);
  if (base.some((name, index) => path[index]?.text !== name)) return false;
  const matchesCharacter = (pattern: CharacterPattern, character: string): boolean => {
    if (pattern === '*') return true;
    effort.take('steps', pattern.steps);
    return pattern.matches(character);
  };
  const ofCharacters = { any: '*', matches: matchesCharacter, effort } as const;
  const matches = (pattern: NamePattern, { characters }: Name): boolean =>
    pattern === '**' ||
    matchesAll(pattern, { items: characters, from: 0, to: characters.length }, ofCharacters);
  const ofNames = { any: '**', matches, effort } as const;
  const end = onlyDirectories ? path.length - 1 : path.length;
  for (let at = base.length; at < end; at++) {
    const span = { items: path, from: isAnchored ? base.length : at, to: at + 1 };
    if (matchesAll(names, span, ofNames)) return true;
  }
  return false;
}

type Span<Item> = { readonly items: readonly Item[]; readonly from: number; readonly to: number };

/**
 * True if patterns match items one to one, except `any`, which matches any run of items. Only the
 * last run is ever extended, so the cost is at most the product of both lengths.
 */
function matchesAll<Pattern, Item>(
  patterns: readonly Pattern[],
  { items, from, to }: Span<Item>,
  rule: {
    readonly any: Pattern;
    readonly matches: (pattern: Pattern, item: Item) => boolean;
    readonly effort: DecodeBudget<'steps'>;
  },
): boolean {
  let next = 0;
  let run: { readonly after: number; end: number } | undefined;
  for (let at = from; at < to;) {
    rule.effort.take('steps', 1);
    const pattern = patterns[next];
    const item = items[at];
    if (pattern === rule.any) {
      run = { after: ++next, end: at };
    } else if (pattern !== undefined && item !== undefined && rule.matches(pattern, item)) {
      next++;
      at++;
    } else {
      if (run === undefined) return false;
      next = run.after;
      at = ++run.end;
    }
  }
  return patterns.slice(next).every((pattern) => pattern === rule.any);
}
