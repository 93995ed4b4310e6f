import { Lexer, Parser, type CST, type LineCounter } from 'yaml';
import { withoutUndefined } from '../lists.ts';

/**
 * Nodes within nodes. The YAML library composes them by recursion and has no limit but the stack, and
 * near the end of the stack V8 may end the whole process: no file needs a tenth of this.
 */
const MOST_NESTED = 250;

/** Of a quarter of a gigabyte when it is composed; the manifests of a whole product have a fifth of this. */
const MOST_LEXEMES = 500_000;

/**
 * Of nodes, while aliases are resolved and counted: the library walks through a whole document for an
 * alias, and again for each within what it stands for. Fourteen kilobytes took nine seconds.
 */
const MOST_VISITS = 50_000_000;

/** A text that nobody wrote by hand; no value was composed of it. */
export class YamlExcess extends Error {
  /** Where it became too much. */
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super(problem);
    this.offset = offset;
  }
}

/**
 * The tokens of a YAML text, for a composer. A document is complete, and so known to be within
 * bounds, before it is given on.
 *
 * @param options.most lexemes; one takes up to half a kilobyte when it is composed
 * @param options.hasOwnAliases whether the caller resolves aliases, and not the library
 * @throws YamlExcess
 */
export function* readYamlTokens(text: string, options: TokenOptions = {}): Generator<CST.Token> {
  const { lines } = options;
  const parser = new Parser(lines?.addNewLine);
  lines?.addNewLine(0);
  const count = createCount(options);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MOST_NESTED)
      throw new YamlExcess('this is nested too deep', parser.offset);
    const problem = count(lexeme);
    if (problem !== undefined) throw new YamlExcess(problem, parser.offset);
  }
  yield* parser.end();
}

/** Counts lexemes, and says when they are too many. */
function createCount({
  most = Infinity,
  hasOwnAliases = false,
}: TokenOptions): (lexeme: string) => string | undefined {
  let lexemes = 0;
  let aliases = 0;
  return (lexeme) => {
    if (++lexemes > most) return 'there are too many values';
    if (lexeme.startsWith('*') && !hasOwnAliases) aliases++;
    return countVisits(aliases, lexemes) > MOST_VISITS ? 'there are too many aliases' : undefined;
  };
}

type TokenOptions = {
  readonly lines?: LineCounter;
  readonly most?: number;
  readonly hasOwnAliases?: boolean;
};

const countVisits = (aliases: number, nodes: number): number => aliases ** 2 * nodes;

/**
 * What makes a text unfit for the YAML library, if anything does: ask before it is parsed. Small
 * texts that cannot be nested deep take no time.
 */
export function findYamlExcess(text: string, lines?: LineCounter): YamlExcess | undefined {
  const isSmall = text.length <= MOST_LEXEMES && !mayHaveManyAliases(text);
  if (isSmall && !mayBeDeep(text)) return undefined;
  try {
    const tokens = readYamlTokens(text, { ...withoutUndefined({ lines }), most: MOST_LEXEMES });
    while (tokens.next().done !== true);
    return undefined;
  } catch (error) {
    if (error instanceof YamlExcess) return error;
    throw error;
  }
}

const mayHaveManyAliases = (text: string): boolean =>
  countVisits(text.split('*').length - 1, text.length) > MOST_VISITS;

/** Flow collections need brackets; block collections marks, or spaces before them, on one line. */
function mayBeDeep(text: string): boolean {
  if ((text.match(/[[{]/g)?.length ?? 0) > MOST_NESTED / 2) return true;
  // A pattern for long lines would take a frame of the stack for each of their characters.
  const long = text.split('\n').filter(({ length }) => length >= 100);
  return long.some((line) => (line.match(/[ \t:]|[-?](?=\s)/g)?.length ?? 0) > MOST_NESTED / 4);
}

/** What a JSON text may make its reader build. */
type JsonBounds = {
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
